"""004, §3.5.1 at small scale: errors of 2BE and Kernel-Kernel, and where their times cross."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore, DoubleBasisRegressor
from bagbasis.jobs.experiments import synthetic_mapping
from bagbasis.jobs.experiments.experiment import Point, Result
from bagbasis.jobs.experiments.synthetic_mapping import SETTINGS, SyntheticMapping
from bagbasis.jobs.experiments.synthetic_mapping_report import (
    by_n_train,
    crossing,
    mapping_tables,
    ratios,
)
from tests.jobs.experiments.running import results_of
from tests.jobs.running import assert_picture, done, settings

SMALL = SETTINGS["small"]


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    where = tmp_path_factory.mktemp("mapping")
    with pytest.MonkeyPatch.context() as coarse:
        coarse.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 60)
        done("experiment", "synthetic-mapping", *settings(out_dir=where))
    return where


def test_no_worse_than_the_smoother(out_dir):
    """The 2BE has less error than Kernel-Kernel, and both learn more of more and larger bags.
    Over seeds 0 to 3, each a mapping of its own, it has 0.75 to 0.94 of KK's error, which is 0.01
    to 0.08 of the variance, and 0.43 to 0.47 of its own at a fourth of the bags."""
    _, results = results_of(out_dir)
    double, kernel = by_n_train(results, "2be"), by_n_train(results, "kk")
    assert tuple(double) == tuple(kernel) == SMALL.n_train
    for n, two in double.items():
        assert kernel[n]["n"] == min(SMALL.n_test, SMALL.most_pairs // n)
        assert two["first"]["mse"] < 0.96 * kernel[n]["mse"]
        assert kernel[n]["mse"] < 0.2 * two["variance"]
    first, last = SMALL.n_train
    assert double[last]["mse"] < 0.6 * double[first]["mse"]


def test_bags_grow_with_their_number(out_dir):
    """Points a bag go with N^(3/5); training and test bags are others of one mapping."""
    experiment = SyntheticMapping("small", 0, out_dir)
    sizes = []
    for n in SMALL.n_train:
        train, test = experiment._store(n, "train"), experiment._store(n, "test")
        assert (train.n_bags, test.n_bags) == (n, SMALL.n_test)
        assert train.n_points / n == test.n_points / SMALL.n_test == SMALL.n_points(n)
        first = {bag[0].tobytes() for bag in train.read()}
        assert np.mean([bag[0].tobytes() in first for bag in test.read()]) < 0.01
        sizes.append(SMALL.n_points(n))
    grown = np.log(sizes[1] / sizes[0]) / np.log(SMALL.n_train[1] / SMALL.n_train[0])
    assert grown == pytest.approx(3 / 5, abs=0.02)
    paper = SETTINGS["paper"]
    assert [paper.n_points(n) for n in paper.n_train] == [25, 100, 398]


def test_tables_and_picture(out_dir):
    """Times of few rows come before those of each N; the ratios are of the cells beside them."""
    report, results = results_of(out_dir)
    errors, seconds = report["tables"]
    assert [row[0] for row in errors["rows"]] == [f"{n:,}" for n in SMALL.n_train]
    for row in errors["rows"]:
        assert row[8] == pytest.approx(row[4] / row[5])
    assert [row[0] for row in seconds["rows"]] == [f"{n:,}" for n in (*SMALL.timed, *SMALL.n_train)]
    for way, column in (("batch", 3), ("single", 6)):
        sizes, found = ratios(results, way)
        np.testing.assert_array_equal(sizes, [*SMALL.timed, *SMALL.n_train])
        for row, ratio in zip(seconds["rows"], found, strict=True):
            assert row[column] == pytest.approx(row[column - 1] / row[column - 2]) == ratio
    assert report["pictures"] == ["mapping.png"]
    assert_picture(out_dir / "mapping.png")


def test_second_run_measures_nothing(out_dir, monkeypatch):
    """Points, stores and models are found again, and the report is the same."""
    before, _ = results_of(out_dir)
    monkeypatch.setattr(DoubleBasisRegressor, "fit", None)
    monkeypatch.setattr(synthetic_mapping, "times", None)
    printed = done("experiment", "synthetic-mapping", *settings(out_dir=out_dir))
    assert printed.count("measured before") == len(before["points"])
    assert results_of(out_dir)[0] == before


def test_lost_model_is_made_again(out_dir, monkeypatch, tmp_path):
    """Times are measured with the model that errors were, found or fitted again."""
    experiment = SyntheticMapping("small", 0, out_dir)
    n = SMALL.n_train[0]
    kept = experiment._model(n)
    again = SyntheticMapping("small", 0, tmp_path)
    (tmp_path / "data").symlink_to(out_dir / "data")
    bags = BagStore.open(str(experiment._store(n, "test").url)).read(0, 20)
    np.testing.assert_array_equal(again._model(n).predict(bags), kept.predict(bags))


def test_crossing():
    """Straight in logarithms between the points; none where a level is not passed."""
    sizes, values = np.array([10.0, 1e3, 1e5]), np.array([0.1, 10.0, 1000.0])
    assert crossing(sizes, values, 1) == pytest.approx(100)
    assert crossing(sizes, values, 100) == pytest.approx(1e4)
    assert crossing(sizes, values, 1e4) is None
    assert crossing(sizes, values, 0.01) is None


def test_report_of_known_times():
    """The paper's ratios stand beside ours, and the crossings are said in words."""
    seconds = {"2be_batch": 1e-5, "2be_single": 1e-3, "n_queries": 9}
    results = []
    for n in (10_000, 1_000_000, 100_000):
        params = {"n_train": n, "n_points": 7, "candidates": {"n_choose": 5}}
        fit = {"mse": 1.0, "se": 0.1, "first": {"mse": 1.0}, "variance": 4.0, "choice": {
            "n_per_dim": 5, "multiplier": 1.0, "alpha_a_bag": 1e-5, "seconds": 1.0}}  # fmt: skip
        smoother = {"mse": 2.0 if n > 10_000 else 0.5, "se": 0.1, "n": 3, "choice": {
            "density_bandwidth": 0.1, "n_coefficients": 9, "seconds": 2.0},
            "seconds": {**seconds, "kk_batch": 1e-8 * n, "kk_single": 1e-10 * n}}  # fmt: skip
        results.append(Result(Point("", {"measure": "2be", **params}), fit, 1.0))
        results.append(Result(Point("", {"measure": "kk", **params}), smoother, 1.0))
    errors, times = mapping_tables(results)
    assert [row[-1] for row in times.rows] == [12, 67, 139]
    assert [row[3] for row in times.rows] == pytest.approx([10, 100, 1000])
    remarks = " ".join(times.remarks)
    assert "above 1× at all numbers measured; 139× at about 140,000 training bags" in remarks
    assert "one bag a call: below 1× at all numbers measured" in remarks
    assert "the 2BE is not better at N = 10,000." in " ".join(errors.remarks)
