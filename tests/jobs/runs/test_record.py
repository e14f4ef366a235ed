"""The files of a run: what they say about how it stands, whoever died in between."""

from __future__ import annotations

import shutil
import threading
import time

import fsspec
import pytest

from bagbasis import ConfigError, RunError, StoreError
from bagbasis.data.storage.files import write_json
from bagbasis.data.storage.lock import Hold, writer_lock
from bagbasis.jobs.runs import LAUNCHERS, Status, attach, resume, runs_in, submit
from bagbasis.jobs.runs.launchers import launch_here
from bagbasis.jobs.runs.record import BEAT, DEAD_SECONDS, STATE, read_object
from bagbasis.jobs.runs.roots import remember
from bagbasis.jobs.runs.submission import beside_output
from tests.jobs.running import refused
from tests.jobs.runs.drivers import driven


@pytest.fixture
def launched(monkeypatch):
    """Launchers that start nothing, and what they were given."""
    calls = []
    for name in ("local", "queue"):
        monkeypatch.setitem(LAUNCHERS, name, lambda *arguments: calls.append(arguments))
    return calls


@pytest.fixture(params=["local", "memory"])
def root(request, tmp_path):
    """A folder of runs on local files, and on a filesystem without renames."""
    if request.param == "local":
        return str(tmp_path / "runs")
    url = f"memory://runs-of-{request.node.name.replace('[', '-').replace(']', '')}"
    return url


CONFIG = {"data_url": "/data/bags.zarr", "model_url": "/data/m.zarr", "model": {"alpha": 0.1}}


def submitted(root, launcher="local", **config):
    return submit("fit", {**CONFIG, **config}, root=root, launcher=launcher)


def long_ago(run, name, **changes):
    """The file of a run as if it had been written two minutes ago."""
    values = read_object(f"{run.url}/{name}")
    write_json(f"{run.url}/{name}", {**values, **changes})


def test_from_submitted_to_done(root, launched):
    """A run is submitted, running and done; another process reads the same by its id; its config,
    versions and progress are there."""
    run = submitted(root)
    command, _, name = launched[0]
    assert name == run.id
    assert command[1:6] == ["-P", "-m", "bagbasis.jobs", "drive", run.url]
    assert run.status() is Status.SUBMITTED
    assert run.logs() == ""
    record = run.record()
    assert record["config"] == {**CONFIG, "checkpoints": f"{run.url}/checkpoints"}
    assert {"bagbasis", "numpy", "zarr"} <= set(record["versions"])
    driving = driven(run)
    with driving.running() as report:
        assert run.status() is Status.RUNNING
        driving.progress("fit", 3, 10)
        driving.beat()
        assert attach(run.id, root=root).progress() == (3, 10)
        report["n_bags"] = 10
    state = attach(run.id, root=root).state()
    assert state.status is Status.DONE
    assert state.submitted <= state.begun <= state.ended <= time.time()
    assert run.result() == {"n_bags": 10}


def test_failed(root, launched):
    """A failed run has one line and a traceback; its result raises that line."""
    run = submitted(root)
    with pytest.raises(StoreError), driven(run).running():
        raise StoreError("s.zarr: not\n found")
    state = run.state()
    assert (state.status, state.error) == (Status.FAILED, "s.zarr: not found")
    assert "Traceback" in state.traceback
    assert "test_record.py" in state.traceback
    with pytest.raises(RunError, match=rf"run {run.id} failed: s\.zarr: not found"):
        run.result()


def test_filesystem_away_at_the_end(root, launched, monkeypatch):
    """A run whose job came to its end is done, though its folder could not be read in between."""
    run = submitted(root)
    driving = driven(run)
    with driving.running():
        failing = 2  # before the checkpoints go, and at the last sign of life
        is_ours = driving.is_ours

        def ours():
            nonlocal failing
            if threading.current_thread() is threading.main_thread() and failing:
                failing -= 1
                raise StoreError("no answer")
            return is_ours()

        monkeypatch.setattr(driving, "is_ours", ours)
    assert failing == 0
    assert run.status() is Status.DONE


def test_interrupted_is_cancelled(root, launched):
    """An interrupt of the driver is a cancelled run, which cannot be cancelled again."""
    run = submitted(root)
    run.cancel()
    with pytest.raises(KeyboardInterrupt), driven(run).running():
        raise KeyboardInterrupt
    assert run.status() is Status.CANCELLED
    with pytest.raises(RunError, match="is cancelled; there is nothing to cancel"):
        run.cancel()


def test_wish_to_cancel_is_heard_once(root, launched):
    """The driver hears a wish to cancel, once, and none that was for a driver before it."""
    heard = []
    run = submitted(root)
    driving = driven(run, lambda: heard.append(1))
    driving.heed()
    assert heard == []
    run.cancel()
    driving.heed()
    driving.heed()
    assert heard == [1]
    long_ago(run, "run.json", submitted=time.time() - 2 * DEAD_SECONDS)
    resume(run)
    driven(run, lambda: heard.append(2)).heed()
    assert heard == [1]


def test_died_is_not_slow(root, launched):
    """Without a sign of life for a minute a run has died; with one it is slow, however old."""
    run = submitted(root)
    driving = driven(run)
    driving.beat()
    driving.write(Status.RUNNING)
    hours_ago = time.time() - 7200
    long_ago(run, STATE, begun=hours_ago)
    long_ago(run, "run.json", submitted=hours_ago)
    assert run.status() is Status.RUNNING
    long_ago(run, BEAT, time=time.time() - DEAD_SECONDS - 1)
    assert run.status() is Status.DIED
    with pytest.raises(RunError, match="died: no sign of life for a minute"):
        run.result()


@pytest.mark.parametrize(("launcher", "status"), [("local", "died"), ("queue", "submitted")])
def test_never_begun(tmp_path, launched, launcher, status):
    """A driver of this machine that never began has died; one in a queue may wait for days."""
    run = submitted(tmp_path, launcher)
    long_ago(run, "run.json", submitted=time.time() - 2 * DEAD_SECONDS)
    assert run.status() == status


def test_resume(root, launched):
    """A run that died is started again as it was; what its first driver wrote counts no more."""
    run = submitted(root)
    with pytest.raises(RunError, match="is submitted; only one that died"):
        resume(run)
    driving = driven(run)
    with pytest.raises(ValueError, match="no"), driving.running():
        raise ValueError("no")
    again = resume(run.id, CONFIG, root=root)
    assert again == run
    assert run.status() is Status.SUBMITTED
    assert len(launched) == 2
    assert run.record()["config"]["checkpoints"] == f"{run.url}/checkpoints"
    driving.write(Status.FAILED)
    assert run.status() is Status.SUBMITTED
    with driven(run).running():
        pass
    with pytest.raises(RunError, match="is done; only one that died"):
        resume(run)


def test_resumed_by_two_clients(root, launched, monkeypatch):
    """One of two clients that resume a run at the same time does; the other one starts nothing."""
    run = submitted(root)
    long_ago(run, "run.json", submitted=time.time() - 2 * DEAD_SECONDS)
    refused = pytest.raises(RunError, match="somebody else submits this run at the moment")
    write, started = Hold.write, []

    def be_overtaken_and_write(self, name, content):
        monkeypatch.setattr(Hold, "write", write)
        started.append(resume(run))
        write(self, name, content)

    if root.startswith("memory"):
        monkeypatch.setattr(Hold, "write", be_overtaken_and_write)
        with refused:
            resume(run)
    else:
        with writer_lock(run.url, lock_name="run.lock"), refused:
            resume(run)
        started.append(resume(run))
    assert started == [run]
    assert len(launched) == 2


def test_driver_that_was_thought_dead(root, launched):
    """A driver whose run was submitted again meanwhile stops, once it looks, and writes over
    nothing that the later one wrote."""
    heard = []
    run = submitted(root)
    older = driven(run, lambda: heard.append(1))
    with older.running() as report:
        report["n_bags"] = 9
        long_ago(run, BEAT, time=time.time() - DEAD_SECONDS - 1)
        resume(run)
        older.heed()
        older.heed()
        assert heard == [1]
        older.beat()
        assert run.status() is Status.SUBMITTED
        with driven(run).running() as later:
            later["n_bags"] = 10
    older.give_up()
    assert run.result() == {"n_bags": 10}


def test_no_such_run(root, launched, monkeypatch):
    """A run id that is not there, or without a root, is one clear line."""
    monkeypatch.delenv("BAGBASIS_RUNS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/nowhere")
    with pytest.raises(RunError, match="nobody: no run there"):
        attach("nobody", root=root)
    with pytest.raises(RunError, match="run nobody: give the root"):
        attach("nobody")
    with pytest.raises(RunError, match="give the root"):
        runs_in()


def test_roots(tmp_path, launched, monkeypatch):
    """Runs lie next to the output unless a root is given or the environment says otherwise; they
    are listed, the oldest first, whatever else lies there."""
    config = {"data_url": "b.zarr", "model_url": str(tmp_path / "models" / "m.zarr")}
    monkeypatch.delenv("BAGBASIS_RUNS", raising=False)
    assert submit("fit", config).url.startswith(f"{tmp_path}/models/runs/")
    with pytest.raises(ConfigError, match="names no output"):
        submit("verify", {})
    monkeypatch.setenv("BAGBASIS_RUNS", str(tmp_path / "mine"))
    runs = [submit("fit", config), submit("evaluate", {"out_dir": "o"})]
    (tmp_path / "mine" / "notes").mkdir()
    assert {run.url for run in runs_in()} == {run.url for run in runs}
    assert attach(runs[0].id) == runs[0]
    assert attach(runs[0].url) == runs[0]


def test_roots_are_remembered(tmp_path, launched, monkeypatch, caplog):
    """Without a root, the runs of all roots that were submitted to are there; not those of a root
    that is gone or cannot be read. Without a place to remember them, a submission only warns."""
    monkeypatch.delenv("BAGBASIS_RUNS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    a, b = (submit("fit", CONFIG, root=tmp_path / name) for name in "ab")
    remember("nowhere://bucket/runs")
    assert [run.id for run in runs_in()] == sorted([a.id, b.id])
    assert (attach(a.id), attach(b.id)) == (a, b)
    assert "its runs are not listed: nowhere://bucket/runs" in caplog.text
    with pytest.raises(RunError, match="run nobody: give the root"):
        attach("nobody")
    shutil.rmtree(tmp_path / "a")
    remember("s3://key:secret@bucket/runs")
    assert [run.id for run in runs_in()] == [b.id]
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert submit("fit", CONFIG, root=tmp_path / "c").id
    assert f"needs --root {tmp_path}/c" in caplog.text


def test_interrupted_attach(tmp_path, launched, monkeypatch):
    """Ctrl-C says that the run goes on, how to come back, and how to stop it."""

    def interrupt(seconds):
        raise KeyboardInterrupt

    run = submit("fit", CONFIG, root=tmp_path)
    monkeypatch.setattr("time.sleep", interrupt)
    line = refused(130, "attach", run.url)
    assert line.startswith("bags: interrupted; the run goes on: ")
    assert f"`bags attach {run.url}`" in line
    assert f"`bags cancel {run.url}`" in line


def test_the_root_beside_a_store_of_icechunk(tmp_path, launched, monkeypatch):
    """Icechunk keeps bag stores alone: the run of a job that makes one lies near it, in files."""
    monkeypatch.delenv("BAGBASIS_RUNS", raising=False)
    run = submit("generate", {"url": f"icechunk+file://{tmp_path}/b.zarr"})
    assert run.url.startswith(f"{tmp_path}/runs/")
    assert beside_output({"url": "icechunk+s3://bucket/b.zarr"}) == "s3://bucket/runs"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job": "fitt"}, "no job 'fitt' .did you mean 'fit'"),
        ({"job": "../../x"}, "no job '../../x'"),
        ({"config": {**CONFIG, "n": object()}}, "'n': <object .* cannot be written as JSON"),
        ({"config": {**CONFIG, "n": float("nan")}}, "'n': nan.* cannot be written as JSON"),
    ],
)
def test_wrong_submissions(tmp_path, launched, changes, message):
    """A job that is not there, above all one that leads out of the root, and a value that no file
    of a run holds start nothing and write nothing."""
    with pytest.raises(ConfigError, match=message):
        submit(**{"job": "fit", "config": CONFIG, "root": tmp_path / "runs", **changes})
    assert launched == []
    assert list(tmp_path.iterdir()) == []


def test_driver_that_can_not_be_started(tmp_path):
    """A command that is not there is an error of the submission."""
    with pytest.raises(RunError, match="cannot be started"):
        launch_here(["/nowhere/python"], tmp_path / "log.txt", "run")


def test_damaged_state(tmp_path, launched):
    """A file that holds something else is named."""
    run = submitted(tmp_path)
    (tmp_path / run.id / "state.json").write_text("{")
    with pytest.raises(RunError, match=r"state\.json: not the file of a run"):
        run.state()


def test_log_of_a_remote_run(launched):
    """What a driver prints is copied next to its state where that is not on local files."""
    run = submitted("memory://runs-with-a-log")
    driving = driven(run)
    try:
        driving.log.write_text("Fitted\n")
        with driving.running():
            pass
    finally:
        driving.log.unlink()
    assert run.logs() == "Fitted\n"
    assert fsspec.filesystem("memory").exists(f"/runs-with-a-log/{run.id}/log.txt")
