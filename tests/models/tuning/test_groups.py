"""`tune` of bags that come in groups: the penalty is one that whole groups were left out for, and
the winner is judged on groups that no choice has seen, next to what it has to beat."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from bagbasis import (
    BagbasisWarning,
    Bags,
    BagStore,
    DoubleBasisRegressor,
    MomentsEmbedding,
    RandomFourierFeatures,
    evaluate,
)
from bagbasis.models import Score, Search, judge_fit, tune
from bagbasis.models.base import with_model
from bagbasis.models.tuning.last_fit import fit_winner, penalty_that_costs, warn_of_penalty

N_GROUPS, PER_GROUP, N_FEATURES = 80, 4, 512
SEARCH = Search([MomentsEmbedding(), MomentsEmbedding(covariance=False)], scale_multipliers=(1.0,))


def grouped_bags(n_groups=N_GROUPS, seed=0):
    """Bags of a group lie together and share an effect on the label that no bag shows."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-2, 2, (n_groups, 2))
    effects = 0.5 * rng.normal(size=n_groups)
    groups = np.repeat(np.arange(n_groups), PER_GROUP)
    points = [centres[g] + 0.05 * rng.normal(size=(20, 2)) for g in groups]
    y = np.sin(centres[groups, 0]) + effects[groups] + 0.1 * rng.normal(size=len(groups))
    return Bags.from_list(points), y, groups


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    url = tmp_path_factory.mktemp("groups") / "s.zarr"
    bags, y, groups = grouped_bags()
    made = BagStore.create(url, 2, target_names=["y", "group"], box=[(-4, 4), (-4, 4)])
    return made.append(bags, targets={"y": y, "group": groups})


def estimator(**params):
    second = RandomFourierFeatures(n_features=N_FEATURES, seed=1)
    return DoubleBasisRegressor(
        random_features=second, precision="float64", validation_fraction=0.3, **params
    )


def errors_without_each_group(model, alphas):
    """Leave-group-out by brute force: squared error over the variance, one model per group."""
    bags, y, groups = grouped_bags()
    z = np.empty((len(y), N_FEATURES))
    model.features_.features_of(model.features_.embed(bags, np.float64)[0], z)
    squares = np.zeros(len(alphas))
    for group in range(N_GROUPS):
        out = groups == group
        mean_z, mean_y = z[~out].mean(axis=0), y[~out].mean()
        rows = z[~out] - mean_z
        values, vectors = np.linalg.eigh(rows @ rows.T)
        seen = (z[out] - mean_z) @ rows.T @ vectors
        right = vectors.T @ (y[~out] - mean_y)
        for i, alpha in enumerate(alphas * (~out).mean()):
            left = seen @ (right / (values + alpha)) + mean_y - y[out]
            squares[i] += (left**2).sum()
    return squares / len(y) / y.var()


@pytest.mark.long
def test_the_penalty_is_that_of_brute_force(store):
    """Leaving out each group gives the same point of the grid, or its neighbour, and nearly its
    error. GCV, which treats the bags of a group as independent, is far off on new groups."""
    result = tune(estimator(), store, search=SEARCH, target="y", holdout={"groups": "group"})
    model = result.model
    grid = store.n_bags * 10.0 ** np.arange(-12, 2.25, 0.5)
    truth = errors_without_each_group(model, grid)
    best = int(truth.argmin())
    assert grid[best - 1] * 0.99 < model.alpha_ < grid[best + 1] * 1.01
    assert model.alpha_scores_.min() == pytest.approx(truth[best], rel=0.1)
    by_gcv = clone(model).set_params(alpha="gcv").fit(store, target="y")
    assert by_gcv.alpha_ < model.alpha_ / 100
    new, labels, _ = grouped_bags(400, seed=5)
    assert model.score(new, labels) > by_gcv.score(new, labels) + 0.3


@pytest.mark.long
def test_groups_are_a_column_or_values(store):
    """They reach the comparison of candidates, the last fit and the leads, without a holdout."""
    values = store.targets(names=["group"])[:, 0]
    named = tune(estimator(), store, search=SEARCH, target="y", groups="group")
    value = tune(estimator(), store, search=SEARCH, target="y", groups=values)
    alone = tune(estimator(), store, search=SEARCH, target="y")
    assert named.model.alpha_ == value.model.alpha_ > 100 * alone.model.alpha_
    held = value.scores[-1][0].n_held_out
    assert held % PER_GROUP == 0, "whole groups are held out"
    errors = [item.scores[-1][item.winner].error for item in (value, alone)]
    assert errors[0] > 2 * errors[1], "a group's bags tell each other's label"


@pytest.mark.long
def test_scores_of_other_groups_are_not_taken_from_the_records(store, tmp_path):
    checkpoints = tmp_path / "state"
    tune(estimator(), store, search=SEARCH, target="y", checkpoints=checkpoints)
    again = tune(
        estimator(), store, search=SEARCH, target="y", checkpoints=checkpoints, groups="group"
    )
    anew = tune(estimator(), store, search=SEARCH, target="y", groups="group")
    assert [item.error for item in again.scores[-1].values()] == [
        item.error for item in anew.scores[-1].values()
    ]


@pytest.mark.long
def test_beside_a_baseline_the_groups_that_compared_choose(store):
    """Folds know no baseline: the penalty is that of the groups which compared the candidates."""
    base = estimator(baseline="linear")
    result = tune(base, store, search=SEARCH, target="y", groups="group")
    assert result.model.alpha == "validation"
    assert result.model.alpha_ == result.scores[-1][result.winner].alpha


@pytest.mark.long
def test_the_winner_is_judged_on_groups_that_no_choice_saw(store):
    out = {"fraction": 0.3, "groups": "group"}
    result = tune(estimator(), store, search=SEARCH, target="y", holdout=out)
    judged, errors = result.judged, evaluate(result.model, store, subset="holdout")
    assert judged["n"] == errors.n
    assert judged["n"] % PER_GROUP == 0
    assert judged["error"] == errors.error < judged["constant_error"]
    assert judged == judge_fit(result.model, store, forest=True)
    assert {"means_error", "forest_error"} < judged.keys()


def test_a_penalty_that_held_out_bags_refute_is_told(store):
    """Not where it costs little, nor where the bags held out are too few to tell."""
    model = clone(estimator(alpha=1e-6)).set_params(embedding=MomentsEmbedding())
    model.fit(store, target="y")
    path = ((1e-6, 1e-2, 1.0), (0.9, 0.7, 0.5))
    score = Score(
        error=0.5,
        n_bags=320,
        n_train=220,
        n_held_out=100,
        alpha=1.0,
        alphas=path[0],
        errors=path[1],
        seconds=0.1,
    )
    assert penalty_that_costs(score, model) == 1e-6
    with pytest.warns(BagbasisWarning, match=r"1,000,000 times smaller .* costs 80% of the error"):
        warn_of_penalty(score, model, 0.4, 0.1)
    level = replace(score, errors=(0.501, 0.5, 0.5))
    assert penalty_that_costs(level, model) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_penalty(score, model, 0.4, 0.3)


@pytest.mark.parametrize("is_by_chance", [False, True])
def test_a_tune_weighs_what_the_last_penalty_costs(store, monkeypatch, is_by_chance):
    """The cost is that of the same bags, and its standard error is over whole groups."""
    fitted = []

    def fit(*arguments):
        fitted.append(fit_winner(*arguments))
        solution = replace(fitted[-1].model_.solution, alpha=1e3)
        return with_model(fitted[-1], replace(fitted[-1].model_, solution=solution))

    monkeypatch.setattr("bagbasis.models.tuning.halving.fit_winner", fit)
    if is_by_chance:
        monkeypatch.setattr("bagbasis.models.tuning.last_fit.ERRORS_OF_COST", 1e6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = tune(
            estimator(alphas=np.logspace(-9, 3, 13)),
            store,
            search=SEARCH,
            target="y",
            groups="group",
        )
    messages = [str(w.message) for w in caught if "the penalty of the last fit" in str(w.message)]
    assert len(messages) == (0 if is_by_chance else 1)
    score = result.scores[-1][result.winner]
    nearest = int(np.abs(np.log(np.array(score.alphas) / 1e3)).argmin())
    cost = score.errors[nearest] / score.error - 1
    assert is_by_chance or f"costs {cost:.0%} of the error" in messages[0]
