"""Where a job runs: in this process, or on a cluster that is open while it does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from .interrupts import no_interrupts


@contextmanager
def running_on(target: str) -> Iterator[None]:
    """Run the block on "none" (this process), "local", a scheduler's address, or a profile."""
    if target == "none":
        yield
        return
    from pipeline.execution import connect
    from pipeline.execution.connect import load_profile

    remote = "://" in target or (target != "local" and load_profile(target).cluster == "tcp")
    with nullcontext() if remote else no_interrupts():
        client = connect(target)
    with client:
        try:
            yield
        except KeyboardInterrupt:
            logging.disable()  # of what the scheduler says about work that is cut off
            raise
