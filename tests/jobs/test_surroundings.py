"""Jobs where the surroundings are amiss: one line each, or the job does its work all the same."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagStore, ExhaustedError, load_model
from bagbasis.core.errors import EXHAUSTED
from bagbasis.core.systems import addresses_needed
from bagbasis.data.storage import zarr_reading
from bagbasis.jobs.shell import FAILED, WRONG_CONFIG, guarded
from bagbasis.models import loading
from tests.jobs.running import CONFIGS, refused, settings

pytestmark = pytest.mark.long

BROKEN = "can't start new thread"


def bags(*args, stdout=subprocess.PIPE, addresses=resource.RLIM_INFINITY, **environment):
    """``bags`` in a process of its own, with a changed environment and a limit of its addresses."""
    return subprocess.run(
        [sys.executable, "-m", "bagbasis.jobs", *map(str, args)],
        env=os.environ | environment,
        cwd=CONFIGS.parent,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses)),
    )


def fit(folder, to):
    return (
        "fit",
        *settings(data_url=folder / "bags.zarr", model_url=to / "model.zarr"),
        *settings(model__random_features__n_features=16, model__embedding__n_per_dim=3),
    )


def test_no_place_for_compiled_kernels(regression, tmp_path):
    """As where neither the package's folder nor a home can be written, which Numba looks for."""
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
    done = bags(*fit(regression, tmp_path), **nowhere)
    assert done.returncode == FAILED
    [line] = done.stderr.splitlines()
    assert line.startswith("bags: fit: compiled kernels have no place: ")
    assert "set NUMBA_CACHE_DIR to a folder of this account" in line


def test_a_variable_that_numba_refuses(regression, tmp_path):
    done = bags(*fit(regression, tmp_path), NUMBA_NUM_THREADS="0")
    assert done.returncode == WRONG_CONFIG
    [line] = done.stderr.splitlines()
    assert "Numba cannot use what the environment says" in line


def test_a_number_of_cores_that_is_none(regression, tmp_path, monkeypatch):
    monkeypatch.setenv("BAGBASIS_WORKER_CORES", "x")
    line = refused(WRONG_CONFIG, *fit(regression, tmp_path))
    assert "BAGBASIS_WORKER_CORES='x'; expected a positive number" in line


def test_no_screen_and_no_place_of_matplotlib(regression, tmp_path):
    """A job draws into files: which screen there is, and where Matplotlib keeps fonts, is nothing
    to it."""
    args = settings(data_url=regression / "bags.zarr", model_url=regression / "model.zarr")
    done = bags(
        *("evaluate", *args, *settings(out_dir=tmp_path / "out")),
        MPLBACKEND="nope",
        MPLCONFIGDIR="/proc/none",
    )
    assert done.returncode == 0, done.stderr
    assert "atplotlib" not in done.stderr
    assert "/proc/none" not in done.stderr
    assert list((tmp_path / "out").glob("*.png"))


@pytest.mark.parametrize("args", [["info", "--json"], ["--help"]])
def test_stdout_that_takes_no_more(regression, args):
    """As on a full disk."""
    url = [regression / "bags.zarr"] if "info" in args else []
    with open("/dev/full", "w") as full:
        done = bags(*args, *url, stdout=full)
    assert done.returncode == FAILED
    [line] = done.stderr.splitlines()
    assert "what is printed cannot be written (No space left on device)" in line


def ingest(folder, to):
    points = pd.DataFrame({"bag": np.arange(2000) // 20, "u": 0.5, "v": np.linspace(0, 1, 2000)})
    points.to_parquet(to / "t.parquet")
    keys = {"points": to / "t.parquet", "id_column": "bag", "coordinates": "[u, v]"}
    return ("ingest", *settings(url=to / "new.zarr", **keys))


@pytest.mark.parametrize(("job", "share"), [(fit, 0.08), (ingest, 0.99)])
def test_few_addresses(regression, tmp_path, job, share):
    """With so few addresses libraries die or hang, with a line of their own or none: the job says
    so first, and the number that it asks for is enough."""
    args = job(regression, tmp_path)
    done = bags(*args, addresses=int(share * addresses_needed()))
    assert done.returncode == FAILED
    [line] = done.stderr.splitlines()
    assert line.startswith(f"bags: {args[0]}: this process may have ")
    assert "GiB of addresses (ulimit -v, RLIMIT_AS), and libraries and threads" in line
    done = bags(*args, addresses=addresses_needed())
    assert done.returncode == 0, done.stderr


# an account that is limited, as root is not, and may read what root may: Python is in its home
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
READER = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")


@pytest.mark.parametrize(("n_processes", "cluster"), [(1, "none"), (4, "local")])
def test_few_processes(tmp_path, n_processes, cluster):
    """With so few processes OpenBLAS prints lines and interrupts the job: the job prints one."""
    tmp_path.chmod(0o777)
    keys = settings(url=tmp_path / "new.zarr", n_bags=2, dataset="gmm_components", cluster=cluster)
    done = subprocess.run(
        [
            *((*NOBODY, *READER) if os.getuid() == 0 else ()),
            *("prlimit", f"--nproc={n_processes}"),
            *(sys.executable, "-m", "bagbasis.jobs", "generate", *map(str, keys)),
        ],
        cwd="/",
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(CONFIGS.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == FAILED
    [line] = done.stderr.splitlines()
    assert line.startswith("bags: generate: ")
    assert "ulimit -u" in line
    assert not (tmp_path / "new.zarr").exists()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError(BROKEN)])
@pytest.mark.parametrize(
    ("opening", "where"),
    [(BagStore.open, (zarr_reading, "open_group")), (load_model, (loading, "params_from_dict"))],
)
def test_no_memory_says_nothing_of_a_file(regression, monkeypatch, opening, where, error):
    """Neither "not a bag store" nor "damaged model"."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(*where, fail)
    url = regression / ("bags.zarr" if opening is not load_model else "model.zarr")
    with pytest.raises(ExhaustedError) as caught:
        opening(url)
    assert str(caught.value).startswith(f"{url}: {EXHAUSTED}")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError(BROKEN)])
def test_no_memory_within_a_job_is_one_line(capsys, error):
    def fail():
        raise error

    assert guarded("fit", fail) == FAILED
    assert capsys.readouterr().err == f"bags: fit: {EXHAUSTED}\n"
