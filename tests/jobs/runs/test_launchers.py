"""Drivers as batch jobs: what sbatch and scancel are asked, with stand-ins for both on PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bagbasis import RunError
from bagbasis.jobs.runs import Status, attach, resume, submission, submit
from tests.jobs.running import done
from tests.jobs.runs.drivers import driven

CONFIG = {"data_url": "/data/bags.zarr", "model_url": "/data/m.zarr"}

# Keeps what it was given, and the script; answers and ends as the test says.
STAND_IN = """#!{python}
import json, os, sys
asked = {{"args": sys.argv[1:]}}
for arg in sys.argv[1:]:
    if os.path.exists(arg) and arg.endswith(".sh"):
        asked["script"] = open(arg).read()
with open({calls!r}, "a") as file:
    file.write(json.dumps([os.path.basename(sys.argv[0]), asked]) + "\\n")
sys.stdout.write({out!r})
sys.stderr.write({err!r})
sys.exit({code})
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Puts a stand-in for a command on PATH, which has nothing else; returns what was asked."""
    folder, calls = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(name, out="", err="", code=0):
        path = folder / name
        values = {"python": sys.executable, "calls": str(calls), "out": out, "err": err}
        path.write_text(STAND_IN.format(**values, code=code))
        path.chmod(0o755)

    install.asked = lambda: [json.loads(line) for line in calls.read_text().splitlines()]
    return install


def submitted(root, **config):
    return submit("fit", {**CONFIG, **config}, root=root, launcher="sbatch")


@pytest.mark.parametrize("launcher", ["local", "sbatch"])
def test_a_log_that_is_a_link_is_refused(tmp_path, monkeypatch, launcher):
    """For a run in object storage it lies in a temporary folder, where others may put links."""
    theirs = tmp_path / "theirs"
    monkeypatch.setattr(submission, "local_log", lambda url: tmp_path / "log")
    (tmp_path / "log").symlink_to(theirs)
    with pytest.raises(RunError, match="the driver cannot be started"):
        submit("fit", CONFIG, root=tmp_path / "runs", launcher=launcher)
    assert not theirs.exists()


def test_driver_as_a_batch_job(slurm, tmp_path):
    """sbatch gets the run's name, its log, and the command as arguments of a script that no
    input is part of."""
    slurm("sbatch", "17;cluster\n")
    root = tmp_path / "runs 100%; $(touch x)"
    run = submitted(root)
    [(name, asked)] = slurm.asked()
    args = asked["args"]
    script = next(i for i, arg in enumerate(args) if arg.endswith(".sh"))
    assert name == "sbatch"
    assert f"--job-name={run.id}" in args[:script]
    assert f"--output={tmp_path}/runs 100%%; $(touch x)/{run.id}/log.txt" in args[:script]
    command = [sys.executable, "-P", "-m", "bagbasis.jobs", "drive", run.url]
    command += ["--attempt", run.record()["attempt"], "--log", f"{run.url}/log.txt"]
    assert args[script + 1 :] == command
    assert asked["script"] == '#!/bin/sh\nexec "$@"\n'
    assert run.status() is Status.SUBMITTED
    assert run.record()["launcher"] == "sbatch"
    assert run.record()["launched"] == {"slurm_job": "17"}
    assert "slurm_job" in done("runs", "--root", root)


@pytest.mark.long
def test_what_sbatch_refuses(slurm, tmp_path):
    """Its reason is one line; the run is not waited for, and can be started again."""
    slurm("sbatch", err="sbatch: error: invalid partition\nsbatch: error: nowhere\n", code=1)
    with pytest.raises(RunError, match=r"SLURM refuses the driver: invalid partition nowhere$"):
        submitted(tmp_path / "runs")
    [name] = os.listdir(tmp_path / "runs")
    run = attach(name, root=tmp_path / "runs")
    assert run.status() is Status.CANCELLED
    slurm("sbatch", "18\n")
    resume(run)
    assert run.status() is Status.SUBMITTED


@pytest.mark.long
@pytest.mark.parametrize("has_scancel", [True, False])
def test_cancelled_in_the_queue(slurm, tmp_path, has_scancel):
    """A driver that waits is taken out of the queue; the run is cancelled at once, and a driver
    that begins nevertheless stops before its job does."""
    slurm("sbatch", "17\n")
    if has_scancel:
        slurm("scancel")
    run = submitted(tmp_path / "runs")
    run.cancel()
    if has_scancel:
        name, asked = slurm.asked()[-1]
        assert name == "scancel"
        assert f"--name={run.id}" in asked["args"]
        assert "--state=PENDING" in asked["args"]
    assert run.status() is Status.CANCELLED
    with pytest.raises(RunError, match="is cancelled; there is nothing to cancel"):
        run.cancel()
    ran = []
    with pytest.raises(KeyboardInterrupt), driven(run).running():
        ran.append("the job")
    assert ran == []
    assert run.status() is Status.CANCELLED


@pytest.mark.long
def test_scancel_that_fails(slurm, tmp_path):
    """A driver that stays in the queue after its run was submitted again ends with one line when
    it begins, in a process of its own: the later driver does the job, alone."""
    slurm("sbatch", "17\n")
    slurm("scancel", err="scancel: error: Unable to contact slurm controller\n", code=1)
    store = tmp_path / "bags.zarr"
    config = {"dataset": "gmm_components", "n_bags": 10, "url": str(store)}
    run = submit("generate", config, root=tmp_path / "runs", launcher="sbatch")
    run.cancel()
    resume(run)
    calls = [asked["args"] for name, asked in slurm.asked() if name == "sbatch"]
    older, later = [args[args.index(sys.executable) :] for args in calls]
    ended = subprocess.run(older, capture_output=True, text=True, check=False)
    assert ended.returncode == 4, ended.stderr
    [line] = ended.stderr.splitlines()
    assert f"{run.url}: the run was submitted again since" in line
    assert run.status() is Status.SUBMITTED
    assert not store.exists()
    subprocess.run(later, check=True, capture_output=True)
    assert run.result()["n_bags"] == 10


def test_wish_is_for_one_attempt(slurm, tmp_path):
    """A run that was cancelled in the queue and is submitted again waits like any other."""
    slurm("sbatch", "17\n")
    run = submitted(tmp_path / "runs")
    run.cancel()
    resume(run)
    assert run.status() is Status.SUBMITTED
    with driven(run).running():
        pass
    assert run.status() is Status.DONE
