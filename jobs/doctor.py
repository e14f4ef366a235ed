"""What ``bags doctor`` tells of an installation: for reports of issues, and for a new machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bagbasis.core.credentials import without_credentials
from bagbasis.core.errors import BagbasisError, one_line
from bagbasis.core.versions import DISTRIBUTED, version

_PACKAGES = (
    *DISTRIBUTED,
    *("pandas", "pyarrow", "duckdb", "matplotlib", "click", "rich", "icechunk", "jax"),
)
_VARIABLES = (
    *("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    *("MKL_NUM_THREADS", "BAGBASIS_RUNS", "DASK_CONFIG"),
)
NOT_INSTALLED = "not installed"


def examine(stores: tuple[str, ...] = (), cluster: str | None = None) -> dict[str, Any]:
    """Return versions, hardware, kernels, and whether stores and a cluster can be reached.

    Parameters
    ----------
    stores : tuple of str
        URLs of stores, models or registries.
    cluster : str, optional
        As a job's ``--cluster``.

    Returns
    -------
    dict
        By section; of what cannot be reached the reason stands under "error".
    """
    state: dict[str, Any] = {
        "versions": {"Python": platform.python_version(), **_versions()},
        "machine": _machine(),
        "linear algebra": _attempt(_blas),
        "kernels": _attempt(_kernels),
        "environment": {
            name: without_credentials(os.environ[name]) for name in _VARIABLES if name in os.environ
        },
    }
    if stores:
        state["stores"] = {
            without_credentials(url): _attempt(partial(_store, url)) for url in stores
        }
    if cluster is not None:
        state["cluster"] = {without_credentials(cluster): _attempt(partial(_cluster, cluster))}
    return state


def problems(report: dict[str, Any]) -> list[str]:
    """Return a line for each store or cluster that cannot be reached, and each missing part."""
    lines = []
    for section in ("linear algebra", "kernels"):
        if "error" in report[section]:
            lines.append(f"{section}: {report[section]['error']}")
    for section in ("stores", "cluster"):
        for name, part in report.get(section, {}).items():
            if "error" in part:
                lines.append(f"{name}: {part['error'].removeprefix(f'{name}: ')}")
    return lines


def _attempt(look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return look()
    except BagbasisError as error:
        return {"error": str(error)}
    except Exception as error:  # whatever is wrong is what this command is asked for
        return {"error": one_line(without_credentials(f"{type(error).__name__}: {error}"))}


def _versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except Exception:  # PackageNotFoundError, or broken metadata
            versions[name] = NOT_INSTALLED
    return versions


def _machine() -> dict[str, Any]:
    from bagbasis.core.systems import usable_cores
    from bagbasis.execution.memory import available_memory, memory_limit
    from bagbasis.execution.passes import GIB

    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": usable_cores(),
        "memory limit": f"{memory_limit() / GIB:.1f} GiB",
        "memory available": f"{available_memory() / GIB:.1f} GiB",
        "executable": sys.executable,
    }


def _blas() -> dict[str, Any]:
    import numpy as np
    import scipy.linalg
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ scipy.linalg.inv(np.eye(2))  # loads the libraries
    return {
        library["prefix"]: f"{library['internal_api']} {library.get('version') or ''}, "
        f"{library.get('architecture') or 'any processor'}, {library['num_threads']} threads"
        for library in threadpool_info()
    }


def _kernels() -> dict[str, Any]:
    from numba.core import config

    import bagbasis
    import bagbasis.core.compiling

    folder = Path(vars(config)["CACHE_DIR"] or Path(bagbasis.__file__).parent)
    compiled = sum(1 for _ in folder.rglob("*.nbc"))
    text = f"{compiled:,} compiled" if compiled else "none compiled; bags warm-up compiles them"
    return {"folder": str(folder), "kernels": text}


def _store(url: str) -> dict[str, Any]:
    from bagbasis import BagStore

    store = BagStore.open(url)
    return {"bags": store.n_bags, "points": store.n_points, "coordinates": store.n_dims}


def _cluster(target: str) -> dict[str, Any]:
    from bagbasis import connect

    with connect(target) as client:
        workers = client.scheduler_info()["workers"]
        return {
            "scheduler": str(client.scheduler.address),
            "workers": len(workers),
            "threads": sum(worker["nthreads"] for worker in workers.values()),
        }
