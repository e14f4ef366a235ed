"""Progress in units of work done (bags, files), in this process and from workers."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core.annotations import Progress as Progress
from .lazy_dask import distributed

if TYPE_CHECKING:
    from distributed import Client, Worker

Report = Callable[[int], None]
"""Function that a task calls with the number of its units done so far."""

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_EVENTS = 1.0  # events of a worker: people watch, and the scheduler has other work


def silent(done: int, total: int) -> None:
    """Ignore the progress."""


def note(progress: Progress | None, text: str) -> None:
    """Show the state of the work next to the units, if the progress supports it."""
    _show(progress, "note", text)


def say(progress: Progress | None, text: str) -> None:
    """Show a line below the progress once, if the progress supports lines."""
    _show(progress, "say", text)


def _show(progress: Progress | None, how: str, text: str) -> None:
    """Call the progress's method of that name, if it has one; a plain function has none."""
    show = getattr(progress, how, None)
    if show is not None:
        show(text)


def part_of(progress: Progress, before: int, total: int) -> Progress:
    """Return the progress of one part of the work, which begins after ``before`` of ``total``."""

    def report(done: int, _: int) -> None:
        progress(before + done, total)

    return report


class ProgressTally:
    """Sum of the units that tasks report; a task that runs twice counts once.

    Reports may come from any thread. ``progress`` gets them one at a time, and its count never
    falls.
    """

    def __init__(self, sizes: Sequence[int], progress: Progress) -> None:
        self._lock = threading.Lock()
        self._sizes = list(sizes)
        self._done = [0] * len(self._sizes)
        self._total = sum(self._sizes)
        self._progress = progress
        self._tell()

    def update(self, task: int, done: int) -> None:
        """Count the units that a task has done so far."""
        with self._lock:
            before = self._done[task]
            self._done[task] = min(max(before, done), self._sizes[task])
            if self._done[task] > before:
                self._tell()

    def _tell(self) -> None:
        if self._progress is not silent:
            self._progress(sum(self._done), self._total)

    @property
    def can_say(self) -> bool:
        """Whether the progress shows lines, too; a plain function does not."""
        return hasattr(self._progress, "say")

    def say(self, text: str) -> None:
        """Show a line next to the count."""
        say(self._progress, text)

    def warn(self, text: str) -> None:
        """Show a line next to the count, or log it where the progress shows no lines."""
        if self.can_say:
            self.say(text)
        else:
            logger.warning("%s", text)

    def finish(self, task: int) -> None:
        """Count all units of a task."""
        self.update(task, self._sizes[task])


def worker_report(topic: str, task: int) -> Report:
    """Make a report that reaches the client as a Dask event, at most once per second.

    Reports are never more frequent than heartbeats, whose interval grows with the number of
    workers.
    """
    worker = distributed.get_worker()
    last = [-math.inf]

    def report(done: int) -> None:
        now = time.monotonic()
        if now - last[0] >= max(SECONDS_BETWEEN_EVENTS, _heartbeat_seconds(worker)):
            last[0] = now
            worker.log_event(topic, {"task": task, "done": int(done)})

    return report


def _heartbeat_seconds(worker: Worker) -> float:
    """Return the time between heartbeats; 0 if Distributed has no such callback."""
    heartbeat = getattr(worker, "periodic_callbacks", {}).get("heartbeat")
    return 0.0 if heartbeat is None else float(heartbeat.callback_time) / 1000


def log_finished(topic: str, task: int) -> None:
    """Tell the client that a task is done; its last report may have been skipped as too early."""
    distributed.get_worker().log_event(topic, {"task": task, "done": None})


def log_said(topic: str, task: int, text: str) -> None:
    """Send a line to the client's progress."""
    distributed.get_worker().log_event(topic, {"task": task, "done": 0, "said": text})


@contextmanager
def listening(client: Client, tally: ProgressTally) -> Iterator[str]:
    """Feed a tally from the workers' events during the block; yields the topic for reports."""
    topic = f"bagbasis-progress-{uuid.uuid4().hex}"

    def handle(event: tuple[float, dict[str, Any]]) -> None:
        task, done = event[1]["task"], event[1]["done"]
        if "said" in event[1]:
            tally.say(event[1]["said"])
        elif done is None:
            tally.finish(task)
        else:
            tally.update(task, done)

    client.subscribe_topic(topic, handle)
    try:
        yield topic
    finally:
        client.unsubscribe_topic(topic)
