"""004, §3.5.2 at small scale: the 2BE against the Kernel-Kernel estimator, AIC, BIC and CV."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments import over_sizes
from bagbasis.jobs.experiments.gmm_order import SIZES, GMMOrder
from bagbasis.jobs.experiments.over_sizes_report import at_sizes
from tests.jobs.experiments.running import results_of
from tests.jobs.running import assert_picture, done, settings

SMALL = SIZES["small"]
CLASSICAL = ["AIC", "BIC", "CV"]


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    where = tmp_path_factory.mktemp("gmm-order")
    with pytest.MonkeyPatch.context() as coarse:
        coarse.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 60)
        done("experiment", "gmm-order", *settings(out_dir=where))
    return where


def test_lowest_error_at_every_n(out_dir):
    """The 2BE beats Kernel-Kernel, that one the best constant, and AIC, BIC and CV do not come
    near. Over seeds 0 to 3 the 2BE has 0.87 to 0.91 of KK's error at 10 points a bag and 0.71 to
    0.77 at 50, and at most a third of that of AIC, BIC or CV on their bags."""
    _, results = results_of(out_dir)
    sizes = at_sizes(results)
    assert tuple(size.n_points for size in sizes) == SMALL.n_points
    for size in sizes:
        assert size.classical == CLASSICAL
        assert size.mse("2BE") < 0.95 * size.mse("KK")
        assert size.mse("KK") < 0.85 * size.mse("constant")
        for name in CLASSICAL:
            assert max(size.mse("2BE"), size.first["mse"]) < 0.7 * size.mse(name)
    assert sizes[1].mse("2BE") < 0.8 * sizes[0].mse("2BE")


def test_tables(out_dir):
    """Errors beside the 2BE's on the same bags, and times of both ways; the lowest is named."""
    report, results = results_of(out_dir)
    errors, batches, single = report["tables"]
    assert errors["columns"] == [
        "points a bag", "2BE", "±", "KK", "2BE, same bags", *CLASSICAL, "constant", "lowest",
    ]  # fmt: skip
    for row, size in zip(errors["rows"], at_sizes(results), strict=True):
        expected = [size.mse("2BE"), size.methods["2BE"]["se"], size.mse("KK"), size.first["mse"]]
        assert row[1:5] == expected
        assert row[5:8] == [size.mse(name) for name in CLASSICAL]
        assert row[-1] == "2BE"
    for table in (batches, single):
        assert table["columns"] == ["points a bag", "2BE", "KK", *CLASSICAL, "fastest"]
        for row in table["rows"]:
            assert min(row[1:-1]) > 0
            assert row[-1] == table["columns"][1 + int(np.argmin(row[1:-1]))]
    assert "orders of magnitude" in errors["remarks"][0]
    assert "AIC, BIC and CV have the first 8 test bags" in errors["remarks"][1]
    assert "the others all 500, for which" in errors["remarks"][1]


def test_picture(out_dir):
    """Errors and times are drawn."""
    assert results_of(out_dir)[0]["pictures"] == ["order.png"]
    assert_picture(out_dir / "order.png")


def test_second_run_measures_nothing(out_dir, monkeypatch):
    """All points are found again, and the report is the same."""
    before = results_of(out_dir)[0]
    monkeypatch.setattr(over_sizes, "fit_double_basis", None)
    monkeypatch.setattr(GMMOrder, "measure_classical", None)
    printed = done("experiment", "gmm-order", *settings(out_dir=out_dir))
    assert printed.count("measured before") == 2 * len(SMALL.n_points)
    assert results_of(out_dir)[0] == before


def test_training_and_test_bags_are_others(tmp_path):
    """No two seeds share a dataset, nor do training and test bags; the variant is that of 004."""
    made = [GMMOrder("paper", seed, tmp_path) for seed in range(3)]
    assert made[0].dataset(25, 0).variant == "004"
    seen = []
    for experiment in made:
        drawn_from = []
        experiment.dataset = lambda n, seed, kept=drawn_from: kept.append(seed)
        experiment.measure_classical = lambda *args: {}
        point = next(p for p in experiment.points() if p.params["measure"] == "classical")
        experiment.measure(point, lambda *args: None)
        seen.append((2 * experiment.seed, *drawn_from))
    assert len({seed for pair in seen for seed in pair}) == 6
