"""Waiting for results of a cluster, with messages about missing workers and errors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from ..core.errors import ClusterError
from .lazy_dask import distributed

if TYPE_CHECKING:
    from distributed import Client, Future

SECONDS_BETWEEN_LOOKS = 10.0
WAIT_SECONDS = 1800.0  # time without a worker: a queue may give none for a while

logger = logging.getLogger(__name__)

Say = Callable[[str], None]
_R = TypeVar("_R")


def gathered(future: Future[_R], say: Say = logger.warning) -> _R:
    """Return a future's result; ClusterError if workers died or the scheduler is gone.

    If there is no worker, ``say`` gets a message. After half an hour without workers, ClusterError
    is raised, too.
    """
    watch = _Watch(future.client, say)
    while not future.done():
        try:
            return _result_of(future, SECONDS_BETWEEN_LOOKS)
        except TimeoutError:
            if future.done():  # the result came meanwhile, or the error is the task's own
                break
        watch.look()
    return _result_of(future)


def each_gathered(futures: Sequence[Future[_R]], say: Say = logger.warning) -> Iterator[Future[_R]]:
    """Yield futures when they finish; then `gathered` does not wait for their results."""
    if not futures:
        return
    watch = _Watch(futures[0].client, say)
    done: SimpleQueue[Future[_R]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    for _ in futures:
        yield _next_of(done, watch)


def _next_of(done: SimpleQueue[Future[_R]], watch: _Watch) -> Future[_R]:
    while True:
        try:
            return done.get(timeout=SECONDS_BETWEEN_LOOKS)
        except Empty:
            watch.look()


def _result_of(future: Future[_R], timeout: float | None = None) -> _R:
    try:
        return future.result(timeout=timeout)
    except distributed.KilledWorker as error:
        raise ClusterError(
            f"workers died running one task ({error}); most often their memory is too small"
        ) from error
    except CancelledError as error:
        reason = getattr(error, "reason", None) or error
        raise ClusterError(
            f"the cluster lost the computation ({reason}); start it again when there is a cluster: "
            "with checkpoints it does only what is missing"
        ) from error


class _Watch:
    """Reports once that there are no workers, and raises if this lasts too long."""

    def __init__(self, client: Client, say: Say) -> None:
        self._client, self._say = client, say
        self._last = time.monotonic()  # time at which there was a worker
        self._has_said = False

    def look(self) -> None:
        """Ask the scheduler; ClusterError when there have been no workers for too long."""
        if self._has_workers():
            self._last, self._has_said = time.monotonic(), False
            return
        since = time.monotonic() - self._last
        if since > WAIT_SECONDS:
            raise ClusterError(
                f"the cluster has had no workers for {since / 60:.0f} minutes; start it again when "
                "there are some: with checkpoints it does only what is missing"
            )
        if not self._has_said:
            self._has_said = True
            at = time.strftime("%H:%M", time.localtime(time.time() - since))
            limit = f"{WAIT_SECONDS / 60:.0f} minutes"
            self._say(f"no workers since {at}; waiting for others, {limit} at most")

    def _has_workers(self) -> bool:
        """Whether there is a worker, as far as the scheduler says."""
        try:
            return bool(self._client.nthreads())
        except OSError:  # it is gone: the result says so
            return True
