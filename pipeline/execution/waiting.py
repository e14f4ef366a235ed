"""Waiting for a cluster's results: what is said without workers, and what becomes of errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from ..errors import ClusterError
from .lazy_dask import distributed

if TYPE_CHECKING:
    from distributed import Client, Future

SECONDS_BETWEEN_LOOKS = 10.0
PATIENCE = 1800.0  # seconds without a worker: a queue may give none for a while


def _say_nothing(_: str) -> None:
    """Ignore what is said."""


def gathered(future: Future, say: Callable[[str], None] = _say_nothing) -> Any:
    """Return a future's result; ClusterError where workers died or the scheduler is gone.

    While there is no worker ``say`` is told so, and after half an hour that is an error, too.
    """
    try:
        return _waited(future, say)
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


def _waited(future: Future, say: Callable[[str], None]) -> Any:
    last = time.monotonic()  # that there was a worker
    while True:
        try:
            return future.result(timeout=SECONDS_BETWEEN_LOOKS)
        except TimeoutError:
            if future.done():  # it came meanwhile, or the error is the task's own
                return future.result(timeout=SECONDS_BETWEEN_LOOKS)
        if _has_workers(future.client):
            last = time.monotonic()
            continue
        since = time.monotonic() - last
        if since > PATIENCE:
            raise ClusterError(
                f"the cluster has had no workers for {since / 60:.0f} minutes; start it again when "
                "there are some: with checkpoints it does only what is missing"
            )
        at = time.strftime("%H:%M", time.localtime(time.time() - since))
        say(f"no workers since {at}; waiting for others, {PATIENCE / 60:.0f} minutes at most")


def _has_workers(client: Client) -> bool:
    """Whether there is a worker, as far as the scheduler says."""
    try:
        return bool(client.nthreads())
    except OSError:  # it is gone: the result says so
        return True
