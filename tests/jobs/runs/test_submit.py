"""Jobs in processes of their own: they outlive their client, stop when asked, and go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from bagbasis import BagStore, ParameterError, RunError, load_model
from bagbasis.jobs.runs import Status, attach, record as states, runs_in, submit
from tests.execution.gated import alive, kill, until
from tests.jobs.running import CONFIGS, done, refused, settings

ENDLESS = {"dataset": "gmm_components", "n_bags": 100_000_000}


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def endless(tmp_path, root):
    """A job that would take days, and is under way."""
    run = submit("generate", {**ENDLESS, "url": str(tmp_path / "many.zarr")}, root=root)
    until(lambda: run.status() is Status.RUNNING)
    yield run
    pid = driver_of(run)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def driver_of(run):
    return states.read_object(f"{run.url}/{states.BEAT}")["pid"]


def fit_settings(regression, tmp_path):
    urls = settings(data_url=regression / "bags.zarr", model_url=tmp_path / "m.zarr")
    model = settings(model__embedding="projection", model__random_features__n_features=64)
    return [*urls, *model, *settings(holdout=0.3)]


@pytest.mark.long
def test_client_is_killed(regression, tmp_path, root):
    """The client and all of its session die by SIGKILL; the run finishes, and another client has
    its report, its model and its log; the commands tell of it."""
    code = """
import sys, time
from bagbasis.jobs.runs import submit
data, model, root = sys.argv[1:]
bases = {"embedding": {"name": "projection"}, "random_features": {"n_features": 64}}
config = {"data_url": data, "model_url": model, "holdout": 0.3, "model": bases}
print(submit("fit", config, root=root).id, flush=True)
time.sleep(600)
"""
    args = [str(regression / "bags.zarr"), str(tmp_path / "m.zarr"), str(root)]
    client = subprocess.Popen(
        [sys.executable, "-c", code, *args],
        cwd=CONFIGS.parent,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    run = attach(client.stdout.readline().strip(), root=root)
    os.killpg(client.pid, signal.SIGKILL)
    client.communicate()
    report = run.result(timeout=120)
    assert report["n_bags_fitted"] + report["n_bags_held_out"] == 300
    model, direct = load_model(tmp_path / "m.zarr"), load_model(regression / "model.zarr")
    assert abs(model.coef_ - direct.coef_).max() <= 1e-10 * abs(direct.coef_).max()
    assert run.progress() == (300, 300)
    assert "fitted to" in run.logs()
    assert not (root / run.id / "checkpoints").exists()
    at = ("--root", root)
    assert "n_bags_fitted" in done("attach", run.id, *at)
    assert run.id in done("runs", *at)
    [listed] = json.loads(done("runs", *at, "--json"))["runs"]
    assert (listed["run"], listed["status"]) == (run.id, "done")
    assert [item.id for item in runs_in(root)] == [run.id]
    assert "is done; there is nothing to cancel" in refused(1, "cancel", run.id, *at)
    assert "is done; only one" in refused(1, "submit", "fit", "--resume", run.id, *at)


# names that our imports, and those of workers, look for
SCRIPTS = ("pipeline", "jobs", "click", "numpy", "yaml", "multiprocessing", "distributed")


SAID = "this script of the folder was run"


@pytest.fixture
def one_worker(tmp_path):
    """A profile of one worker of this machine."""
    profile = tmp_path / "one.yaml"
    profile.write_text("cluster: local\nn_workers: 1\n")
    return str(profile)


def scripts(folder, *names):
    """A folder of scripts, which nobody asked to run."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(f"raise SystemExit({SAID!r})")
    return folder


@pytest.mark.long
def test_driver_runs_no_script_of_its_folder(tmp_path, root, monkeypatch, one_worker):
    """A run submitted from a folder of scripts, whatever their names, imports none of them, and its
    worker neither."""
    monkeypatch.chdir(scripts(tmp_path / "scripts", "bagbasis", *SCRIPTS))
    few = {"dataset": "gmm_components", "n_bags": 20, "url": str(tmp_path / "s.zarr")}
    run = submit("generate", {**few, "cluster": one_worker}, root=root)
    until(lambda: run.status().is_over or SAID in run.logs())
    assert SAID not in run.logs()
    assert run.result()["n_bags"] == 20


@pytest.mark.long
def test_command_runs_no_script_of_its_folder(tmp_path, one_worker):
    """The console script, which looks for imports next to itself, and its worker neither."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bags").write_text(
        "from bagbasis.jobs.cli import main\nif __name__ == '__main__':\n    main()\n"
    )
    few = settings(dataset="gmm_components", n_bags=20, url=tmp_path / "s.zarr")
    command = [sys.executable, str(tmp_path / "bin" / "bags"), "generate", *few]
    command += ["--cluster", one_worker]
    folder = scripts(tmp_path / "scripts", "bagbasis", *SCRIPTS)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert SAID not in done.stderr
    assert BagStore.open(tmp_path / "s.zarr").n_bags == 20


def test_refused_before_anything_runs(tmp_path, root):
    """A wrong job, key or value is refused at once, with exit code 2; no run is made."""
    assert "no job 'fitt'" in refused(2, "submit", "fitt", "--root", root)
    wrong = settings(data_url="a", model_url="b", holdoutt=0.1)
    assert "'holdoutt'" in refused(2, "submit", "fit", *wrong, "--root", root)
    assert "nobody: no run there" in refused(1, "attach", "nobody", "--root", root)
    assert "nobody: no run there" in refused(1, "cancel", "nobody", "--root", root)
    nowhere = settings(data_url="a", model_url="b")
    assert "'cluster' is ''" in refused(
        2, "submit", "fit", *nowhere, "--root", root, "--cluster", ""
    )
    with pytest.raises(ParameterError, match=r"profile is ''; expected 'none', 'local', a sched"):
        submit("fit", {"data_url": "a", "model_url": "b"}, profile="", root=root)
    assert not root.exists()


@pytest.mark.long
def test_cancel(endless, root):
    """A run that is asked to stop does, within seconds, and says so."""
    with pytest.raises(RunError, match="is running still after 0 s"):
        endless.result(timeout=0)
    done("cancel", endless.id, "--root", root)
    until(lambda: endless.status().is_over)
    assert endless.status() is Status.CANCELLED
    assert "is cancelled" in refused(1, "attach", endless.url)
    pid = driver_of(endless)
    until(lambda: not alive(pid))


@pytest.mark.long
def test_driver_whose_queue_ends_it(endless):
    """A driver that is asked to end by SIGTERM says that it was cancelled, and stops."""
    os.kill(pid := driver_of(endless), signal.SIGTERM)
    until(lambda: endless.status().is_over)
    assert endless.status() is Status.CANCELLED
    until(lambda: not alive(pid))


@pytest.mark.long
def test_killed_driver_is_found_out_and_resumed(regression, tmp_path, root, monkeypatch):
    """A driver killed by SIGKILL is told from a slow one by its heartbeat; a changed config is
    refused by the key; the run as it was goes on to the end."""
    arguments = fit_settings(regression, tmp_path)
    run_id, follow = done("submit", "fit", *arguments, "--root", root).splitlines()
    assert follow == f"bags attach {root}/{run_id}"
    run = attach(run_id, root=root)
    until(lambda: run.status() is Status.RUNNING)
    kill(driver_of(run))
    monkeypatch.setattr(states, "DEAD_SECONDS", 0.0)
    assert run.status() is Status.DIED
    resumed = ["submit", "fit", "--resume", run.url]
    changed = refused(2, *resumed, *arguments, *settings(holdout=0.5))
    assert "key 'holdout' is 0.5" in changed
    assert "was started with 0.3" in changed
    done(*resumed, *arguments)
    monkeypatch.undo()
    assert run.result(timeout=120)["n_bags"] == 300
