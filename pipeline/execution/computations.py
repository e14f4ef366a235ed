"""What is said once when a computation of Dask in this process ends."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from threading import Lock
from typing import Any

from .lazy_dask import dask

_lock = Lock()
_pending: dict[Hashable, Callable[[], None]] = {}
_n_running = 0


def at_end_of_computation(key: Hashable, action: Callable[[], None]) -> None:
    """Call ``action`` when the computation of Dask that runs in this process ends.

    For one key, only the latest action is called. Where no computation runs in this process, as on
    a worker of a cluster, the action is called at once.

    Parameters
    ----------
    key : hashable
    action : callable
    """
    with _lock:
        is_running = _n_running > 0
        if is_running:
            _pending[key] = action
    if not is_running:
        action()


@cache
def watch_computations() -> None:
    """Notice from now on when a computation of Dask in this process begins and ends."""
    dask.callbacks.Callback(start=_begin, finish=_end).register()


def _begin(graph: Any) -> None:  # noqa: ANN401 - Dask's
    global _n_running
    with _lock:
        _n_running += 1


def _end(graph: Any, state: Any, failed: bool) -> None:  # noqa: ANN401 - Dask's
    global _n_running
    with _lock:
        _n_running -= 1
        actions = [] if _n_running else list(_pending.values())
        if not _n_running:
            _pending.clear()
    for action in actions:
        action()
