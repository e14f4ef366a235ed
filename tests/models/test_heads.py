"""`head`: trees with the ridge, to the bit scikit-learn's, weighed by folds, saved as arrays."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.preprocessing import StandardScaler

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ModelError,
    MomentsEmbedding,
    ParameterError,
    RandomFourierFeatures,
    TripleBasisRegressor,
    cross_val_score,
    evaluate,
    load_model,
)
from bagbasis.data.labelled.column_splits import GroupFolds
from bagbasis.data.labelled.columns import Column
from bagbasis.models import judge_fit, stacking
from bagbasis.models.heads.linear import HEAD_PENALTIES, SPREAD, LinearHead, best_shares
from bagbasis.models.heads.trees import TreeInputs, Trees
from bagbasis.operations import Retraining
from tests.oracles.bag_summaries import summary_of
from tests.oracles.labelled import stored
from tests.passes import pass_limits

N = 150
RNG = np.random.default_rng(3)
TOP = RNG.uniform(0.3, 1.0, N)
BAGS = Bags.from_list([RNG.uniform(0, top, (8, 2)) for top in TOP])
STEPS = np.floor(6 * TOP)  # a step at each sixth of the largest point: easy for trees
LINEAR = np.array([bag.mean(axis=0).sum() for bag in BAGS])
GROUPS = np.arange(N) // 3


def least(loss, m):
    """The minimum of a function of m shares, each at least 0, 1 in all."""
    sums = {"type": "eq", "fun": lambda shares: shares.sum() - 1}
    start, options = np.full(m, 1 / m), {"ftol": 1e-12}
    return minimize(loss, start, bounds=[(0, 1)] * m, constraints=sums, options=options)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(stacking, "N_RANDOMISED", 20)


def estimator(kind=DoubleBasisRegressor, **arguments):
    second = RandomFourierFeatures(n_features=64)
    return kind(
        MomentsEmbedding(), random_features=second, alphas=np.logspace(-3, 1, 5), **arguments
    )


def rows(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m)).astype(np.float32)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("exponent", [0, 40, -900])
def test_a_forest_is_scikit_learns_to_the_bit(k, exponent):
    x, new = rows(200, 5), rows(300, 5, 1)
    y = np.stack([np.sin(j + x[:, 0] * x[:, 1]) for j in range(k)], axis=1)
    forest = ExtraTreesRegressor(15, random_state=1).fit(x, y[:, 0] if k == 1 else y)
    trees = Trees.of_forest(forest, np.full(k, exponent))
    trees.check(k, 0)
    expected = np.ldexp(forest.predict(new).reshape(-1, k), exponent)
    assert np.array_equal(trees.predict(new), expected)


def test_boosted_trees_are_scikit_learns_to_the_bit():
    x, new = rows(300, 4), rows(200, 4, 1)
    y = np.stack([np.sin(3 * x[:, 0]), x[:, 1] * x[:, 2]], axis=1)
    models = [
        HistGradientBoostingRegressor(max_iter=12, random_state=0).fit(x, item) for item in y.T
    ]
    trees = Trees.of_boosted(models, np.array([0, 3]))
    trees.check(2, 0)
    expected = np.stack([model.predict(new) for model in models], axis=1) * [1, 8]
    assert np.array_equal(trees.predict(new), expected)


@pytest.mark.parametrize("name", ["_predictors", "_baseline_prediction"])
def test_boosted_trees_of_another_form_are_refused(monkeypatch, name):
    """A later scikit-learn may keep its nodes elsewhere: said so, and what to do."""
    monkeypatch.setattr(stacking, "MAX_RANDOMISED", 40)
    kind = HistGradientBoostingRegressor
    fit = kind.fit

    def without(self, *arguments):
        delattr(fit(self, *arguments), name)
        return self

    monkeypatch.setattr(kind, "fit", without)
    with pytest.raises(ParameterError, match=rf"{name}.*take head='ridge'"):
        estimator(head="trees").fit(BAGS, STEPS)


@pytest.mark.long
def test_heads_are_weighed_by_a_loop_over_folds():
    """Errors and shares, from scikit-learn's ridges and forests in each fold, of whole groups."""
    model = estimator(head="stack").fit(BAGS, STEPS, groups=GROUPS)
    result, features = model.report_["head"], model.features_
    z = np.concatenate([first.copy() for _, first, _ in features.blocks(BAGS, np.float64)])
    x = TreeInputs(features).of(BAGS)
    column = GroupFolds.of_column(Column.of(BAGS, "groups", GROUPS))
    folds = replace(column, n_folds=stacking.N_FOLDS).of(np.arange(N))
    assert len(np.unique(folds)) == result["n_folds"] == 5
    of_ridge, of_trees, of_line = np.empty(N), np.empty(N), np.empty((N, len(HEAD_PENALTIES)))
    # of steps, which the largest points tell, means alone say less
    assert result["line_of"] == "summaries"
    summaries = StandardScaler().fit_transform([summary_of(bag) for bag in BAGS])
    for j in range(5):
        out = folds == j
        centred = z[~out] - z[~out].mean(axis=0)
        penalty = model.alpha_ * (~out).sum() / N * np.eye(64)
        coef = np.linalg.solve(
            centred.T @ centred + penalty, centred.T @ (STEPS[~out] - STEPS[~out].mean())
        )
        of_ridge[out] = (z[out] - z[~out].mean(axis=0)) @ coef + STEPS[~out].mean()
        forest = ExtraTreesRegressor(20, max_features=x.shape[1] // 3, random_state=0)
        of_trees[out] = forest.fit(x[~out], STEPS[~out]).predict(x[out])
        for i, penalty in enumerate(HEAD_PENALTIES):
            ridge = BoundedRidge(penalty).fit(summaries[~out], STEPS[~out])
            of_line[out, i] = ridge.predict(summaries[out])
    best = ((of_line - STEPS[:, None]) ** 2).mean(axis=0).argmin()
    members = np.column_stack([of_ridge, of_trees, of_line[:, best]])

    def squares(shares):
        return ((members @ shares - STEPS) ** 2).sum()

    noise = least(squares, 3).fun / len(np.unique(GROUPS))  # a group counts as one bag
    shares = least(lambda s: squares(s) + noise / SPREAD**2 * ((s - 1 / 3) ** 2).sum(), 3).x
    assert list(result["shares"].values()) == pytest.approx(shares, abs=2e-3)
    expected = {"ridge": of_ridge, "trees": of_trees, "stack": members @ shares}
    for name, first in expected.items():
        error = ((first - STEPS) ** 2).mean() / STEPS.var()
        assert result["errors"][name] == pytest.approx(error, rel=1e-3)
    assert result["errors"]["trees"] < result["errors"]["ridge"]


@pytest.mark.long
@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
@pytest.mark.parametrize("head", ["trees", "stack"])
def test_a_saved_model_predicts_the_same(kind, head, tmp_path):
    model = estimator(kind, head=head).fit(BAGS, STEPS.astype(int))
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    assert loaded.head == head
    assert loaded.report_ == model.report_
    assert np.array_equal(loaded.predict(BAGS), model.predict(BAGS))
    assert evaluate(loaded, BAGS, STEPS.astype(int)).score == model.score(BAGS, STEPS.astype(int))
    ridge = estimator(kind).fit(BAGS, STEPS.astype(int))
    assert not np.array_equal(ridge.model_.decision_rows(BAGS), model.model_.decision_rows(BAGS))


@pytest.mark.long
def test_trees_of_another_model_are_refused(tmp_path):
    """Arrays that do not fit together are damage, whatever their numbers."""
    model = estimator(head="trees").fit(BAGS, STEPS)
    trees = model.model_.trees
    for name, place, value in (
        ("nodes", (0, 2), 0.0),  # a walk that does not end
        ("nodes", (0, 0), 99.0),
        ("starts", (3,), 1e9),
        ("columns", (0,), 4.0),
    ):
        array = getattr(trees, name).copy()
        array[place] = value
        damaged = replace(trees, **{name: array})
        model.model_ = replace(model.model_, trees=damaged)
        model.save(tmp_path / "m.zarr", overwrite=True)
        with pytest.raises(ModelError, match="damaged model"):
            load_model(tmp_path / "m.zarr")


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_shares_are_the_best_of_a_grid(members, seed):
    """None below 0, 1 in all; of few rows near equal ones, of many those of least error."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(60, 2))
    predicted = [y + rng.normal(scale=0.3 + j, size=y.shape) for j in range(members)]
    weights, clusters = rng.uniform(0, 2, 60), np.arange(60) // 2
    result = best_shares(predicted, y, weights, clusters)
    remaining, equal = np.array(predicted) - y, np.full(members, 1 / members)

    def squares(shares):
        return (weights[:, None] * np.tensordot(shares, remaining, 1) ** 2).sum()

    assert result.sum() == pytest.approx(1)
    assert (result >= 0).all()
    every = product(np.linspace(0, 1, 41), repeat=members)
    grid = [np.array(shares) for shares in every if abs(sum(shares) - 1) < 1e-9]
    noise = least(squares, members).fun / (2 * 30)

    def loss(shares):
        return squares(shares) + noise / SPREAD**2 * ((shares - equal) ** 2).sum()

    assert loss(result) <= min(map(loss, grid)) * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_a_member_without_errors_has_all(scale):
    """The others' errors are no noise that would draw it to equal shares; none is alike."""
    rng = np.random.default_rng(0)
    y = scale * rng.normal(size=(40, 1))
    off = [y + scale * rng.normal(size=y.shape) for _ in range(2)]
    ones, clusters = np.ones(40), np.arange(40)
    assert best_shares([off[0], y, off[1]], y, ones, clusters) == pytest.approx([0, 1, 0], abs=1e-5)
    assert best_shares([off[0], off[0]], y, ones, clusters) == pytest.approx([0.5, 0.5])
    assert best_shares([y, y], y, ones, clusters) == pytest.approx([0.5, 0.5])


def judged_rows(y):
    """Each row is a cluster of weight 1, and squared errors are in units of 1."""
    n, k = y.shape
    return SimpleNamespace(units=np.ones(k), weights=np.ones(n), clusters=np.arange(n))


def test_a_linear_head_of_more_coordinates_than_bags():
    """The same as scikit-learn's on all of them; of a saved model whose line does not fit."""
    x, y = rows(12, 30).astype(np.float64), rows(12, 2, 1).astype(np.float64)
    folds = np.arange(12) % 3
    line, out = LinearHead.fitted(x.astype(np.float32), 30, y, judged_rows(y), folds)
    scaled = StandardScaler().fit_transform(x.astype(np.float32).astype(np.float64))
    errors, predicted = [], []
    for penalty in HEAD_PENALTIES:
        single = cross_val_predict(Ridge(penalty), scaled, y, cv=PredefinedSplit(folds))
        errors.append(((single - y) ** 2).mean())
        predicted.append(single)
    best = int(np.argmin(errors))
    np.testing.assert_allclose(out, predicted[best], rtol=1e-6)
    expected = Ridge(HEAD_PENALTIES[best]).fit(scaled, y).predict(scaled)
    np.testing.assert_allclose(line.predict(x.astype(np.float32)), expected, rtol=1e-6)
    line.check(2, 0)
    assert set(line.state().attributes["line"]) == {"weight"}  # as earlier versions save it
    with pytest.raises(ValueError, match="linear head has coefficients"):
        line.check(3, 0)
    with pytest.raises(ValueError, match="linear head has weight 2"):
        replace(line, weight=2.0).check(2, 0)


class BoundedRidge(Ridge):
    """Rows are moved to the range of the training rows."""

    def fit(self, X, y):
        self.low, self.high = X.min(axis=0), X.max(axis=0)
        return super().fit(X, y)

    def predict(self, X):
        return super().predict(np.minimum(np.maximum(X, self.low), self.high))


@pytest.mark.parametrize("signal", [0.0, 0.05, 1.0])
def test_a_linear_head_has_all_summaries_if_they_are_better_by_a_standard_error(signal):
    """Both are scikit-learn's ridge; the means alone if the others are better by less."""
    x = rows(90, 5)
    y = x[:, :1] + signal * x[:, 3:4] + rows(90, 1, 1)
    y, folds = y.astype(np.float64), np.arange(90) % 3
    line, out = LinearHead.fitted(x, 2, y, judged_rows(y), folds)
    errors = []
    for m, ridge in ((2, Ridge), (5, BoundedRidge)):
        scaled = StandardScaler().fit_transform(x[:, :m].astype(np.float64))
        each = [
            cross_val_predict(ridge(penalty), scaled, y, cv=PredefinedSplit(folds))
            for penalty in HEAD_PENALTIES
        ]
        losses = [((predicted.reshape(-1, 1) - y) ** 2)[:, 0] for predicted in each]
        errors.append(min(losses, key=np.mean))
    gaps = errors[0] - errors[1]
    lead = gaps.mean() / (gaps.std(ddof=1) / 90**0.5)
    assert abs(lead - 1) > 0.1  # far from where the quantile of Student's distribution matters
    assert (lead > 0, lead > 1) == (signal > 0, signal == 1)
    assert line.coef.shape == (1, 5 if signal == 1 else 2)
    assert ((out - y) ** 2).mean() == pytest.approx(errors[int(signal == 1)].mean())
    far = 100 * x
    bounded = np.clip(far, x.min(axis=0), x.max(axis=0)) if signal == 1 else far
    np.testing.assert_array_equal(line.predict(far), line.predict(bounded))
    assert (line.predict(far) != line.predict(x)).any()


def test_a_stack_of_all_summaries_is_saved_and_predicts_alike(tmp_path):
    """Labels are variances, which means do not tell. Members are mixed as the report says."""
    rng = np.random.default_rng(0)
    spreads = rng.uniform(0.5, 2, 60)
    bags = [rng.normal(0, spread, (30, 2)) for spread in spreads]
    model = estimator(head="stack").fit(bags, spreads**2)
    assert model.report_["head"]["line_of"] == "summaries"
    line = model.model_.line
    assert line.coef.shape == (1, 10)  # 2 means, 3 covariances, 2 minima, 2 maxima, log n
    line_alone = replace(model.model_, line=replace(line, weight=1.0))
    summaries = np.array([summary_of(bag) for bag in bags], np.float32)
    expected = summaries @ line.coef.T + line.intercept
    trees = replace(model.model_.trees, weight=0.0)
    (alone,) = replace(line_alone, trees=trees).predicted(Bags.from_list(bags)).arrays().values()
    np.testing.assert_allclose(alone, expected[:, 0], rtol=1e-5)
    others = [estimator(head=head).fit(bags, spreads**2) for head in ("ridge", "trees")]
    members = [*(other.predict(bags) for other in others), alone]
    shares = [*model.report_["head"]["shares"].values()]
    np.testing.assert_allclose(model.predict(bags), shares @ np.array(members), rtol=1e-5)
    model.save(tmp_path / "m.zarr")
    assert np.array_equal(load_model(tmp_path / "m.zarr").predict(bags), model.predict(bags))
    state = model.model_.line.state()
    assert LinearHead.from_state(state, 1, 0).low == line.low
    state.attributes["line"]["low"] = line.low[1:]
    with pytest.raises(ValueError, match="the linear head has a range of other columns"):
        LinearHead.from_state(state, 1, 0)
    line = replace(line, coef=line.coef[:, :-1])
    with pytest.raises(ValueError, match="the linear head does not fit the embedding"):
        replace(model.model_, line=line).check_shapes()


@pytest.mark.long
def test_filters_of_warnings_are_left_as_they_are(monkeypatch):
    """Threads of scikit-learn's forests may restore them in another order, as empty ones."""
    kind = ExtraTreesRegressor
    fit = kind.fit

    def emptying(self, *arguments):
        fit(self, *arguments)
        warnings.filters = []
        return self

    monkeypatch.setattr(kind, "fit", emptying)
    before = list(warnings.filters)
    assert before
    estimator(head="trees").fit(BAGS, STEPS)
    assert list(warnings.filters) == before


@pytest.mark.parametrize("head", ["trees", "stack"])
@pytest.mark.parametrize(("origin", "unit"), [(0.0, 2.0**-660), (0.0, 2.0**1000), (1e9, 1.0)])
def test_heads_see_no_unit_and_no_origin_of_labels(head, origin, unit, monkeypatch):
    for most in (stacking.MAX_RANDOMISED, 40):  # randomised, then boosted
        monkeypatch.setattr(stacking, "MAX_RANDOMISED", most)
        plain = estimator(head=head).fit(BAGS, LINEAR).predict(BAGS)
        moved = estimator(head=head).fit(BAGS, (LINEAR + origin) * unit).predict(BAGS)
        atol = 0.02 * np.std(plain) if origin else 0.0
        np.testing.assert_allclose(moved / unit - origin, plain, rtol=0, atol=atol)


@pytest.mark.long
def test_many_bags_are_boosted(monkeypatch):
    monkeypatch.setattr(stacking, "MAX_RANDOMISED", 40)
    model = estimator(head="trees").fit(BAGS, np.stack([STEPS, LINEAR], axis=1))
    assert model.report_["head"]["kind"] == "boosted"
    assert model.model_.trees.n_trees == 200
    assert model.score(BAGS, np.stack([STEPS, LINEAR], axis=1)) > 0.9


@pytest.mark.long
def test_weights_of_bags_count_in_trees():
    """A bag of weight 0 is as one that is not there, in the trees and their share."""
    weights = (np.arange(N) % 2).astype(float)
    lied = np.where(weights > 0, STEPS, -50.0)
    model = estimator(head="trees").fit(BAGS, lied, sample_weight=weights)
    assert model.predict(BAGS).min() >= STEPS.min()


@pytest.mark.long
def test_bags_of_a_store_are_predicted_as_those_in_memory(tmp_path):
    """Lazily, block by block; and judged by the errors of the folds without a holdout."""
    store = stored(tmp_path / "s.zarr", list(BAGS), STEPS, chunk_points=50)
    with pass_limits(block_seconds=1e-7, partition_bytes=60 * 16):
        model = estimator(head="stack").fit(store)
        lazy = model.predict(store)
        assert lazy.numblocks[0] > 3
        np.testing.assert_allclose(lazy.compute(), model.predict(BAGS), rtol=1e-6)
    assert np.allclose(model.predict(BAGS), estimator(head="stack").fit(BAGS, STEPS).predict(BAGS))
    error = model.report_["head"]["errors"]["stack"]
    assert judge_fit(model, store)["error"] == pytest.approx(np.sqrt(error))


@pytest.mark.long
def test_folds_of_scores_are_fitted_anew():
    scores = cross_val_score(estimator(head="trees"), BAGS, STEPS, cv=3)
    ridge = cross_val_score(estimator(), BAGS, STEPS, cv=3)
    assert scores.mean() > ridge.mean()


def test_what_a_ridge_alone_has_is_refused():
    with pytest.raises(ParameterError, match="uncertainty=True is of a ridge"):
        estimator(head="stack", uncertainty=True).fit(BAGS, STEPS)
    model = estimator(head="stack").fit(BAGS, STEPS)
    with pytest.raises(ParameterError, match="cv makes folds of the ridge alone"):
        model.conformalize(BAGS, STEPS, cv=5)
    with pytest.raises(ParameterError, match="rounds go on from sums"):
        Retraining("s.zarr", "registry", estimator=estimator(head="trees"))
    assert "head" not in TripleBasisRegressor().get_params()
    with pytest.raises(ParameterError, match="head"):
        estimator(head="forest").fit(BAGS, STEPS)
