"""A penalty is chosen by leaving out groups, or fifths of the bags, from the sums of one pass."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ParameterError,
    RandomFourierFeatures,
    cross_val_score,
)
from bagbasis.data.labelled.column_splits import GroupFolds
from bagbasis.data.labelled.columns import Column
from bagbasis.models.fitting.partials import read_partial, write_partial
from bagbasis.models.fitting.planning import plan_fit
from bagbasis.models.fitting.problem import pose_problem
from tests.oracles import ridge
from tests.oracles.planned import FitPlan, fit_parameters_of, folds_by_content

GRID = [10.0**e for e in np.arange(-5, 3, 0.5)]


def grouped_bags(n_groups=60, per_group=4, seed=0):
    """Bags of a group lie together and share an effect on the label that no bag shows."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-2, 2, (n_groups, 2))
    effects = rng.normal(size=n_groups)
    groups = np.repeat(np.arange(n_groups), per_group)
    points = [centres[g] + 0.03 * rng.normal(size=(15, 2)) for g in groups]
    y = centres[groups, 0] + effects[groups] + 0.1 * rng.normal(size=len(groups))
    return Bags.from_list(points), y, groups


def model(n_features, **params):
    second = RandomFourierFeatures(n_features=n_features, seed=2)
    return DoubleBasisRegressor(MomentsEmbedding(), second, precision="float64", **params)


def errors_over_folds(z, y, folds, weights=None):
    """Mean squared error over variance of models fitted to the other folds, per penalty."""
    weights = np.ones(len(y)) if weights is None else weights
    errors = np.zeros(len(GRID))
    for fold in np.unique(folds):
        train, test = folds != fold, folds == fold
        for i, alpha in enumerate(GRID):
            scaled = alpha * weights[train].sum() / weights.sum()
            roots = np.sqrt(weights[train])[:, None]
            mean_z = weights[train] @ z[train] / weights[train].sum()
            mean_y = weights[train] @ y[train] / weights[train].sum()
            zc, yc = (z[train] - mean_z) * roots, (y[train] - mean_y)[:, None] * roots
            psi = np.linalg.solve(zc.T @ zc + scaled * np.eye(z.shape[1]), zc.T @ yc)[:, 0]
            remaining = (z[test] - mean_z) @ psi + mean_y - y[test]
            errors[i] += weights[test] @ remaining**2
    mean = weights @ y / weights.sum()
    return errors / (weights @ (y - mean) ** 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_features", "weighted", "by"),  # each pair of two values
    [(40, False, "groups"), (40, True, "bags"), (512, False, "bags"), (512, True, "groups")],
)
def test_the_penalty_is_that_of_models_without_a_fold(n_features, weighted, by):
    """Folds are of whole groups where there are any; else of equally many bags, by content."""
    bags, y, groups = grouped_bags()
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    if by == "groups":
        folds = GroupFolds.of_column(Column("groups", values=groups)).of(np.arange(len(y)))
        result = model(n_features, alphas=GRID).fit(bags, y, groups=groups, sample_weight=weights)
    else:
        folds = folds_by_content(bags, y, 5)
        result = model(n_features, alpha="folds", alphas=GRID).fit(bags, y, sample_weight=weights)
    z = np.empty((len(bags), n_features))
    result.features_.features_of(result.features_.embed(bags, np.float64)[0], z)
    errors = errors_over_folds(z, y, folds, weights)
    np.testing.assert_allclose(result.alpha_scores_, errors, rtol=1e-6)
    assert result.alpha_ == GRID[int(errors.argmin())]
    if by == "groups":
        ungrouped = model(n_features, alpha="gcv", alphas=GRID)
        ungrouped.fit(bags, y, sample_weight=weights)
        # GCV takes the bags of a group for independent: at small penalties most of all
        assert (result.alpha_scores_[:8] > 1.1 * ungrouped.alpha_scores_[:8]).all()
    coef, _ = ridge.ridge(z, y[:, None], result.alpha_)
    if not weighted:
        np.testing.assert_allclose(
            np.atleast_2d(result.coef_), coef, atol=1e-7 * np.abs(coef).max()
        )


@pytest.mark.long
@pytest.mark.parametrize("n_features", [128, 640], ids=["all", "searched"])
@pytest.mark.parametrize("n_groups", [60, 200], ids=["rows", "sums"])
def test_the_least_error_of_several_valleys_is_found(n_features, n_groups):
    """Errors of left groups have valleys over the penalty; a search begins in the deepest."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-2, 2, (n_groups, 2))
    groups = np.repeat(np.arange(n_groups), 4)
    bags = Bags.from_list([centres[g] + 0.3 * rng.normal(size=(20, 2)) for g in groups])
    y = np.sin(2 * centres[groups, 0]) + 0.4 * rng.normal(size=n_groups)[groups]
    result = model(n_features).fit(bags, y, groups=groups)
    whole = len(y) * 10.0 ** np.arange(-12, 2.25, 0.5)
    exact = model(n_features, alphas=whole).fit(bags, y, groups=groups)
    assert result.alpha_scores_.min() == pytest.approx(exact.alpha_scores_.min(), rel=1e-6)


@pytest.mark.long
def test_the_error_told_is_that_of_new_groups():
    bags, y, groups = grouped_bags(150)
    result = model(300).fit(bags, y, groups=groups)
    new, truth, new_groups = grouped_bags(400, seed=7)
    losses = (result.predict(new) - truth) ** 2 / truth.var()
    of_groups = np.bincount(new_groups, losses) / np.bincount(new_groups)
    spread = of_groups.std() / len(of_groups) ** 0.5
    message = result.alpha_scores_.min()
    # its own spread is that of fewer groups
    assert abs(message - losses.mean()) < 2 * spread * (1 + 400 / 150) ** 0.5
    alone = model(300).fit(bags, y)
    assert ((alone.predict(new) - truth) ** 2).mean() > ((result.predict(new) - truth) ** 2).mean()


@pytest.mark.long
def test_a_store_its_holdout_and_values_choose_alike(tmp_path):
    bags, y, groups = grouped_bags()
    box = [(-4, 4), (-4, 4)]
    store = BagStore.create(tmp_path / "s.zarr", n_dims=2, target_names=["y", "g"], box=box)
    store.append(bags, targets={"y": y, "g": groups})
    named = model(40).fit(store, target="y", groups="g")
    for case in ({"groups": groups}, {"holdout": {"groups": "g"}}):
        other = model(40).fit(store, target="y", **case)
        assert other.alpha_ == named.alpha_
        np.testing.assert_array_equal(other.coef_, named.coef_)
    texts = model(40).fit(bags, y, groups=[f"g{g}" for g in groups])
    assert np.isfinite(texts.alpha_scores_).any()
    out = model(40).fit(store, target="y", groups="g", holdout=0.2)
    assert out.holdout_["groups"] == "g"
    with pytest.raises(ParameterError, match="leave one of them out"):
        model(40).fit(store, target="y", groups=groups, holdout={"fraction": 0.2, "groups": "g"})


def test_one_group_is_as_no_groups():
    bags, y, _ = grouped_bags(20)
    single = model(40).fit(bags, y, groups=np.zeros(len(y)))
    assert single.alpha_ == model(40).fit(bags, y).alpha_


def test_classes_leave_groups_out():
    bags, y, groups = grouped_bags()
    classifier = DoubleBasisClassifier(
        MomentsEmbedding(), RandomFourierFeatures(n_features=300), alphas=GRID
    )
    grouped = clone(classifier).fit(bags, y > 0, groups=groups)
    alone = clone(classifier).fit(bags, y > 0)
    assert grouped.alpha_ >= alone.alpha_
    assert grouped.alpha_scores_.min() > 1.05 * alone.alpha_scores_.min()


def test_each_fold_chooses_by_its_own_groups():
    """With features that no sample decides, each fold's model is that of a fit to the others."""
    bags, y, groups = grouped_bags()
    embedding = MomentsEmbedding(standardize=False, box=[(-4, 4), (-4, 4)])
    second = RandomFourierFeatures(n_features=40, scale=0.3)
    estimator = DoubleBasisRegressor(embedding, second, alphas=GRID, precision="float64")
    scores = cross_val_score(estimator, bags, y, groups=groups, cv=4)
    apart = []
    for train, test in GroupKFold(4).split(groups, groups=groups):
        fitted = clone(estimator).fit(bags[train], y[train], groups=groups[train])
        apart.append(fitted.score(bags[test], y[test]))
    np.testing.assert_allclose(scores, apart, rtol=1e-6)


@pytest.mark.parametrize("n_features", [40, 512], ids=["sums", "rows"])
def test_sums_of_folds_are_kept_whole(tmp_path, n_features):
    """A checkpoint holds the sums of each fold, bit for bit; sums without folds as before."""
    bags, y, groups = grouped_bags()
    parameters = fit_parameters_of(model(n_features))
    plan: FitPlan = plan_fit(pose_problem(parameters, bags, y, groups=groups), parameters)
    sums = plan.run()
    assert sums.folds is not None
    write_partial(tmp_path / "p.npz", sums)
    read = read_partial(tmp_path / "p.npz")
    for ours, theirs in zip(sums.folds.parts, read.folds.parts, strict=True):
        np.testing.assert_array_equal(ours.sum_z, theirs.sum_z)
        np.testing.assert_array_equal(ours.right_side(), theirs.right_side())
    assert read.train.n == sums.train.n == sum(part.n for part in sums.folds.parts)
