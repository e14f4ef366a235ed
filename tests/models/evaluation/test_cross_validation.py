"""`cross_val_score`: folds from one pass, against a fit per fold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

from bagbasis import (
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    cross_val_score,
)
from bagbasis.models.evaluation import cross_validation
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.planned import posed
from tests.passes import pass_limits
from tests.workers import two_workers

N, CV = 230, 4
BAGS, Y = labelled_bags(N, most=25)
PATIENT = np.arange(N) // 7 % 20
DAY = np.random.default_rng(1).permutation(N) // 3


def targets():
    y = np.stack([Y, Y**2 + 0.1 * DAY, PATIENT, DAY, Y > 0.3], axis=1).astype(float)
    y[::9, :2] = np.nan
    return y


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    url = tmp_path_factory.mktemp("folds") / "s.zarr"
    return stored(url, BAGS, targets(), ["y", "z", "patient", "day", "high"], chunk_points=300)


def small(kind=DoubleBasisRegressor, n_features=64, alpha=0.05, **parameters):
    bases = ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(n_features=n_features)
    return kind(*bases, alpha=alpha, precision="float64", **parameters)


def folds_of(**arguments):
    bags = posed(DoubleBasisRegressor(), BAGS, Y).source
    return cross_validation.choose_folds(bags, CV, arguments.get("groups"), arguments.get("time"))


def one_by_one(estimator, names, folds, is_time=False, score=r2_score):
    """A fit per fold, to labels that are missing in the fold and after it in time."""
    y, result = targets()[:, [["y", "z", "patient", "day", "high"].index(n) for n in names]], []
    for j in range(CV):
        out = folds >= j if is_time else folds == j
        labels = np.where(out[:, None], np.nan, y)
        model = clone(estimator).fit(BAGS, labels[:, 0] if len(names) == 1 else labels)
        test = np.flatnonzero((folds == j) & ~np.isnan(y).any(axis=1))
        predicted = model.predict([BAGS[i] for i in test])
        result.append(score(y[test], predicted))
    return result


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_features", "alpha", "names"),  # with 256 features, rows instead of sums
    [
        (64, 0.05, ["y"]),
        (256, 0.05, ["y", "z"]),
        (64, "gcv", ["y", "z"]),
        (256, "gcv", ["y"]),
        (64, "validation", ["y"]),
        (256, "validation", ["y", "z"]),
    ],
)
def test_numbers_equal_a_fit_per_fold(store, n_features, alpha, names):
    """To 1e-8 in double: of one or two targets, of sums and of rows, for every penalty."""
    alphas = None if alpha == 0.05 else np.logspace(-3, 2, 6)
    estimator = small(n_features=n_features, alpha=alpha, alphas=alphas)
    scores = cross_val_score(estimator, store, target=names, cv=CV)
    np.testing.assert_allclose(scores, one_by_one(estimator, names, folds_of()), rtol=0, atol=1e-8)
    assert not hasattr(estimator, "coef_")


def test_folds_of_time_are_spans_of_as_many_bags():
    """The first span is only fitted to."""
    times = np.random.default_rng(0).permutation(N)
    folds = folds_of(time=times)[np.argsort(times)]
    assert (np.diff(folds) >= 0).all()
    sizes = np.bincount(folds + 1)
    assert len(sizes) == CV + 1
    assert np.ptp(sizes) <= 1


@pytest.mark.parametrize("how", ["groups", "time"])
@pytest.mark.parametrize("where", ["store", "memory"])
def test_groups_and_time(store, how, where):
    """Bags of a group are in one fold; in time each fold is predicted from what was before."""
    column, name = (PATIENT, "patient") if how == "groups" else (DAY, "day")
    folds = folds_of(**{how: column})
    if how == "groups":
        assert all(len(set(folds[column == group])) == 1 for group in set(column))
        assert np.bincount(folds).min() > N / CV / 2
    else:
        assert all(column[folds < j].max() < column[folds == j].min() for j in range(CV))
    expected = one_by_one(small(), ["y"], folds, how == "time")
    if where == "store":
        scores = cross_val_score(small(), store, target="y", cv=CV, **{how: name})
    else:
        scores = cross_val_score(small(), BAGS, targets()[:, 0], cv=CV, **{how: column})
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8)


@pytest.mark.long
def test_classes_and_densities(store, tmp_path):
    """Accuracy, as of a fit per fold; densities better than their average."""
    classifier = small(DoubleBasisClassifier)
    scores = cross_val_score(classifier, store, target="high", cv=CV)
    expected = one_by_one(classifier, ["high"], folds_of(), score=accuracy_score)
    assert scores.tolist() == pytest.approx(expected)
    pairs = BagStore.create(tmp_path / "p.zarr", 2, response_dims=2)
    pairs.append(BAGS, responses=[None if i % 9 == 0 else 1 - b for i, b in enumerate(BAGS)])
    densities = small(TripleBasisRegressor, response_embedding=ProjectionEmbedding(n_per_dim=3))
    scores = cross_val_score(densities, pairs, cv=3)
    assert scores.shape == (3,)
    assert (scores > 0).all()
    assert (scores < 1).all()


@pytest.mark.long
def test_one_pass_however_it_is_cut(store):
    """Bags are read once, in many tasks or few, here and on two workers."""
    whole = cross_val_score(small(), store, target="y", cv=CV)
    seen = []
    with pass_limits(small_task_seconds=1e-9, small_tasks=64):
        cut = cross_val_score(small(), store, target="y", cv=CV, progress=lambda *d: seen.append(d))
        with two_workers():
            there = cross_val_score(small(), store, target="y", cv=CV)
    np.testing.assert_allclose(cut, whole, rtol=1e-9)
    np.testing.assert_allclose(there, cut, rtol=1e-12)  # of fewer cores BLAS sums otherwise
    assert [done for done, _ in seen].count(N) == 1


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"groups": "patient", "time": "day"}, ParameterError, "groups and time"),
        ({"groups": "nobody"}, DataError, "no target 'nobody'"),
        ({"groups": "z"}, DataError, "z: bag 0 has none"),
        *(
            ({"groups": np.resize(np.array(["a", none], object), N)}, DataError, "bag 1 has none")
            for none in (None, np.nan, pd.NA, pd.NaT)
        ),
        ({"time": np.full(N, np.datetime64("NaT"))}, DataError, "time: bag 0 has none"),
        ({"groups": np.arange(N) % 2}, DataError, "2 groups, fewer than the 4 folds"),
        ({"time": [1, 2]}, DataError, r"time has shape \(2,\)"),
        ({"time": np.full(N, "x")}, DataError, "numbers or dates"),
        ({"time": np.zeros(N)}, DataError, "fold 0 has no labelled bag"),
        ({"target": "nothing"}, DataError, "no target 'nothing'"),
    ],
)
def test_refused(store, arguments, kind, message):
    with pytest.raises(kind, match=message):
        cross_val_score(small(), store, **{"target": "y", "cv": CV, **arguments})
