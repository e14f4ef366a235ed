"""`sample_weight=` where models are judged and chosen: integer weights are repeated bags."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    cross_val_score,
    evaluate,
)
from bagbasis.models import Search, judge_fit, tune
from bagbasis.models.evaluation import cross_validation
from tests.oracles.labelled import labelled_bags

N = 160
BAGS, Y = labelled_bags(N, most=12)
TIMES = np.random.default_rng(7).integers(0, 4, N)
AGAIN = np.repeat(np.arange(N), TIMES)
NAMES = ["y", "high", "times", "zero", "all"]
KINDS = {
    "numbers": (DoubleBasisRegressor, {}, "y"),
    "classes": (DoubleBasisClassifier, {}, "high"),
    "densities": (
        TripleBasisRegressor, {"response_embedding": ProjectionEmbedding(n_per_dim=3)}, None
    ),
}  # fmt: skip


def made(url, rows):
    store = BagStore.create(url, 2, target_names=NAMES, response_dims=2)
    columns = np.stack([Y, Y > 0.2, TIMES, 0 * TIMES, 0 * Y + 1], axis=1)[rows]
    bags = [BAGS[i] for i in rows]
    return store.append(bags, columns, responses=[1 - bag for bag in bags])


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Bags with weights, and each as often as it weighs."""
    where = tmp_path_factory.mktemp("weighted")
    return made(where / "once.zarr", np.arange(N)), made(where / "again.zarr", AGAIN)


def small(kind, alpha=0.02, **parameters):
    bases = ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=32, scale=1.0)
    return kind(*bases, alpha=alpha, precision="float64", **parameters)


def labels(target):
    return {} if target is None else {"target": target}


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_those_of_repeated_bags(stores, kind):
    """evaluate and score, of numbers, classes and densities."""
    once, again = stores
    estimator, more, target = KINDS[kind]
    model = small(estimator, **more).fit(once, **labels(target))
    errors = evaluate(model, once, sample_weight="times")
    expected = evaluate(model, again)
    assert (errors.n, errors.weight) == (N, expected.n)
    assert errors.error == pytest.approx(expected.error)
    assert errors.constant_error == pytest.approx(expected.constant_error)
    [ours], [theirs] = errors.values().values(), expected.values().values()
    for name in set(ours) - {"n", "confusion", "per_class"}:
        assert ours[name] == pytest.approx(theirs[name]), name
    if kind == "classes":
        np.testing.assert_allclose(ours["confusion"], theirs["confusion"])
    if target is not None:
        for value in ("times", TIMES):
            score = model.score(once, sample_weight=value)
            assert score == pytest.approx(model.score(again))
    for value, message in [("zero", "weights of all bags are 0"), ("no", "no target 'no'")]:
        with pytest.raises(DataError, match=message):
            evaluate(model, once, sample_weight=value)


@pytest.mark.parametrize("kind", KINDS)
def test_folds_of_repeated_bags(stores, kind, monkeypatch):
    """Each fold's model and its score are those of bags repeated within the fold."""
    once, again = stores
    estimator, more, target = KINDS[kind]
    folds = np.arange(N) % 3
    values = []
    for store, of_bags, weights in ((once, folds, "times"), (again, folds[AGAIN], None)):
        chosen = of_bags.astype(np.int16)
        monkeypatch.setattr(cross_validation, "choose_folds", lambda *inputs, f=chosen: f)
        model = small(estimator, **more)
        arguments = {"cv": 3, "sample_weight": weights, **labels(target)}
        values.append(cross_val_score(model, store, **arguments))
    np.testing.assert_allclose(*values, rtol=1e-7)


@pytest.mark.long
def test_a_fit_is_judged_by_its_weights(stores):
    """With a baseline that is fitted to them, too; a tune counts them in its last fit."""
    once, _ = stores
    model = small(DoubleBasisRegressor).fit(once, target="y", sample_weight="times", holdout=0.4)
    judged = judge_fit(model, once)
    errors = evaluate(model, once, sample_weight="times")
    assert judged["error"] == pytest.approx(errors.error)
    plain = small(DoubleBasisRegressor).fit(once, target="y", holdout=0.4)
    assert judge_fit(plain, once)["means_error"] != judged["means_error"]
    search = Search([ProjectionEmbedding(n_per_dim=3)], scale_multipliers=(1.0,), first_bags=N)
    tuned = tune(
        small(DoubleBasisRegressor), once, search=search, target="y", sample_weight="times"
    )
    assert tuned.model.weights_ == {"column": "times", "by_class": None}
    ones = tune(small(DoubleBasisRegressor), once, search=search, target="y", sample_weight="all")
    without = tune(small(DoubleBasisRegressor), once, search=search, target="y")
    scores = [[s.error for s in item.scores[0].values()] for item in (tuned, ones, without)]
    np.testing.assert_allclose(scores[1], scores[2])
    assert scores[0] != scores[1]
