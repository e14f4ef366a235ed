"""`real-bags` on three small sets, its peers, and its verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags
from bagbasis.jobs.experiments.data.real.recipe import LabelledSet
from bagbasis.jobs.experiments.regression.real_bags import verdicts
from bagbasis.jobs.experiments.regression.real_bags_peers import PEERS, folds
from tests.jobs.experiments.contract import result


@pytest.fixture(scope="module")
def labelled():
    """Bags whose mean tells the class, and its number."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    bags = Bags.from_list([rng.normal(3.0 * y, 1, (5 + y, 2)) for y in labels])
    return LabelledSet(bags, labels.astype(float))


@pytest.mark.long
@pytest.mark.parametrize("name", PEERS)
def test_peers_learn_what_means_tell(name, labelled):
    train = LabelledSet(labelled.bags[:45], labelled.labels[:45])
    for kind in PEERS[name].kinds:
        predicted = PEERS[name].predict(train, labelled.bags[45:], kind, 20, 0)
        assert np.abs(predicted - labelled.labels[45:]).mean() < 0.2


def test_folds_keep_groups_whole_and_classes_even(labelled):
    grouped = LabelledSet(labelled.bags, labelled.labels, np.arange(60) // 4)
    for train, test in folds(grouped, "regression", 5, 0):
        assert not set(grouped.groups[train]) & set(grouped.groups[test])
    few = LabelledSet(labelled.bags, labelled.labels, np.arange(60) // 30)
    assert len(folds(few, "regression", 5, 0)) == 2
    for _, test in folds(labelled, "classification", 5, 0):
        assert np.bincount(labelled.labels[test].astype(int)).tolist() == [4, 4, 4]


def losses(data, method, *repeats, counts=(1, 1, 1, 1), use="tuned on"):
    """The results of a method on a set, a list of losses for each repeat."""
    for repeat, values in enumerate(repeats):
        yield result(
            {"losses": values, "counts": list(counts), "seconds": 6.0, "n_bags": sum(counts),
             "n_points": 50, "n_dims": 2},
            data=data, method=method, repeat=repeat, use=use, n_folds=3,
        )  # fmt: skip


def as_rows(table, key):
    return {
        tuple(row[: len(key)]): dict(zip(table.columns, row, strict=True)) for row in table.rows
    }


def test_verdicts_are_paired_differences_to_the_best_peer():
    """Repeats are averaged; groups count by their bags; MILES is shown and decides nothing."""
    results = [
        *losses("a", "default", [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]),
        *losses("a", "forest", [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]),
        *losses("a", "mean pooling", [1.0] * 4, [1.0] * 4),
        *losses("a", "MILES", [0.0] * 4, [0.0] * 4),
        *losses("b", "default", [0.0, 0.2], counts=(3, 1), use="judged on"),
        *losses("b", "forest", [0.5, 0.3], counts=(3, 1), use="judged on"),
    ]
    errors, counts = verdicts(results)
    of_set = as_rows(errors, ["set"])
    a, b = of_set[("a",)], of_set[("b",)]
    assert [a["default"], a["forest"], a["MILES"], a["best peer"]] == [0.625, 0.375, 0, "forest"]
    gaps = np.array([1.0, 0, 0, 0])
    assert a["default: behind, s.e."] == pytest.approx(gaps.mean() / (gaps.std(ddof=1) / 2))
    assert b["default"] == pytest.approx(0.05)
    assert b["default: behind, s.e."] < -1
    assert b["mean pooling"] is None
    by_use = as_rows(counts, ["method", "use"])
    tuned, judged = by_use["default", "tuned on"], by_use["default", "judged on"]
    assert [tuned["sets"], tuned["ahead"], tuned["within 1 s.e."]] == [1, 0, 1]
    assert [judged["sets"], judged["ahead"], judged["within 1 s.e."]] == [1, 1, 1]
    assert tuned["CPU seconds per fit"] == 2
    assert tuned["mean rank"] == 1.5
