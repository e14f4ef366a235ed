"""Worker processes of this machine: their folder is theirs, and a start that fails is one line."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from multiprocessing.synchronize import SemLock
from pathlib import Path

import pytest

from bagbasis import ClusterError, connect
from bagbasis.execution.clusters.local_workers import SPILL_PREFIX

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
SCRATCH = "dask-scratch-space"  # Dask's folder, the same for all accounts


def places(dask_worker):
    return dask_worker.local_directory, sys.path


def test_folder_of_its_own(tmp_path, monkeypatch):
    """Nothing is spilled into, or imported from, a folder that another account may have made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    shared = tmp_path / SCRATCH
    shared.mkdir(mode=0o777)
    before = list(sys.path)
    with connect("local", n_workers=1) as client:
        [folder] = tmp_path.glob(f"{SPILL_PREFIX}*")
        assert folder.stat().st_mode & 0o777 == 0o700
        [(spill, path)] = client.run(places).values()
        assert spill.startswith(f"{folder}/")
        assert not [entry for entry in (*path, *sys.path) if entry.startswith(str(shared))]
        assert list(shared.iterdir()) == []
    assert not folder.exists()
    assert sys.path == before


def test_client_that_nobody_closes(tmp_path):
    """The folder goes with the process."""
    code = (
        "from bagbasis import connect\nif __name__ == '__main__':\n"
        f"    print(connect('local', n_workers=1).run(lambda: {tempfile.tempdir!r}))"
    )
    script = tmp_path / "left_open.py"
    script.write_text(code)
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    subprocess.run([sys.executable, script], env=environment, check=True, cwd=ROOT)
    assert list((tmp_path / "temporary").glob(f"{SPILL_PREFIX}*")) == []


def _no_semaphores(*_, **__):
    """As where there is no /dev/shm."""
    raise FileNotFoundError(2, "No such file or directory")


CASES = {
    "no shared memory": (
        lambda _: setattr(SemLock, "__init__", _no_semaphores),
        "No such file",
    ),
    "few files": (lambda _: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)), "open files"),
    "next to none": (lambda _: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)), "open files"),
    "no working folder": (lambda folder: (os.chdir(folder), os.rmdir(folder)), "FileNotFound"),
    "no place": (lambda _: setattr(tempfile, "tempdir", "/nowhere"), "/nowhere"),
}


def _try(folder):
    """Each case in a process of its own, forked from this one, which has imported all."""
    for case, (spoil, _) in CASES.items():
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            spoil(folder)
            try:
                connect("local", n_workers=2, cores_per_worker=1)
            except ClusterError as error:
                print(f"{case}: {error}")
            return
        assert os.waitpid(pid, 0)[1] == 0, case


def test_cluster_that_can_not_start(tmp_path):
    """One line of ours, none of Dask's."""
    command = [sys.executable, "-m", __spec__.name, str(tmp_path / "gone")]
    (tmp_path / "gone").mkdir()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    for line, (case, (_, cause)) in zip(done.stdout.splitlines(), CASES.items(), strict=True):
        assert line.startswith(f"{case}: no local cluster can be started (")
        assert cause in line
    assert done.returncode == 0


if __name__ == "__main__":
    _try(*sys.argv[1:])
