"""The driver's side of a run, in this process."""

from __future__ import annotations

from collections.abc import Callable

from bagbasis.jobs.runs import Run
from bagbasis.jobs.runs.driving import Driving
from bagbasis.jobs.runs.submitting import local_log


def driven(run: Run, cancel: Callable[[], object] = lambda: None) -> Driving:
    """The driver of the last submission."""
    return Driving(run.url, run.record()["attempt"], local_log(run.url), cancel)
