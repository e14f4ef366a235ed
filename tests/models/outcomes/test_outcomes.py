"""Outcomes: what every kind of label holds to."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from bagbasis import BagStore, DataError, ProjectionEmbedding, Responses, as_responses
from bagbasis.models.outcomes.classes import Classes
from bagbasis.models.outcomes.densities import DensityOutcome
from bagbasis.models.outcomes.kinds import OUTCOMES, identify_outcome
from tests.oracles.planned import Reals

RNG = np.random.default_rng(0)
N = 7
SPEC = ProjectionEmbedding(n_per_dim=3).fit([RNG.random((5, 2))]).spec_
CASES = {
    "one number": (Reals(1, True, ("y",)), RNG.normal(size=(N, 1))),
    "a list of one": (Reals(1, False, ("y",)), RNG.normal(size=(N, 1))),
    "numbers in memory": (Reals(2), RNG.normal(size=(N, 2))),
    "classes": (Classes((0, 2, 5), ("kind",)), np.array([0, 2, 5, 5, 2, 0, 2.0])[:, None]),
    "named": (Classes((0, 1), ("kind",), ("z", "a")), np.array([0, 1, 1, 0, 0, 1, 0.0])[:, None]),
    "text": (Classes(("a", "z", "ü")), np.array([0, 1, 2, 2, 1, 0, 1.0])[:, None]),
    "halves": (Classes((0.5, 1.5), ("kind",)), np.array([0.5, 1.5] * 3 + [0.5])[:, None]),
    "densities": (DensityOutcome(SPEC), as_responses([RNG.random((4, 2)) for _ in range(N)], N)),
}


@pytest.fixture(params=CASES)
def case(request):
    """An outcome, and labels of seven bags."""
    return CASES[request.param]


def test_it_travels_and_is_saved(case):
    """Through pickle and through JSON it stays the same; each kind has a key of its own."""
    outcome, _ = case
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    values = json.loads(json.dumps(outcome.to_dict()))
    assert set(values) - {"class_names"} == {outcome.key}
    again = type(outcome).from_dict(values, outcome.names, outcome.n_targets)
    assert again == outcome
    assert hash(again) == hash(outcome)
    assert identify_outcome(again) == identify_outcome(outcome)
    assert len({kind.key for kind in OUTCOMES}) == len(OUTCOMES)


def test_perfect_scores_have_no_error(case):
    """Scores that are the encoded labels: no loss, and the labels are predicted."""
    outcome, labels = case
    targets, n_outside = outcome.encode(labels)
    assert (targets.shape, n_outside) == ((N, outcome.n_targets), 0)
    losses = outcome.losses(targets, targets)
    np.testing.assert_array_equal(losses, 0)
    assert outcome.error(losses.mean(axis=0), targets.var(axis=0)) == 0
    predicted = outcome.predict(targets).values
    if not isinstance(labels, Responses):
        if isinstance(outcome, Classes):
            predicted = outcome.codes_of(predicted.tolist())
        np.testing.assert_array_equal(predicted.reshape(labels.shape), labels)


def test_errors_grow_with_the_scores_errors(case):
    """A worse score has a larger error, in the measure that the outcome names."""
    outcome, labels = case
    targets, _ = outcome.encode(labels)
    assert outcome.measure
    errors = []
    for scale in (0.1, 10.0):
        losses = outcome.losses(targets + scale * RNG.normal(size=targets.shape), targets)
        errors.append(outcome.error(losses.mean(axis=0), targets.var(axis=0)))
    assert errors[0] < errors[1]


def test_stored_arrays_and_columns(case):
    """Arrays of predictions have the shapes and types that are made for them; a table has a
    column per number."""
    outcome, _ = case
    prediction = outcome.predict(RNG.normal(size=(N, outcome.n_targets)))
    arrays, stored = prediction.arrays(), outcome.stored()
    assert list(arrays) == list(stored)
    for name, column in stored.items():
        assert arrays[name].shape == (N, *column.tail)
        assert arrays[name].dtype == column.dtype
    columns = outcome.columns(prediction)
    assert all(values.shape == (N,) for values in columns.values())
    assert len(columns) == sum(int(np.prod(column.tail)) for column in stored.values())


def test_names_of_classes():
    """They name columns, and are in reports; sums of a fit do not depend on them."""
    named, plain = CASES["named"][0], Classes((0, 1), ("kind",))
    assert list(named.columns(named.predict(np.eye(2)))) == ["kind", "p_z", "p_a"]
    assert named.describe() == {"classes": ["z", "a"]}
    assert named.call(1) == "class 'a'"
    assert identify_outcome(named) == identify_outcome(plain)
    assert Classes.from_dict({"classes": [0, 1]}, ("kind",), 2) == plain  # a model of before
    with pytest.raises(ValueError, match="2 rows of coefficients"):
        Classes.from_dict({"classes": [0, 1], "class_names": ["z"]}, ("kind",), 2)


def test_new_labels():
    """Only classes can meet a label that they have no column for; others read nothing."""
    blocks = iter([np.array([[0.0], [7.0]]), np.array([[3.0]])])
    assert CASES["classes"][0].find_new(blocks).tolist() == [3, 7]
    for name in ("one number", "densities"):
        assert not len(CASES[name][0].find_new(pytest.fail(name) for _ in range(1)))


def test_labels_of_a_store(tmp_path):
    """The store has the targets, or responses of the dimension; or it is refused by name."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y", "z"], response_dims=3)
    assert Reals(2, False, ("z", "y")).take_labels(store).target_names == ("z", "y")
    with pytest.raises(DataError, match="kind"):
        CASES["classes"][0].take_labels(store)
    with pytest.raises(DataError, match="fitted to labels in memory"):
        Reals(2).take_labels(store)
    with pytest.raises(DataError, match="responses have dimension 3, the model predicts"):
        DensityOutcome(SPEC).take_labels(store)


@pytest.mark.parametrize("kind", [Classes, DensityOutcome])
def test_another_number_of_columns_is_refused(kind):
    """What was saved has to fit the coefficients."""
    outcome = {Classes: CASES["classes"][0], DensityOutcome: CASES["densities"][0]}[kind]
    with pytest.raises(ValueError, match="rows of coefficients"):
        kind.from_dict(outcome.to_dict(), outcome.names, outcome.n_targets + 1)
