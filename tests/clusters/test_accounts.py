"""Other accounts of this machine: nothing of a job answers to them, or can be read by them."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from distributed import LocalCluster

from bagbasis import connect
from bagbasis.ingest import ingest_tables
from bagbasis.jobs.runs import runs_in, submit
from bagbasis.jobs.runs.record import BEAT, read_object
from bagbasis.operations import Registry
from tests.clusters.intruder import NOBODY, open_to_others, ports_of, ports_told
from tests.execution.gated import until
from tests.jobs.test_serve import serving
from tests.models.predicting import fitted

pytestmark = pytest.mark.accounts


@pytest.fixture(autouse=True)
def _root():
    assert os.getuid() == 0, "only root can become another account"


@pytest.fixture
def shared():
    """A folder that everybody can enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="bagbasis-shared-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_what_is_open_is_found(shared):
    """The intruder is one: a cluster without certificates answers to it, as do files."""
    (shared / "a").write_text("a")
    (shared / "b").touch(mode=0o600)
    before = ports_of(os.getpid())
    with LocalCluster(n_workers=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"):
        ports = ports_of(os.getpid()) - before
        result = " ".join(open_to_others(ports, [shared, shared / "a", shared / "b"]))
    for part in ("a Scheduler, by tcp", "a Worker, by tcp", "a Nanny, by tcp", "pages ['/'"):
        assert part in result
    assert result.endswith(f"{shared} {shared}/a")


def test_local_cluster():
    """No port of scheduler, workers, nannies and their HTTP servers answers."""
    before = ports_of(os.getpid())
    with connect("local", n_workers=2, cores_per_worker=1) as client:
        client.wait_for_workers(2)
        message = list(ports_told(client))
        assert len(message) == 8
        assert open_to_others({*message, *(ports_of(os.getpid()) - before)}) == []


def test_dashboard_that_was_asked_for():
    """dashboard=True shows pages, and lets nobody in."""
    before = ports_of(os.getpid())
    with connect("local", n_workers=1, dashboard=True):
        result = open_to_others(ports_of(os.getpid()) - before)
        assert all("pages" in item for item in result)
        assert "/info/main/workers.html" in " ".join(result)


def test_ingest(tmp_path):
    """Tables are sorted in this process, which listens nowhere."""
    points = tmp_path / "points.csv"
    points.write_text("bag,x\n" + "".join(f"{i % 9},{i / 99}\n" for i in range(99)))
    before, seen = ports_of(os.getpid()), []
    columns = {"id_column": "bag", "coordinates": ["x"]}
    look = lambda *_: seen.append(ports_of(os.getpid()) - before)  # noqa: E731
    ingest_tables(points, tmp_path / "s.zarr", **columns, progress=look)
    assert seen
    assert set().union(*seen) == set()


def test_served_champion(shared):
    """Nothing is answered without the token, which no other account can read."""
    registry = Registry(shared / "registry")
    registry.promote(registry.register(fitted("one target")))
    token = shared / "token"
    with serving(registry.url, "--token-file", token) as server:
        assert server.ask("/health")[0] == 200
        assert open_to_others(ports_of(server.process.pid), [token]) == []


def test_submitted_run(shared):
    """Neither ports nor files of a run are open, whatever the umask of who submitted it."""
    config = {"dataset": "gmm_components", "n_bags": 100_000_000, "cluster": "local"}
    before = os.umask(0)
    try:
        run = submit("generate", {**config, "url": f"{shared}/s.zarr"}, root=shared / "runs")
    finally:
        os.umask(before)
    try:
        until(lambda: run.state().done > 0)
        pid = read_object(f"{run.url}/{BEAT}")["pid"]
        until(lambda: len(ports_of(pid)) >= 5)  # the kernel's list may lack one for a moment
        ports = ports_of(pid)
        files = sorted(Path(run.url).rglob("*"))
        assert {path.name for path in files} >= {"run.json", "state.json", "beat.json", "log.txt"}
        assert open_to_others(ports, [run.url, *files]) == []
        assert {f"{path.stat().st_mode:o}" for path in files} == {"100600"}
        assert [item.id for item in runs_in(shared / "runs")] == [run.id]
        os.seteuid(NOBODY)
        try:  # in a root that several people use, each sees his own
            assert runs_in(shared / "runs") == []
        finally:
            os.seteuid(0)
    finally:
        run.cancel()
        until(lambda: run.status().is_over)
