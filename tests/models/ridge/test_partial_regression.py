"""Baselines: what they gain, that every sum of bags serves them, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisRegressor,
    ModelError,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    cross_val_score,
    load_model,
)
from bagbasis.jobs.commands.stores.info import describe_model
from bagbasis.jobs.pictures.model_part import card_of
from bagbasis.models import Search, tune
from bagbasis.models.ridge.partial_regression import beside_linear, beside_own
from bagbasis.models.ridge.ridge import solve
from bagbasis.operations.retraining.sums import (
    ROUNDING_BOUNDS,
    ModelSequence,
    gaps_of_sums,
    slide_window,
)
from tests.models.edited import edit_state
from tests.oracles import ridge
from tests.oracles.labelled import labelled_bags
from tests.oracles.ridge_entries import collected, feature_rows, ridge_rows
from tests.passes import pass_limits

N = 240
BAGS, SMOOTH = labelled_bags(N, most=25)
WEIGHTS = np.random.default_rng(4).integers(0, 3, N).astype(float)
MEANS = np.array([bag.mean(axis=0) for bag in BAGS])
Y = 5 * MEANS[:, 0] - 3 * MEANS[:, 1] + 0.1 * SMOOTH
RESPONSES = [0.9 * bag + 0.05 for bag in BAGS]
KINDS = ["linear", "own"]
BY_PENALTY = pytest.mark.parametrize(
    ("baseline", "alpha"),
    [("linear", "gcv"), ("own", 0.1), ("own", "gcv"), ("linear", "validation")],
)


def estimator(baseline, n_features=48, **params):
    """Fewer features than bags, or with 512 more, so that rows are kept."""
    params = {"alpha": "gcv", "precision": "float64", "baseline": baseline, **params}
    bases = (
        ProjectionEmbedding(n_per_dim=4),
        RandomFourierFeatures(n_features=n_features, scale=0.7),
    )
    if baseline == "own":
        return TripleBasisRegressor(
            *bases, response_embedding=ProjectionEmbedding(n_per_dim=5), **params
        )
    return DoubleBasisRegressor(*bases, **params)


def labels(baseline, some=slice(None)):
    return RESPONSES[some] if baseline == "own" else Y[some]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Bags with numbers and with responses, in both of which every tenth is missing."""
    options = {"response_dims": 2, "dtype": np.float64, "chunk_points": 300}
    url = tmp_path_factory.mktemp("baselines") / "s.zarr"
    made = BagStore.create(url, 2, target_names=["y", "w"], **options)
    y = np.where(np.arange(N) % 10 == 7, np.nan, Y)
    answers = [None if i % 10 == 7 else first for i, first in enumerate(RESPONSES)]
    return made.append(BAGS, np.stack([y, WEIGHTS], axis=1), responses=answers)


def fitted_to(store, baseline, **arguments):
    params = arguments.pop("params", {})
    target = {} if baseline == "own" else {"target": "y"}
    return estimator(baseline, **params).fit(store, **target, **arguments)


def rows_of(model, bags):
    """z and the columns of the baseline, in double."""
    features = model.features_
    [(_, rows, _)] = features.blocks(model_bags(bags), np.float64)
    return np.split(rows.copy(), [features.n_penalized], axis=1)


def model_bags(bags):
    return Bags.from_list(bags)


@pytest.mark.parametrize("baseline", KINDS)
@pytest.mark.parametrize("n_features", [48, 512], ids=["sums", "rows"])
def test_gains_where_much_is_linear(baseline, n_features):
    """A third of the error goes with few features; a score of new bags says so."""
    half = N // 2
    scores = []
    for kind in (baseline, None):
        model = estimator(baseline, n_features).set_params(baseline=kind)
        model.fit(BAGS[:half], labels(baseline, slice(half)))
        scores.append(1 - model.score(BAGS[half:], labels(baseline, slice(half, N))))
    assert scores[0] < 0.7 * scores[1]


@pytest.mark.long
@pytest.mark.parametrize("n_features", [48, 512], ids=["sums", "rows"])
def test_linear_is_the_dense_solution(n_features):
    """λ₀ is the best penalty of a ridge on the columns alone, and both are solved together."""
    model = estimator("linear", n_features).fit(BAGS, Y)
    z, a = rows_of(model, BAGS)
    grid = N * 10.0 ** np.arange(-12, 2.25, 0.5)
    alone = ridge.gcv_scores(a, Y[:, None], grid)
    beside = model.report_["baseline_alpha"]
    assert beside == pytest.approx(grid[alone.argmin()])
    scores = ridge.partial_gcv(z, a, Y[:, None], model.alphas_, beside)
    # of more features than bags less is left than rounding makes of eigenvalues that are zero
    resolved = model.alphas_ > (1e-9 if n_features < N else 1e-8) * N
    np.testing.assert_allclose(model.alpha_scores_[resolved], scores[resolved], rtol=1e-5)
    coef, intercept = ridge.partial_ridge(z, a, Y[:, None], model.alpha_, beside)
    expected = ridge.predict(np.hstack([z, a]), (coef, intercept))[:, 0]
    np.testing.assert_allclose(model.predict(BAGS), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("n_features", [48, 512], ids=["sums", "rows"])
def test_own_is_the_residual_of_an_affine_copy(n_features):
    """Slopes by least squares, coefficient by coefficient, and a ridge on what they leave."""
    model = estimator("own", n_features, alpha=0.1).fit(BAGS, RESPONSES)
    z, a = rows_of(model, BAGS)
    targets = np.empty((N, 25))
    model.response_spec_.embed(model_bags(RESPONSES), targets)
    expected = ridge.predict(np.hstack([z, a]), ridge.own_ridge(z, a, targets, 0.1))
    np.testing.assert_allclose(model.predict(BAGS), expected, rtol=0, atol=1e-9)
    same = estimator("own", n_features).fit(BAGS, BAGS)
    slopes = same.coef_[:, n_features:].diagonal() * same.features_.beside.scale
    np.testing.assert_allclose(slopes, [0] + [1] * 24, atol=1e-9)  # the first one is constant
    assert same.score(BAGS, BAGS) == pytest.approx(1)


def test_nothing_is_left_of_a_baseline_that_explains_nothing():
    """With columns without a linear part of the label, as without a baseline."""
    rng = np.random.default_rng(1)
    at = rng.permutation(np.linspace(0.1, 0.9, N))
    bags, y = [np.array([[x, 0.5]]) for x in at], np.cos(4 * np.pi * (at - 0.5))
    models = [DoubleBasisRegressor(MomentsEmbedding(covariance=False), baseline=kind).fit(bags, y)
              for kind in ("linear", None)]  # fmt: skip
    assert models[0].report_["baseline_alpha"] >= N
    predicted = [model.predict(bags) for model in models]
    np.testing.assert_allclose(*predicted, atol=0.02)
    assert r2_score(y, predicted[0]) > 0.99


@pytest.mark.parametrize("make", [collected, ridge_rows], ids=["sums", "rows"])
@pytest.mark.parametrize("beside", [lambda s: beside_linear(s, 40, 0.02),
                                    lambda s: beside_own(s, 40)], ids=KINDS)  # fmt: skip
def test_weights_are_repeated_rows(make, beside):
    """A row of weight 2 is the row twice, one of weight 0 is not there."""
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((60, 43)), rng.standard_normal((60, 3))
    weights = rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weights)
    ours = beside(make(z, y, weights=weights.astype(float)))
    theirs = beside(make(z[rows], y[rows]))
    first, other = (solve(summary, 0.3, 0.0) for summary in (ours, theirs))
    for name in ("coef", "intercept", "alpha", "alphas", "scores"):
        np.testing.assert_allclose(getattr(first, name), getattr(other, name), rtol=0, atol=1e-9)


@pytest.mark.long
@BY_PENALTY
def test_stores_in_many_tasks(store, baseline, alpha):
    """Cut into many tasks, with weights and a holdout: the same penalties, and the same model."""
    params, arguments = {"alpha": alpha}, {"holdout": 0.2, "sample_weight": "w"}
    whole = fitted_to(store, baseline, params=params, **arguments)
    assert whole.report_["n_bags_held_out"] > 0
    with pass_limits(small_task_seconds=1e-9, small_tasks=16):
        cut = fitted_to(store, baseline, params=params, **arguments)
    scale = np.abs(whole.coef_).max()
    np.testing.assert_allclose(cut.coef_, whole.coef_, rtol=0, atol=1e-7 * scale)
    assert cut.alpha_ == whole.alpha_
    assert cut.report_.get("baseline_alpha") == whole.report_.get("baseline_alpha")


@pytest.mark.parametrize("baseline", KINDS)
def test_saved_and_loaded(tmp_path, baseline):
    """A loaded model predicts the same bits; columns that are missing are damage."""
    model = estimator(baseline).fit(BAGS, labels(baseline))
    model.save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    np.testing.assert_array_equal(again.predict(BAGS), model.predict(BAGS))
    assert again.get_params()["baseline"] == baseline
    assert describe_model(again)["baseline"] == baseline
    assert f"48 random features and the baseline '{baseline}'" in str(card_of(again, ""))
    edit_state(tmp_path / "m.zarr", lambda state: state["features"]["beside"]["shift"].pop(0))
    with pytest.raises(ModelError, match="do not fit"):
        load_model(tmp_path / "m.zarr")


@pytest.mark.long
@BY_PENALTY
def test_sums_slide_with_a_window(store, baseline, alpha):
    """Bags added and subtracted leave the sums, and the model, of the window."""
    target = None if baseline == "own" else "y"
    line = ModelSequence.begin(estimator(baseline, alpha=alpha), store, (0, 180), target, 0.2, "w")

    def count(bags):
        return line.statistics(store, bags)

    window, sums = (0, 180), count((0, 180))
    for start in (20, 40, 60):
        before, window = window, (start, start + 180)
        sums = slide_window(before, sums, window, count).statistics
    again = count(window)
    assert max(gaps_of_sums(sums, again).values()) < ROUNDING_BOUNDS["float64"]
    ours, theirs = (line.model(item, store, window) for item in (sums, again))
    np.testing.assert_allclose(ours.predict(BAGS), theirs.predict(BAGS), rtol=0, atol=1e-7)
    following = ModelSequence.of(ours)
    assert following.features == line.features
    assert following.estimator.baseline == baseline


@pytest.mark.long
@pytest.mark.parametrize("n_features", [48, 512], ids=["sums", "rows"])
def test_folds(n_features):
    """Scores of folds are those of a fit per fold, whose columns are shifted as of all bags."""
    model = estimator("linear", n_features, alpha="gcv", alphas=[1e-3, 1e-1, 10.0])
    expected, third = [], np.arange(N) % 3
    for j in range(3):
        test = np.flatnonzero(third == j)
        predicted = (
            clone(model).fit(BAGS, np.where(third == j, np.nan, Y)).predict([BAGS[i] for i in test])
        )
        expected.append(r2_score(Y[test], predicted))
    result = cross_val_score(model, BAGS, Y, cv=3, groups=third)
    np.testing.assert_allclose(sorted(result), sorted(expected), rtol=0, atol=1e-7)
    scores = cross_val_score(estimator("own", n_features), BAGS, RESPONSES, cv=3)
    plain = cross_val_score(estimator("own", n_features).set_params(baseline=None),
                            BAGS, RESPONSES, cv=3)  # fmt: skip
    assert (scores > plain).all()


@pytest.mark.long
@pytest.mark.parametrize("baseline", KINDS)
def test_tuned(store, tmp_path, baseline):
    """The winner is what a fit makes of its parameters; linear candidates have no second one."""
    embeddings = [ProjectionEmbedding(n_per_dim=3), MomentsEmbedding()]
    search = Search(
        embeddings, scale_multipliers=(0.5, 2.0), linear=[MomentsEmbedding()], first_bags=120
    )
    target = {} if baseline == "own" else {"target": "y"}
    base = estimator(baseline, alphas=[1e-3, 1e-1, 10.0]).set_params(
        random_features=RandomFourierFeatures(n_features=48)
    )
    tuning = tune(base, store, search=search, **target, checkpoints=tmp_path / "c")
    assert tuning.model.features_.beside is not None or tuning.model.random_features is False
    again = clone(tuning.model).fit(store, **target)
    np.testing.assert_allclose(again.predict(BAGS), tuning.model.predict(BAGS), atol=1e-9)
    linear = next(c for c in tuning.candidates if c.scale_multiplier is None)
    assert (linear.features.beside is None) == (baseline == "linear")
    assert linear.estimator(base).baseline == (None if baseline == "linear" else "own")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: estimator("own").set_params(embedding=ProjectionEmbedding(box=[(0, 2)] * 2)),
         r"baseline='own' copies .* box \[\[0.0, 2.0\], \[0.0, 2.0\]\]"),
        (lambda: estimator("own", solver="cg", alpha=0.1), "which baseline='own' is made of"),
        (lambda: estimator("own", uncertainty=True), "does not work with a baseline"),
        (lambda: estimator("linear", alpha="folds"), "alpha='folds' does not work with a baseline"),
        (lambda: estimator("own").set_params(baseline="linear"), "expected 'own' or None"),
        (lambda: estimator("linear").set_params(baseline="own"), "expected 'linear' or None"),
        (lambda: estimator("linear").set_params(random_features=False), "linear without it"),
    ],
)  # fmt: skip
def test_refused(made, message):
    """A baseline that cannot be had is one error, before any bag is summed."""
    model = made()
    with pytest.raises(ParameterError, match=message):
        model.fit(BAGS, RESPONSES if isinstance(model, TripleBasisRegressor) else Y)


def test_moved_points_have_the_offsets_of_their_embedding():
    """Means of points far from 0 vary little compared with their size: float32 sums bear that."""
    bags = [bag + 1e4 for bag in BAGS]
    first = MomentsEmbedding(standardize=False, box=[(0, 1e5)] * 2)
    for precision in ("float32", "float64"):
        model = DoubleBasisRegressor(
            first, RandomFourierFeatures(n_features=48), baseline="linear", precision=precision
        ).fit(bags, Y)
        assert model.score(bags, Y) > 0.98


def test_a_penalty_below_the_rounding_of_repeated_columns_is_raised():
    """To the least that their sums bear, and no further: it would be no penalty that was chosen."""
    z, y = feature_rows(np.random.default_rng(0), 200)
    columns = np.hstack([z, z[:, :1], z[:, :1]]).astype(np.float64)
    assert 0 < beside_linear(collected(columns, y), z.shape[1], 1e-300).alpha < 1e-6
