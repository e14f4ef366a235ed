"""Checks of a cluster before work begins: workers, versions, access to the store."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from distributed import Client

from ...core.errors import BagbasisError, ClusterError
from ...data.storage.urls import normalize_url
from ...data.store.store import BagStore
from ..progress import Progress

COMPARED_PACKAGES = ("python", "dask", "distributed", "numpy", "numba", "zarr", "bagbasis")

_SECONDS_BETWEEN_LOOKS = 0.2
_NAMED = 3
TRIES, SECONDS_BETWEEN_TRIES = 5, 2.0  # for lost workers


def wait_for_workers(
    client: Client, *, least: int, wanted: int, timeout: float, progress: Progress, hint: str
) -> None:
    """Wait until ``least`` workers have joined, and call ``progress(joined, wanted)`` meanwhile.

    Raises
    ------
    ClusterError
        If there are fewer workers after ``timeout`` seconds, or the scheduler is gone. ``hint``
        says where to look for the cause.
    """
    give_up = time.monotonic() + timeout
    while True:
        if client.status != "running":
            raise ClusterError("the scheduler is gone")
        there = len(client.nthreads())
        progress(there, max(wanted, there))
        if there >= least:
            return
        if time.monotonic() > give_up:
            raise ClusterError(
                f"{there} of at least {least} workers came within {timeout:.0f} s; {hint}"
            )
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def check_versions(client: Client) -> None:
    """Check that client, scheduler and workers have equal versions of packages that matter.

    Raises
    ------
    ClusterError
        If versions differ. The message names the package, the versions and the processes.
    """
    versions: Any = client.get_versions(
        packages=[name for name in COMPARED_PACKAGES if name != "python"]
    )
    here = _packages(versions["client"])
    others = {"the scheduler": _packages(versions["scheduler"])}
    others |= {
        f"worker {address}": _packages(info) for address, info in versions["workers"].items()
    }
    for name in COMPARED_PACKAGES:
        differing: dict[str, list[str]] = {}
        for who, packages in others.items():
            if packages.get(name) != here.get(name):
                differing.setdefault(_text(packages.get(name)), []).append(who)
        if differing:
            there = ", ".join(f"{version} on {_some(who)}" for version, who in differing.items())
            raise ClusterError(
                f"versions of {name} differ: {_text(here.get(name))} here, {there}; install the "
                "same everywhere (constraints.txt)"
            )


def check_store(client: Client, url: str | os.PathLike[str]) -> None:
    """Check that every worker can open the store and sees the bags committed here.

    Raises
    ------
    StoreError
        If the store cannot be opened here.
    ClusterError
        If workers cannot open the store or see another store, or if the scheduler is gone. The
        message names the workers and the reason.
    """
    store = BagStore.open(url)
    here = (store.n_dims, store.n_bags, store.n_points)
    seen = _ask(client, normalize_url(url))
    for _ in range(TRIES):  # Dask starts another for a local worker that has died
        if not any(isinstance(answer, OSError) for answer in seen.values()):
            break
        time.sleep(SECONDS_BETWEEN_TRIES)
        seen = _ask(client, normalize_url(url))
    reasons: dict[str, list[str]] = {}
    for address, answer in seen.items():
        reason = _difference(answer, here)
        if reason is not None:
            reasons.setdefault(reason, []).append(f"worker {address}")
    for reason, workers in reasons.items():
        raise ClusterError(f"{_some(workers)} cannot use the store {store.url}: {reason}")


def _ask(client: Client, url: str) -> dict[str, Any]:
    """Return the store that each worker sees at the URL, or the error of a lost worker."""
    try:
        return dict(client.run(_look_at, url, on_error="return"))
    except OSError as error:
        raise ClusterError(f"the scheduler is gone ({error})") from error


def _look_at(url: str) -> tuple[int, int, int] | str:
    try:
        store = BagStore.open(url)
    except BagbasisError as error:
        return str(error)
    return store.n_dims, store.n_bags, store.n_points


def _difference(
    answer: tuple[int, int, int] | str | BaseException, here: tuple[int, int, int]
) -> str | None:
    if isinstance(answer, BaseException):
        return f"{type(answer).__name__}: {answer}"
    if isinstance(answer, str):
        return answer
    if answer[0] != here[0] or answer[1] < here[1] or answer[2] < here[2]:
        return (
            f"under that URL it sees {answer[1]} bags of {answer[2]} points, here are {here[1]} "
            f"of {here[2]}"
        )
    return None


def _packages(info: Mapping[str, Any] | None) -> Mapping[str, Any]:
    packages: Mapping[str, Any] = (info or {}).get("packages", {})
    return packages


def _text(version: object) -> str:
    if version is None:
        return "none"
    return ".".join(str(version).split(".")[:3])


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
