"""The driver's side of a run, in this process."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.runs import Run
from pipeline.runs.driving import Driving
from pipeline.runs.submitting import local_log


def driven(run: Run, cancel: Callable[[], object] = lambda: None) -> Driving:
    """The driver of the last submission."""
    return Driving(run.url, run.record()["attempt"], local_log(run.url), cancel)
