"""Submitted runs whose driver is a job of a real SLURM (``make test-clusters`` starts it)."""

from __future__ import annotations

import subprocess

import pytest

from bagbasis import load_model
from bagbasis.jobs.runs import Status, attach
from tests.clusters.problem import BAGS, Y
from tests.clusters.test_slurm import jobs, slurm
from tests.execution.gated import until
from tests.jobs.running import done, settings
from tests.oracles.labelled import stored

pytestmark = pytest.mark.slurm

ENDLESS = {"n_bags": 100_000_000}


@pytest.fixture(autouse=True)
def _empty_queue():
    assert jobs() == set()
    yield
    until(lambda: jobs() == set())


@pytest.fixture
def endless(tmp_path):
    """Submits a job that would take days."""

    def submitted():
        arguments = settings(url=tmp_path / "many.zarr", **ENDLESS)
        where = ["--root", tmp_path / "runs", "--launcher", "sbatch"]
        printed = done(
            "submit", "generate", *arguments, *settings(dataset="gmm_components"), *where
        )
        return attach(printed.splitlines()[0], root=tmp_path / "runs")

    return submitted


def test_fit_in_a_batch_job(tmp_path):
    """bags submit --launcher sbatch: the driver is a job named like the run; the run's report,
    model and log are there when it is done."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    urls = settings(data_url=store.url, model_url=tmp_path / "m.zarr")
    small = settings(model__random_features__n_features=64)
    printed = done("submit", "fit", *urls, *small, "--launcher", "sbatch")
    run = attach(printed.splitlines()[0], root=tmp_path / "runs")
    until(lambda: run.status() is not Status.SUBMITTED)
    assert run.result(timeout=120)["n_bags_fitted"] == len(BAGS)
    assert load_model(tmp_path / "m.zarr").report_["n_bags_fitted"] == len(BAGS)
    assert run.logs().splitlines()[-1].startswith("Next: bags predict ")


def test_cancel_a_driver_that_waits(endless):
    """bags cancel takes a driver out of the queue before it has begun."""
    slurm("sbatch", "--exclusive", "--output=/dev/null", "--wrap", "sleep 600")
    [blocking] = jobs()
    try:
        until(lambda: slurm("squeue", "-h", "-o", "%T") == ["RUNNING"])
        run = endless()
        assert slurm("squeue", "-h", "-o", "%j %T", "-n", run.id) == [run.id, "PENDING"]
        assert run.status() is Status.SUBMITTED
        done("cancel", run.url)
        assert run.status() is Status.CANCELLED
        until(lambda: jobs() == {blocking})
    finally:
        slurm("scancel", blocking)


@pytest.mark.parametrize("how", ["bags", "scancel"])
def test_cancel_a_driver_that_runs(endless, how):
    """bags cancel, and scancel of the job itself, end a driver that says it was cancelled."""
    run = endless()
    until(lambda: run.status() is Status.RUNNING)
    if how == "bags":
        done("cancel", run.url)
    else:
        subprocess.run(["scancel", f"--name={run.id}"], check=True)
    until(lambda: run.status().is_over)
    assert run.status() is Status.CANCELLED
