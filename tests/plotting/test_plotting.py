"""Figures of results: what is drawn is what the results hold, into the Axes that are given."""

import pickle
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from bagbasis import (
    BagbasisError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ExtremesEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
    TripleBasisRegressor,
    evaluate,
    plotting,
    tune,
)
from bagbasis.densities import estimate_densities
from bagbasis.hypotheses import two_sample_test
from bagbasis.models import Search, explain, permutation_importance
from bagbasis.operations import DriftDetector, drift_test
from bagbasis.plotting.calibration import groups_of, wilson
from tests.shown import rounded, with_error

mpl.use("agg")
RNG = np.random.default_rng(1)
BAGS = [RNG.normal(size=(8, 2)) * scale for scale in RNG.uniform(0.5, 2, 60)]
Y = np.array([bag.std() for bag in BAGS])


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def model():
    return DoubleBasisRegressor("moments", alpha=1e-2).fit(BAGS, Y)


@pytest.fixture(scope="module")
def classifier():
    return DoubleBasisClassifier("moments", alpha=1e-2).fit(BAGS, Y > 1)


def test_predictions_are_the_pairs_of_the_errors(model, ax):
    """Dots of true and predicted values; the title has the numbers of the errors."""
    errors = evaluate(model, BAGS, Y, subset="all")
    assert errors.plot(ax=ax) is ax
    np.testing.assert_allclose(ax.lines[0].get_xdata(), Y)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), model.predict(BAGS))
    rmse, [spread] = errors.error, errors.rmse_errors
    assert f"RMSE {with_error(rmse, spread)}" in ax.get_title()
    r2 = rounded(errors.score, 2 * (1 - errors.score) * spread / rmse)
    assert f"R² {r2}" in ax.get_title()


def test_calibration_lies_within_zero_and_one(classifier, ax):
    """Groups of bags, whose bars are Wilson intervals."""
    errors = evaluate(classifier, BAGS, Y > 1, subset="all")
    assert errors.plot(ax=ax) is ax
    y = ax.lines[0].get_ydata()
    assert len(y) == 6
    low, high = zip(*(wilson(share, 10) for share in y.tolist()), strict=True)
    assert min(low) >= 0
    assert max(high) <= 1


def test_wilson_intervals():
    """Those of the formula, also where all or none are right."""
    assert wilson(1.0, 10) == (pytest.approx(10 / 11), pytest.approx(1.0))
    assert wilson(0.0, 10) == (0.0, pytest.approx(1 / 11))
    low, high = wilson(0.5, 10_000)
    assert (low, high) == (pytest.approx(0.495, abs=1e-5), pytest.approx(0.505, abs=1e-5))
    groups = groups_of(np.arange(40.0), np.arange(40) >= 20)
    assert [group.right for group in groups] == [0.0, 0.0, 1.0, 1.0]


def test_coverage_by_size(ax):
    """Small bags that are missed are seen."""
    sizes = np.repeat([5, 50], 30)
    lower, upper = np.where(sizes == 5, 1.0, -1.0), np.full(60, 2.0)
    plotting.plot_intervals(np.zeros(60), lower, upper, sizes=sizes, ax=ax)
    measured = np.array(ax.containers[0].lines[0].get_ydata(), dtype=float)
    np.testing.assert_allclose(measured, [0, 0, 0, 1, 1, 1])


def test_importance_and_explanation(model, ax):
    """A bar per coordinate; a dot per point of the bag."""
    importance = permutation_importance(model, BAGS, Y, n_repeats=1)
    assert len(importance.plot(ax=ax).patches) == 2
    axes = explain(model, BAGS[0]).plot(ax=Figure().subplots())
    assert len(axes.collections[0].get_offsets()) == 8


def test_tests_and_drift(ax):
    """The null, the scales and the coordinates of a test; p-values over time."""
    result = two_sample_test(BAGS[:20], BAGS[20:40], statistic="fuse", n_permutations=39)
    assert result.plot(ax=ax) is ax
    scales = plotting.plot_scales(result, ax=Figure().subplots())
    assert ("no significant difference" in scales.get_title()) == (result.p_value > 0.05)
    drift = plotting.plot_drift([result, result], level=0.5, ax=Figure().subplots())
    assert drift.get_title() == f"Drift in {2 * (result.p_value <= 0.5)} of 2 tests"
    assert result.verdict() in result._repr_html_()
    prediction = DriftDetector(n_permutations=19).fit(BAGS[:20]).predict(BAGS[20:40])
    compared = drift_test(BAGS[:20], BAGS[20:40], n_permutations=19)
    axes = compared.plot(ax=Figure().subplots())
    assert axes.lines[0].get_ydata() == pytest.approx([compared.p_value])
    axes = prediction.plot(ax=Figure().subplots())
    assert axes.get_title() == f"Drift in {int(prediction.is_drift)} of 1 test"
    assert axes.lines[0].get_ydata() == pytest.approx([prediction.p_value])


def test_a_prediction_is_drawn_at_the_level_of_its_detector():
    """Its colour, its line and its sentence agree with `is_drift`; one without a level has 0.05."""
    old, new = BAGS[:20], BAGS[20:40]
    for level in (0.001, 0.999):
        prediction = DriftDetector(n_permutations=19, level=level).fit(old).predict(new)
        assert prediction.is_drift == (level == 0.999)
        axes = prediction.plot(ax=Figure().subplots())
        assert axes.get_title() == f"Drift in {int(prediction.is_drift)} of 1 test"
        assert axes.lines[-1].get_ydata()[0] == level
        assert f"level {level:g})" in prediction.verdict()
    assert plotting.plot_drift(prediction).get_title() == "Drift in 1 of 1 test"
    both = plotting.plot_drift([replace(prediction, level=0.001), prediction], ax=axes)
    assert both.get_title() == "Drift in 1 of 2 tests"
    saved = pickle.loads(pickle.dumps(prediction))
    del saved.__dict__["level"]  # as one that an earlier version pickled
    assert saved.level == 0.05


def test_a_level_decides_what_pictures_of_a_test_say():
    """The threshold of the null, and the titles of scales and coordinates."""
    result = two_sample_test(BAGS[:9], BAGS[9:18], statistic="fuse", n_permutations=19)
    for level in (0.001, 0.999):
        title = plotting.plot_scales(result, level=level, ax=Figure().subplots()).get_title()
        assert ("no significant difference" in title) == (level == 0.001)
        lines = plotting.plot_null(result, level=level, ax=Figure().subplots()).lines
        expected = np.quantile(result.null_distribution, 1 - level)
        assert lines[0].get_xdata()[0] == pytest.approx(expected)


def test_errors_of_densities_are_drawn_bag_by_bag(ax):
    """Each against the average density; the title has their means."""
    X = [RNG.random((20, 1)) * 0.5 + shift for shift in np.linspace(0, 0.5, 30)]
    responses = [1 - bag for bag in X]
    basis = ProjectionEmbedding(max_norm=3)
    model = TripleBasisRegressor(basis, response_embedding=basis, alpha=1e-3)
    errors = evaluate(model.fit(X, responses), X, responses, subset="all")
    assert errors.plot(ax=ax) is ax
    of_average, of_model = ax.lines[0].get_data()
    values = errors.values()["densities"]
    assert np.mean(of_average) == pytest.approx(values["average_mse"])
    assert np.mean(of_model) == pytest.approx(values["mse"])
    spread = np.std(of_model) / 30**0.5
    assert errors.standard_error == pytest.approx(spread)
    assert ax.get_title().startswith(f"Mean {with_error(values['mse'], spread)}, average density ")
    value = evaluate(model, X, responses, subset="all", sample_weight=np.arange(1.0, 31.0))
    assert value.standard_error is None
    assert "±" not in value.plot(ax=Figure().subplots()).get_title()


def test_coordinates_have_names(model, ax):
    """Those of a data frame; numbers are not left alone."""
    frame = pd.DataFrame(BAGS[0], columns=["pulse", "pressure"])
    drawn = plotting.plot_bag(frame, ax=ax)
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("pulse", "pressure")
    explanation = explain(model, BAGS[0])
    axes = explanation.plot(ax=Figure().subplots())
    assert {axes.get_xlabel(), axes.get_ylabel()} == {"coordinate 0", "coordinate 1"}
    assert "coordinate 0 (" in repr(explanation)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_bags_and_densities(n_dims, ax):
    """Curves, heat maps, and the marginal of the first two coordinates."""
    bags = [RNG.random((30, n_dims)) for _ in range(2)]
    densities = estimate_densities(bags)
    assert plotting.plot_bag(bags[0], ax=ax) is ax
    assert densities.plot(1, ax=Figure().subplots()).get_xlabel() == "coordinate 0"


def test_a_bag_lies_on_its_density_by_name(ax):
    """Columns in another order are put in order; other names are refused."""
    frame = pd.DataFrame(RNG.random((30, 2)) * [1, 9], columns=["pulse", "pressure"])
    density = estimate_densities([frame])
    plotting.plot_bag(frame[["pressure", "pulse"]], density, ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), frame["pulse"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("pulse", "pressure")
    alone = plotting.plot_bag(frame, ax=Figure().subplots())
    assert (alone.get_xlabel(), alone.get_ylabel()) == ("pulse", "pressure")
    with pytest.raises(BagbasisError, match="'pulse' is missing, 'rate' is extra"):
        plotting.plot_bag(frame.rename(columns={"pulse": "rate"}), density, ax=ax)


def test_the_candidates_of_a_search(ax):
    """The winner first; each with its error on the bags of its last rung, ± a standard error."""
    search = Search(
        [MomentsEmbedding(), ExtremesEmbedding()], scale_multipliers=[0.5, 2.0], first_bags=30
    )
    result = tune(DoubleBasisRegressor(validation_fraction=0.4), BAGS, Y, search=search)
    assert result.plot(ax=ax) is ax
    errors = []
    for c in result.ranking:
        score = [of_rung[c] for of_rung in result.scores if c in of_rung][-1]
        errors.append(score.error)
        assert score.relative_spread == pytest.approx((2 / score.n_held_out) ** 0.5)
    assert result.ranking[0] == result.winner
    assert sorted(result.ranking) == list(range(4))
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), errors)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    of_winner = result.candidates[result.winner]
    assert labels[0].startswith(f"{of_winner.first!r}; σ × {of_winner.scale_multiplier:g}; ")
    assert ax.get_title() == "4 candidates"


def test_a_search_that_is_the_choice(ax):
    """Few bags are compared by the choice of "auto" alone, whose candidates are drawn."""
    bags, search = [bag[:, :1] for bag in BAGS], Search([MomentsEmbedding()], choose=True)
    result = tune(DoubleBasisRegressor(), bags, Y, search=search)
    assert result.plot(ax=ax) is ax
    n = len(result.model.report_["choice"]["tried"])
    assert ax.get_title() == f"Chosen from {n} candidates"


def test_learning_curves(ax):
    """Folds become means and standard errors."""
    errors = np.array([[1.0, 3.0], [1.0, 1.0]])
    plotting.plot_learning_curve([10, 20], errors, ax=ax)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [2.0, 1.0])


def test_what_cannot_be_drawn(model, classifier):
    """Is refused by name."""
    numbers = evaluate(model, BAGS, Y, subset="all")
    classes = evaluate(classifier, BAGS, Y > 1, subset="all")
    result = two_sample_test(BAGS[:9], BAGS[9:18], statistic="mmd_u", n_permutations=9)
    for call, message in (
        (lambda: numbers.plot(ax=3), "ax is 3; expected matplotlib's Axes"),
        (lambda: plotting.plot_predictions(numbers, 1), "target is 1; expected 0 to 0"),
        (lambda: plotting.plot_predictions(classes), "use plot_calibration"),
        (lambda: plotting.plot_calibration(numbers), "use plot_predictions"),
        (lambda: plotting.plot_density_errors(numbers), "use plot_predictions"),
        (lambda: numbers.plot(1), "target is 1; expected 0 to 0"),
        (lambda: classes.plot(1), "target is 1; expected 0 to 0"),
        (lambda: plotting.plot_choice(model), "fit with 'auto'"),
        (lambda: plotting.plot_choice([model]), "model is .*; expected a DoubleBasis"),
        (lambda: plotting.plot_tuning(model), "result is DoubleB.*; expected a Tuning"),
        (lambda: plotting.plot_predictions(model), "errors is Double.*; expected an Errors"),
        (lambda: plotting.plot_importance(numbers), "importance is .*; expected an Importance"),
        (lambda: plotting.plot_explanation(model), "explanation is .*; expected an Explanation"),
        (lambda: plotting.plot_null(model), "result is .*; expected a HypothesisResult"),
        (lambda: plotting.plot_densities(model), "densities is .*; expected a Densities"),
        (lambda: plotting.plot_scales(result), "use plot_null"),
        (lambda: plotting.plot_coordinates(result), "use plot_null"),
        (lambda: plotting.plot_drift([]), "no p-value"),
        (lambda: plotting.plot_learning_curve([1, 2], [1.0]), "for each number of bags"),
        (lambda: plotting.plot_intervals([1.0], [0.0], [2.0], sizes=[]), "one for each bag"),
        (lambda: plotting.plot_bag(np.ones((2, 2, 2))), "expected \\(n_points, n_dims\\)"),
    ):
        with pytest.raises(BagbasisError, match=message):
            call()
