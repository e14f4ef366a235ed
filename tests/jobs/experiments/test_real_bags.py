"""`real-bags` on three small sets, its peers, and its verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags
from bagbasis.jobs.experiments.data.real.recipe import LabelledSet
from bagbasis.jobs.experiments.regression.real_bags_peers import PEERS, folds


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
        found = PEERS[name].predict(train, labelled.bags[45:], kind, 20, 0)
        assert np.abs(found - labelled.labels[45:]).mean() < 0.2


def test_folds_keep_groups_whole_and_classes_even(labelled):
    grouped = LabelledSet(labelled.bags, labelled.labels, np.arange(60) // 4)
    for train, test in folds(grouped, "regression", 5, 0):
        assert not set(grouped.groups[train]) & set(grouped.groups[test])
    few = LabelledSet(labelled.bags, labelled.labels, np.arange(60) // 30)
    assert len(folds(few, "regression", 5, 0)) == 2
    for _, test in folds(labelled, "classification", 5, 0):
        assert np.bincount(labelled.labels[test].astype(int)).tolist() == [4, 4, 4]
