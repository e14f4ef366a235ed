"""004, §3.5.3 at small scale: 2BE against maximum likelihood and Kernel-Kernel."""

from __future__ import annotations

import pytest

from bagbasis.jobs.experiments.dirichlet import SIZES, DirichletParameters
from bagbasis.jobs.experiments.experiment import Point, Result
from bagbasis.jobs.experiments.over_sizes_report import at_sizes
from tests.jobs.experiments.running import results_of
from tests.jobs.running import assert_picture, done, settings


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    where = tmp_path_factory.mktemp("dirichlet")
    with pytest.MonkeyPatch.context() as coarse:
        coarse.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 60)
        done("experiment", "dirichlet", *settings(out_dir=where))
    return where


def test_lowest_error_at_every_n(out_dir):
    """The 2BE beats Kernel-Kernel and maximum likelihood, clearest with few points. Over seeds 0
    to 3 it has 0.80 to 0.88 of KK's error at 10 points a bag and 0.66 to 0.72 at 50, 0.11 to 0.15
    and 0.59 to 0.65 of that of maximum likelihood, and at 10 points half of it clipped."""
    _, results = results_of(out_dir)
    small, large = at_sizes(results)
    assert (small.n_points, large.n_points) == SIZES["small"].n_points
    for size in (small, large):
        assert size.mse("2BE") < 0.95 * size.mse("KK")
        assert size.mse("KK") < 0.4 * size.mse("constant")
    assert small.mse("2BE") < 0.3 * small.mse("MLE")
    assert small.mse("2BE") < 0.7 * small.mse("MLE, clipped")
    assert large.mse("2BE") < 0.8 * large.mse("MLE")
    assert large.mse("2BE") < 0.5 * small.mse("2BE")
    assert large.mse("MLE, clipped") <= large.mse("MLE") < 0.25 * small.mse("MLE")


def test_tables(out_dir):
    """All bags for all methods; the clipped likelihood has an error and no time of its own."""
    report, results = results_of(out_dir)
    errors, batches, single = report["tables"]
    methods = ["2BE", "±", "KK", "MLE", "MLE, clipped", "constant", "lowest"]
    assert errors["columns"] == ["points a bag", *methods]
    for row, size in zip(errors["rows"], at_sizes(results), strict=True):
        assert row[4:6] == [size.mse("MLE"), size.mse("MLE, clipped")]
        assert size.first == size.methods["2BE"]
    for table in (batches, single):
        assert table["columns"] == ["points a bag", "2BE", "KK", "MLE", "fastest"]
        assert all(min(row[1:-1]) > 0 for row in table["rows"])
    assert "MLE: at n = 10, 50; MLE, clipped: at n = 10, 50." in errors["remarks"][0]


@pytest.mark.parametrize(
    ("seconds", "fastest"),
    [
        ((1e-5, 1e-5), "it is the fastest at every n, in both ways."),
        ((1e-5, 1.0), "at n = 10 (batches), at n = 10 (one bag a call)."),
    ],
)
def test_remarks_of_known_errors_and_times(tmp_path, seconds, fastest):
    """Who is lowest, who is level and where likelihood is fastest come from the numbers."""

    def results(n_points, clipped, took):
        params = {"n_points": n_points}
        learned = {
            "methods": {name: {"mse": mse, "se": 0.02} for name, mse in (
                ("2BE", 0.5), ("KK", 0.6), ("constant", 0.1))},
            "2be_first": {}, "choices": {},
            "seconds": {f"{m}_{way}": 1e-3 for m in ("2be", "kk") for way in ("batch", "single")},
        }  # fmt: skip
        mle = {"mse": 0.9, "se": 0.02, "seconds": {"batch": took, "single": took}}
        classical = {"methods": {"MLE": mle, "MLE, clipped": {"mse": clipped, "se": 0.02}}}
        return [
            Result(Point("", {**params, "measure": "learned"}), learned, 1.0),
            Result(Point("", {**params, "measure": "classical"}), classical, 1.0),
        ]

    found = [*results(10, 0.53, seconds[0]), *results(50, 0.3, seconds[1])]
    errors, _, speed = DirichletParameters("small", 0, tmp_path).remarks(found)
    lowest = "Lowest of all: 2BE at n = 10; MLE, clipped at n = 50; "
    assert (
        lowest + "within two of its standard errors of the 2BE: MLE, clipped at n = 10." in errors
    )
    assert fastest in speed


def test_picture(out_dir):
    """Errors and times are drawn."""
    assert results_of(out_dir)[0]["pictures"] == ["parameters.png"]
    assert_picture(out_dir / "parameters.png")
