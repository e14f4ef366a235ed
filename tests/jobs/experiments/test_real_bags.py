"""`real-bags` on three small sets, its peers, and its verdicts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from bagbasis import Bags, MomentsEmbedding
from bagbasis.jobs.experiments.data.real.recipe import LabelledSet
from bagbasis.jobs.experiments.regression import real_bags
from bagbasis.jobs.experiments.regression.real_bags import (
    CONSTANT,
    METHODS,
    OURS,
    mean_ranks,
    verdicts,
)
from bagbasis.jobs.experiments.regression.real_bags_peers import PEERS, folds
from bagbasis.models import Search
from tests.jobs.experiments.contract import Contract, result

SETS = ["musk 1", "school classes", "motions"]


@pytest.fixture(scope="module", autouse=True)
def short_search():
    """One embedding and width for tune: the whole search takes a minute per fold."""
    with pytest.MonkeyPatch.context() as patch:
        search = Search([MomentsEmbedding(covariance=False)], scale_multipliers=[1.0])
        patch.setattr(real_bags.Search, "auto", lambda n_dims: search)
        yield


class TestRealBags(Contract):
    name = "real-bags"
    sizes: ClassVar = {
        "sets": SETS, "methods": list(METHODS), "most_bags": 60, "n_folds": 2, "n_trees": 10
    }  # fmt: skip

    def test_methods(self, report, results):
        """Each method on each set it is for; the default beats the best constant."""
        found = {(r.params["data"], r.params["method"]): r.values for r in results}
        assert {data for data, _ in found} == set(SETS)
        assert ("school classes", "MILES") not in found
        assert len(found) == 2 * (1 + len(OURS) + len(PEERS)) + len(OURS) + len(PEERS)
        for data in SETS:
            for ours in OURS:
                values, constant = found[data, ours], np.mean(found[data, CONSTANT]["losses"])
                assert "refused" in values or np.mean(values["losses"]) < constant
            assert "refused" not in found[data, OURS[0]]
        assert [len(table["rows"]) for table in report["tables"]] == [3, 2, 3]


@pytest.fixture(scope="module")
def labelled():
    """Bags whose mean tells the class, and its number."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    bags = Bags.from_list([rng.normal(3.0 * y, 1, (5 + y, 2)) for y in labels])
    return LabelledSet(bags, labels.astype(float))


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


def test_verdicts_count_groups_and_put_losses_first():
    """Ours against the best peer of each set, by a loop over groups of unlike sizes."""
    rng = np.random.default_rng(1)
    counts = np.array([3, 1, 2, 5])
    drawn = {
        (data, method): rng.uniform(0, 1, 4) + shift
        for data, shift in (("ahead", -0.5), ("behind", 1.0))
        for method in (*OURS, "forest", "MILES")
    }
    results = []
    for (data, method), losses in drawn.items():
        if method not in OURS:
            drawn[data, method] = losses = losses + {"ahead": 0.5, "behind": -1.0}[data]
        values = {"counts": counts.tolist(), "losses": losses.tolist(), "n_bags": 11}
        values |= {"n_points": 50, "n_dims": 2}
        results.append(result(values, data=data, method=method))
    found = verdicts(results)
    assert found["data"].tolist() == ["behind", "ahead"]
    for _, row in found.iterrows():
        errors = {m: counts @ drawn[row["data"], m] / 11 for m in ("forest", "MILES")}
        assert row["best"] == min(errors, key=errors.get)
        for ours in OURS:
            gaps = drawn[row["data"], ours] - drawn[row["data"], row["best"]]
            mean = counts @ gaps / 11
            sums = counts * (gaps - mean)
            error = np.sqrt((sums**2).sum() * 4 / 3) / 11
            assert row[f"{ours} behind"] == pytest.approx(mean / error)


def test_a_refusal_comes_first_and_has_no_distance():
    """It is within nothing; without tune, the default orders the sets."""
    kept = {"counts": [1, 1], "n_bags": 2, "n_points": 4, "n_dims": 1}
    results = [
        result({**kept, "losses": [0.0, 0.5]}, data="well", method="default"),
        result({**kept, "losses": [1.0, 1.0]}, data="well", method="forest"),
        result({**kept, "refused": "too few bags"}, data="refused", method="default"),
        result({**kept, "losses": [1.0, 1.0]}, data="refused", method="forest"),
    ]
    found = verdicts(results)
    assert found["data"].tolist() == ["refused", "well"]
    assert np.isnan(found["default behind"][0])
    assert found["default behind"][1] == pytest.approx(-3.0)  # -.75 over .25
    assert "tune behind" not in found
    assert mean_ranks(found) == {"default": 1.0, "forest": 1.5}
