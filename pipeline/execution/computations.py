"""Actions and messages at the end of a Dask computation, in this process or on a cluster."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Hashable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .lazy_dask import dask, distributed

if TYPE_CHECKING:
    from distributed import Client

Message = dict[str, Any]
"""Message of a task to the client: texts, numbers, and lists of them."""

_lock = Lock()
_pending: dict[Hashable, Callable[[], None]] = {}
_n_running = 0


def at_end_of_computation(key: Hashable, action: Callable[[], None]) -> None:
    """Call ``action`` when the computation of Dask that runs in this process ends.

    For each key, only the latest action is called. If no computation runs in this process, the
    action is called at once.

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
    """Register callbacks for the begin and end of Dask computations in this process."""
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


_topics: WeakKeyDictionary[Client, set[str]] = WeakKeyDictionary()


def sent_to_client(topic: str, message: Message) -> bool:
    """Send a message to the client if this task is on a cluster's worker; return if it was sent."""
    if "distributed" not in sys.modules:
        return False
    try:
        worker = distributed.get_worker()
    except ValueError:
        return False
    worker.log_event(topic, {"message": message})  # Distributed adds the worker
    return True


def hear_workers(topic: str, take: Callable[[Message], None], at_end: Callable[[], None]) -> None:
    """Receive the messages of tasks on the cluster that is open in this process, if any.

    Parameters
    ----------
    topic : str
        Topic of the messages, see `sent_to_client`.
    take : callable
        Function that is called with each message.
    at_end : callable
        Function that is called after messages when all computations of the client have ended.
    """
    if "distributed" not in sys.modules:
        return  # whoever opens a client imports it
    try:
        client = distributed.default_client()
    except ValueError:
        return
    with _lock:
        topics = _topics.setdefault(client, set())
        if topic in topics:
            return
        topics.add(topic)
    ending: list[asyncio.Task[None]] = []

    async def handle(event: tuple[float, dict[str, Message]]) -> None:
        take(event[1]["message"])
        if not ending or ending[0].done():
            ending[:] = [asyncio.create_task(_call_at_end(client, at_end))]

    client.subscribe_topic(topic, handle)


async def _call_at_end(client: Client, at_end: Callable[[], None]) -> None:
    """Call ``at_end`` when all computations have ended: messages precede a task's result."""
    while waiting := [
        asyncio.create_task(state.wait())
        for state in list(client.futures.values())
        if state.status == "pending"
    ]:
        await asyncio.wait(waiting)
    at_end()
