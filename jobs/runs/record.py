"""The record of a run: JSON files in its folder, each with one writer, each replaced whole.

The client writes ``run.json``: what was submitted, and where it was started. The driver writes
``state.json``, the run's state, and ``beat.json``, a sign of life every few seconds. A client
writes ``cancel.json`` to ask for an end. So the record lives as long as the filesystem, whatever
happens to scheduler, driver and client. Each submission of a run, the first or a later one, is an
attempt with a name. ``run.json`` holds the last attempt's name, and only its driver writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bagbasis.core.errors import RunError
from bagbasis.core.moved import today_names
from bagbasis.data.storage.files import read_bytes, read_json
from bagbasis.data.storage.lock import Hold

BEAT_SECONDS = 5.0  # interval of the heartbeat
DEAD_SECONDS = 60.0  # time without a heartbeat: twelve were missed
RUN, STATE, BEAT, CANCEL, LOG = "run.json", "state.json", "beat.json", "cancel.json", "log.txt"
CHECKPOINTS = "checkpoints"
LOCK = "run.lock"  # of a local folder: held by a client that submits the run, again or first


class Status(StrEnum):
    """The status of a run."""

    SUBMITTED = "submitted"  # its driver has not begun
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DIED = "died"  # no sign of life for a minute

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self not in (Status.SUBMITTED, Status.RUNNING)


@dataclass(frozen=True)
class RunState:
    """The state of a run at one moment, as its folder tells.

    Attributes
    ----------
    status : Status
    done, total : int
        Units of work of the step it is in, ``step``; zeros before the first.
    submitted, begun, ended, seen : float or None
        Seconds since 1970; ``seen`` is the last sign of life.
    error, traceback : str or None
        Message (one line) and traceback of a failed run.
    report : dict or None
        Report of a finished run.
    """

    status: Status
    step: str
    done: int
    total: int
    submitted: float
    begun: float | None
    ended: float | None
    seen: float | None
    error: str | None
    traceback: str | None
    report: dict[str, Any] | None


def read_run_state(url: str) -> RunState:
    """Read the state of the run in this folder; RunError where there is none."""
    record = read_record(url)
    state = read_object(f"{url}/{STATE}") or {}
    beat = read_object(f"{url}/{BEAT}") or {}
    wish = read_object(f"{url}/{CANCEL}") or {}
    if state.get("attempt") != record["attempt"]:  # of the driver before it was resumed
        state = {}
    if beat.get("attempt") != record["attempt"]:
        beat = {}
    if wish.get("attempt") != record["attempt"]:
        wish = {}
    return RunState(
        _status(record, state, beat, bool(wish)),
        beat.get("step", ""),
        beat.get("done", 0),
        beat.get("total", 0),
        record["submitted"],
        state.get("begun"),
        state.get("ended"),
        beat.get("time"),
        state.get("error"),
        state.get("traceback"),
        state.get("report"),
    )


def read_record(url: str, hold: Hold | None = None) -> dict[str, Any]:
    """Return the submitted record of a run; RunError if the folder holds no run.

    Parameters
    ----------
    hold : Hold, optional
        Lock of the folder, if the record is going to be replaced.
    """
    read = read_bytes if hold is None else lambda url: hold.read(RUN)
    record = read_object(f"{url}/{RUN}", read)
    if record is None:
        raise RunError(f"{url}: no run there; `bags runs` lists those that there are")
    if isinstance(record.get("config"), dict):
        record["config"] = today_names(f"bags {record.get('job')}", record["config"])
    return record


def read_object(
    url: str, read: Callable[[str], bytes | None] = read_bytes
) -> dict[str, Any] | None:
    """Return a JSON object of a run's folder; None if there is none.

    Raises
    ------
    RunError
        Something else.
    """
    return read_json(url, dict, read=read, kind=RunError, damaged="not the file of a run")


def _status(
    record: dict[str, Any], state: dict[str, Any], beat: dict[str, Any], unwanted: bool
) -> Status:
    if "status" in state and Status(state["status"]).is_over:
        return Status(state["status"])
    seen = beat.get("time", state.get("begun"))
    if seen is None and unwanted:
        return Status.CANCELLED  # a driver that begins nevertheless stops at once
    if seen is None:
        # in a queue a driver may wait for days; one of this machine begins at once
        waits = record["launcher"] != "local"
        seen = record["submitted"]
        if waits or time.time() - seen <= DEAD_SECONDS:
            return Status.SUBMITTED
    return Status.RUNNING if time.time() - seen <= DEAD_SECONDS else Status.DIED
