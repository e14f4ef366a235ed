"""What the tests of real clusters share."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

import pytest

from tests.clusters.encrypted import DASK, certificates, free_port, listens, options, scheduler
from tests.clusters.problem import ROOT, fitted, process
from tests.execution.gated import until

# `make test` does not install what these modules import, as test-clusters does
if find_spec("dask_jobqueue") is None:
    collect_ignore = [
        f"test_{name}.py" for name in ("gateway", "kubernetes", "sbatch", "slurm", "tls")
    ]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A store that is made by the first fit."""
    return str(tmp_path_factory.mktemp("data") / "bags.zarr")


@pytest.fixture(scope="module")
def expected(url):
    """What one process makes of it."""
    return fitted(url)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """Workers find the tests' tasks."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Certificates of the cluster, of another authority, and of the first one but expired."""
    folder = tmp_path_factory.mktemp("tls")
    ours = certificates(folder / "ours")
    (folder / "expired").mkdir()
    for name in ("ca.crt", "ca.key"):
        shutil.copy(ours / name, folder / "expired" / name)
    return {
        "ours": ours,
        "other": certificates(folder / "other"),
        "expired": certificates(folder / "expired", "-1"),
    }


@pytest.fixture(scope="session")
def cluster(made, tmp_path_factory):
    """The address of a scheduler with two workers."""
    logs = tmp_path_factory.mktemp("logs")
    address = f"tls://127.0.0.1:{(port := free_port())}"
    worker = [
        *(*DASK, "worker", address, "--host", "127.0.0.1", "--nthreads", "1"),
        *("--dashboard-address", "127.0.0.1:0", *options(made["ours"], "worker")),
    ]
    with (
        scheduler(made["ours"], port, logs / "scheduler"),
        process(*worker, log=logs / "worker-1", BAGBASIS_WORKER_CORES="1"),
        process(*worker, log=logs / "worker-2", BAGBASIS_WORKER_CORES="1"),
    ):
        until(lambda: listens(port))
        yield address
