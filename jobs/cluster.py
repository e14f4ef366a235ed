"""Where a job runs: in this process, or on a cluster that is open during the job."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from .interrupts import no_interrupts
from .terminal import Terminal


@contextmanager
def running_on(target: str, store: str | None = None) -> Iterator[None]:
    """Run the block on "none" (this process), "local", a scheduler's address, or a profile.

    Every worker must be able to open the store, if one is given.
    """
    if target == "none":
        yield
        return
    from bagbasis import connect
    from bagbasis.execution.clusters.connections import profile_of

    is_local = profile_of(target).cluster == "local"
    with (
        no_interrupts() if is_local else nullcontext(),
        Terminal().progress("cluster", "workers") as progress,
    ):
        client = connect(target, store=store, progress=progress)
    with client:
        try:
            yield
        except KeyboardInterrupt:
            logging.disable()  # silences what the scheduler says about work that is cut off
            raise
