"""The driver's side of a run, in this process."""

from __future__ import annotations

from collections.abc import Callable

from bagbasis.jobs.runs import Run
from bagbasis.jobs.runs.driver import Driver
from bagbasis.jobs.runs.submission import local_log


def driven(run: Run, cancel: Callable[[], object] = lambda: None) -> Driver:
    """The driver of the last submission."""
    return Driver(run.url, run.record()["attempt"], local_log(run.url), cancel)
