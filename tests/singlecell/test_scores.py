"""The four scores on cases that can be counted by hand."""

import numpy as np
import pytest

from bagbasis import BagbasisError, DataError
from bagbasis.singlecell import (
    batch_score,
    information_retention,
    replicate_robustness,
    trajectory_score,
)


def on_a_line(places):
    """Distances of samples that lie on a line."""
    places = np.asarray(places, dtype=float)
    return np.abs(places[:, None] - places[None, :])


def test_information_retention_of_classes():
    """Two clusters are told perfectly; one sample in the wrong cluster costs what F1 says."""
    distances = on_a_line([0, 1, 2, 3, 50, 51, 52, 53])
    assert information_retention(distances, list("aaaabbbb")) == 1
    # a: hits 3 of 4 predicted and 4 true less the stranger; 2·3/(4+4); b likewise
    result = information_retention(distances, list("baaaabbb"), n_neighbors=3)
    assert result == pytest.approx((0.75 - 0.5) * 2)
    assert information_retention(distances, ["a"] * 8) == 0
    assert information_retention(distances, list("abababab"), n_neighbors=1) == 0


def test_information_retention_of_numbers_leaves_the_unknown_out():
    """Neighbours on a line keep the order, weighted by 1 / distance."""
    distances = on_a_line([0, 1, 3, 7, 15])
    numbers = [0.0, 1.0, 3.0, 7.0, np.nan]
    # one neighbour each: 1, 0, 1, 3 against 0, 1, 3, 7: ranks 2.5 1 2.5 4 against 1 2 3 4
    result = information_retention(distances, numbers, task="regression", n_neighbors=1)
    assert result == pytest.approx(np.corrcoef([2.5, 1, 2.5, 4], [1, 2, 3, 4])[0, 1])
    assert batch_score(
        distances, {"depth": (numbers, "regression")}, n_neighbors=1
    ) == pytest.approx(1 - result)


def test_measurements_are_no_classes():
    """Each would be a class of its own, of which no neighbour tells: the score was 0."""
    distances = on_a_line([0, 1, 3, 7, 15])
    with pytest.raises(DataError, match=r"5 distinct values that are not all whole.*'regression'"):
        information_retention(distances, [0.1, 1.2, 3.1, 7.4, 15.3], n_neighbors=1)
    for classes in ([0.0, 0.0, 0.0, 1.0, 1.0], ["0.5"] * 3 + ["1.5"] * 2):
        assert information_retention(distances, classes, n_neighbors=1) > 0


@pytest.mark.parametrize("bad", [["a", "b"] * 2, {"batch": ["a", "b"] * 2}, {"batch": ["a", "b"]}])
def test_technical_covariates_are_named(bad):
    """Labels without a name or a task are refused, with what is expected."""
    match = "is a list; expected" if isinstance(bad, list) else "'batch'. is not a pair|task"
    with pytest.raises(BagbasisError, match=match):
        batch_score(on_a_line([0, 1, 10, 11]), bad, n_neighbors=1)


def test_replicates():
    """1 where each is nearest to its own; the fraction of nearer strangers else."""
    names = ["a", "a", "b", "b"]
    assert replicate_robustness(on_a_line([0, 1, 10, 11]), names) == 1
    # 0, 10 | 1, 11: nearer than the replicate are 1, 2, 2 and 1 of two strangers
    assert replicate_robustness(on_a_line([0, 10, 1, 11]), names) == 0.25
    with pytest.raises(DataError, match="'b' has one row"):
        replicate_robustness(on_a_line([0, 1, 10]), ["a", "a", "b"])


def test_trajectory():
    """Samples along a bent line are in its order; two clusters that nothing joins come last."""
    angle = np.linspace(0, np.pi, 30)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert trajectory_score(distances, np.arange(30), root=0, n_neighbors=4) == pytest.approx(1)
    shuffled = np.random.default_rng(0).permutation(30).astype(float)
    assert trajectory_score(distances, shuffled, root=0, n_neighbors=4) < 0.5
    apart = on_a_line([*np.arange(10), *np.arange(1000, 1010)])
    assert trajectory_score(apart, [0] * 10 + [1] * 10, root=0, n_neighbors=3) > 0.8


@pytest.mark.parametrize("bad", [np.zeros((2, 3)), [[0, -1], [-1, 0]], [[0, np.nan], [1, 0]]])
def test_no_distances(bad):
    """What is not a matrix of distances is refused."""
    with pytest.raises(DataError, match="expected"):
        information_retention(bad, ["a", "b"])
