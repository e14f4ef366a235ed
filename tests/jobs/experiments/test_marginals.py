"""001, §5.4's recipe at small scale: one embedding a dimension, in 64 of them."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.patches import Patches
from bagbasis.jobs.experiments.gmm_components_report import HDD
from bagbasis.jobs.experiments.marginals import FILTERS
from bagbasis.jobs.experiments.marginals_report import WAYS, accuracies
from tests.jobs.experiments.running import results_of, small_run
from tests.jobs.running import assert_picture


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    return small_run("marginals", tmp_path_factory.mktemp("marginals"))


def leads(results, other):
    """Of the best HDD over another method, for each kind of filters and each way."""
    found = []
    for kind in FILTERS:
        for way in WAYS:
            shares = accuracies(results, kind, way)
            best = max(shares[method].mean() for method in HDD)
            found.append(best - shares[other].mean())
    return np.array(found)


def test_order_of_the_methods(out_dir):
    """HDD is ahead of L2 and of histograms, and level with MMD; all are far from guessing. Over
    seeds 1 to 3 the best HDD leads, in the mean of filters and ways, L2 by .040 at least, Hist JS
    by .031 and MMD by -.018; the least accuracy of any method is .60."""
    _, results = results_of(out_dir)
    assert leads(results, "L2").mean() > 0.02
    assert leads(results, "Hist JS").mean() > 0.01
    assert leads(results, "MMD").mean() > -0.05
    for result in results:
        for way in WAYS:
            assert min(result.values[way]) > 0.4


def test_tables_and_picture(out_dir):
    """A table a kind of filters, a row a method with both accuracies, and a picture."""
    report, results = results_of(out_dir)
    assert len(report["tables"]) == len(FILTERS)
    for kind, table in zip(FILTERS, report["tables"], strict=True):
        assert table["title"].startswith(kind)
        for remark in table["remarks"][1:3]:
            assert "The paper's order: HDD ≥ MMD ≫ L2, Hist JS. Holds here:" in remark
        for row in table["rows"]:
            for column, way in ((1, "linear"), (3, "rbf")):
                assert row[column] == accuracies(results, kind, way)[row[0]].mean()
    assert report["pictures"] == ["marginals.png"]
    assert_picture(out_dir / "marginals.png")


def test_both_kinds_of_filters_have_the_same_marginals():
    """Dependence changes which filters fire together, and nothing about each of them alone."""
    sizes = {"n_classes": 1, "n_filters": 6, "n_points": 50, "closeness": 1e5}
    bags = [Patches(**sizes, dependent=kind).images(600, 0)[0] for kind in (False, True)]
    for j in range(6):
        a, b = (np.quantile(bag.points[:, j], [0.1, 0.3, 0.5, 0.7, 0.9]) for bag in bags)
        np.testing.assert_allclose(a, b, atol=0.015)
    within = [
        np.mean([np.corrcoef(bag.T) for bag in each], axis=0)[np.triu_indices(6, 1)]
        for each in bags
    ]
    assert np.abs(within[0]).max() < 0.02
    assert np.abs(within[1]).max() > 0.05


def test_images_are_those_of_seed_and_index():
    """Other indices are other images of the same classes, other seeds other classes."""
    patches = Patches(n_classes=3, n_filters=4, n_points=30)
    bags, labels = patches.images(7, 0)
    again, _ = patches.images(7, 0)
    others = [patches.images(7, 1)[0], Patches(n_classes=3, n_filters=4, n_points=30, seed=1)]
    np.testing.assert_array_equal(labels, [0, 1, 2, 0, 1, 2, 0])
    np.testing.assert_array_equal(again.points, bags.points)
    assert bags.points.dtype == np.float32
    assert bags.points.shape == (210, 4)
    assert bags.points.min() >= 0
    assert bags.points.max() <= 1
    for other in (others[0], others[1].images(7, 0)[0]):
        assert not np.isin(other.points, bags.points).all()
