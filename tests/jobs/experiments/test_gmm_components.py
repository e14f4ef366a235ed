"""001, §5.2 at small scale: the order of the methods, and the classical ways behind them."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.experiment import Point, Result
from bagbasis.jobs.experiments.gmm_components import ComponentCounting, errors, mixtures
from bagbasis.jobs.experiments.gmm_components_report import (
    HDD,
    OTHERS,
    PAPER,
    component_tables,
    sizes_by_method,
    without_training,
)
from bagbasis.jobs.experiments.gmm_components_settings import SETTINGS
from bagbasis.jobs.experiments.mixture_order import orders_by_criteria
from tests.jobs.experiments.running import results_of, small_run
from tests.jobs.running import assert_picture

SMALL = SETTINGS["small"]


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    return small_run("gmm-components", tmp_path_factory.mktemp("gmm-components"))


def test_order_of_the_methods(out_dir):
    """HDD < Hist JS < constant, and HDD < MMD, L2. Over seeds 0 to 2 the worst HDD leads L2 by
    .17 at least and MMD by .12, the best one Hist JS by .035, and all fall as bags are added."""
    _, results = results_of(out_dir)
    found = sizes_by_method(results, 200)
    last = {method: sizes[-1]["rmse"] for method, sizes in found.items()}
    worst, best = (f(last[method] for method in HDD) for f in (max, min))
    assert worst + 0.1 < last["L2"]
    assert worst + 0.06 < last["MMD"]
    assert best + 0.012 < last["Hist JS"]
    constant = without_training(results, 200)["constant"]["rmse"]
    assert constant == pytest.approx(2.87, abs=0.1)
    assert worst + 1 < constant
    for method in (*HDD, "L2", "MMD", "Hist JS"):
        assert found[method][-1]["rmse"] < found[method][0]["rmse"] - 0.02


def test_classical_ways_and_the_full_matrix_are_behind(out_dir):
    """AIC and BIC are far worse than regression, and KL than JS with as many training bags. Over
    seeds 0 to 2 AIC has 2.3 at least and KL's lag is .23 at least."""
    _, results = results_of(out_dir)
    worst = max(sizes_by_method(results, 200)[method][-1]["rmse"] for method in HDD)
    for name in ("AIC", "BIC"):
        assert without_training(results, 200)[name]["rmse"] > worst + 0.3
    [kl] = [r.values for r in results if r.point.params["measure"] == "kl"]
    assert kl["js"]["rmse"] + 0.05 < kl["sizes"][0]["rmse"]
    assert kl["js"]["n_train"] == kl["sizes"][0]["n_train"] == SMALL.kl[200][0]


def test_table_and_picture(out_dir):
    """A row a method with the paper's numbers where it prints some, and a picture."""
    report, results = results_of(out_dir)
    [table] = report["tables"]
    rows = {row[0].split(",")[0]: row for row in table["rows"]}
    for name, printed in PAPER.items():
        assert rows[name][-1] == printed[200]
    last = {method: sizes[-1]["rmse"] for method, sizes in sizes_by_method(results, 200).items()}
    assert rows["TV"][2] == last["TV"]
    assert "All of JS, Hellinger and TV are better than L2, MMD and Hist JS" in table["remarks"][0]
    assert report["pictures"] == ["components.png"]
    assert_picture(out_dir / "components.png")


def test_remarks_on_em_of_known_errors():
    """A criterion within two standard errors of the best regression is called level, the others
    are not; errors are set beside the printed ones, with why EM has few bags."""

    def result(measure, values, **params):
        return Result(
            Point("", {"measure": measure, "n_points": 800, "n_test": 500, **params}), values, 1.0
        )

    def size(rmse):
        return {"rmse": rmse, "se": 0.03, "n_train": 9, "n_test": 9, "seconds": 1.0}

    choice = {"embedding": {}, "multiplier": 1.0, "seconds": 1.0}
    fits = [
        result("2be", {"sizes": [size(1.4 + k / 10)], "choice": choice}, method=method)
        for k, method in enumerate((*HDD, *OTHERS))
    ]
    [table] = component_tables([
        *fits,
        result("kl", {"sizes": [size(2.0)], "js": size(1.6), "choice": choice}),
        result("constant", {"rmse": 2.87, "se": 0.03}),
        result("em", {"aic": {"rmse": 1.49, "se": 0.04}, "bic": {"rmse": 2.9, "se": 0.04},
                      "n": 20, "seconds_a_bag": 0.25}),
    ])  # fmt: skip
    beside, printed = table.remarks[1:3]
    assert "AIC +0.09 ± 0.05: level, by 1.8 standard errors; BIC +1.50 ± 0.05." in beside
    assert "EM has 20 of the 500 test bags for its time, 0.25 s a bag" in beside
    assert "constant 2.87 ± 0.03 (2.8; here worse, within error)" in printed
    assert "AIC 1.49 ± 0.04 (2.3; here better, surely)" in printed
    assert "BIC 2.90 ± 0.04 (2.7; here worse, surely)" in printed


def test_no_bag_is_in_both_sets():
    """Training and test bags come from one stream without repeats; sets of other sizes are
    beginnings of each other."""
    bags, y = mixtures(5, 20, 1500)
    assert len({bag[0].tobytes() for bag in bags}) == len(bags) == len(y) == 1500
    fewer, labels = mixtures(5, 20, 700)
    np.testing.assert_array_equal(fewer.points, bags[:700].points)
    np.testing.assert_array_equal(labels, y[:700])


def test_seeds_and_sizes_have_their_own_bags(tmp_path):
    """The points of a run name all that decides them, KL and EM their subsets of bags too."""
    points = ComponentCounting("paper", 0, tmp_path).points()
    assert len(points) == 2 * (len(SMALL.methods) + 3)
    assert {p.params["n_points"] for p in points} == {200, 800}


@pytest.mark.parametrize("n_components", [1, 3])
def test_criteria_find_separate_clusters(n_components):
    """Where clusters lie far apart, AIC and BIC both count them."""
    rng = np.random.default_rng(0)
    points = (
        rng.normal(size=(400, 2)) * 0.3 + 8 * np.eye(3, 2)[rng.integers(n_components, size=400)]
    )
    assert orders_by_criteria(points, 5, 0)["bic"] == n_components
    assert orders_by_criteria(points, 5, 0)["aic"] in (n_components, n_components + 1)


def test_error_and_its_standard_error():
    """The delta method's standard error is the spread of the error over repeated draws."""
    rng = np.random.default_rng(0)
    draws = [errors(rng.normal(size=500), np.zeros(500)) for _ in range(2000)]
    rmse = np.array([draw["rmse"] for draw in draws])
    assert rmse.mean() == pytest.approx(1, abs=0.01)
    assert np.mean([draw["se"] for draw in draws]) == pytest.approx(rmse.std(), rel=0.1)
