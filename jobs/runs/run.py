"""`Run`: a handle on a run that holds only the URL of its folder; and how a run is shown."""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bagbasis.core import UrlOrPath, checked, keep_checked
from bagbasis.core.errors import RunError, StoreError
from bagbasis.data.storage.files import PRIVATE, names_in, reading, write_json
from bagbasis.data.storage.urls import local_path, normalize_url
from bagbasis.execution.notebook import bar_html, in_notebook

from .launchers import WITHDRAWALS
from .record import CANCEL, LOG, RUN, RunState, Status, read_record, read_run_state
from .roots import ROOT_VARIABLE, roots_of

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5  # interval at which a run is looked at while its result is waited for
SHOWN_SECONDS = 2.0  # interval at which a notebook updates a run


class RunProgress(tuple[int, int]):
    """Units of work done, and in all; a notebook shows it as it moves."""

    def __new__(cls, run: Run, done: int, total: int) -> RunProgress:
        """Make the tuple (done, total), which remembers its run."""
        self = super().__new__(cls, (done, total))
        self._run = run
        return self

    _run: Run

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a call of the class."""
        return RunProgress, (self._run, *self)

    def _ipython_display_(self) -> None:
        _show(self._run)


@dataclass(frozen=True)
class Run:
    """A submitted job. Everything is read from its folder, whenever it is asked for.

    In a notebook it is shown with a bar that moves until the run is over.

    Parameters
    ----------
    url : str

    Raises
    ------
    ParameterError
        The URL is not text.
    """

    url: str

    def __post_init__(self) -> None:
        keep_checked(self)

    @property
    def id(self) -> str:
        """Name of the run: the last part of its URL."""
        return self.url.rpartition("/")[2]

    def record(self) -> dict[str, Any]:
        """Read what was submitted: job, config, versions, launcher, time."""
        return read_record(self.url)

    def state(self) -> RunState:
        """Read how it stands."""
        return read_run_state(self.url)

    def status(self) -> Status:
        """Read whether the run waits, runs or has ended, and how."""
        return self.state().status

    def progress(self) -> RunProgress:
        """Read units of work done, and in all, of its present step; live in a notebook."""
        state = self.state()
        return RunProgress(self, state.done, state.total)

    def logs(self) -> str:
        """Read the driver's output, or its last part; empty before it began."""
        try:
            with reading(f"{self.url}/{LOG}") as path:
                return path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    @checked
    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the job's report.

        Raises
        ------
        ParameterError
            ``timeout`` is not a number.
        RunError
            The run failed, was cancelled, or died; or it is not over within ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (state := self.state()).status.is_over:
            if deadline is not None and time.monotonic() > deadline:
                raise RunError(f"run {self.id} is {state.status} still after {timeout:g} s")
            time.sleep(_POLL_SECONDS)
        if state.status is Status.DONE:
            return state.report or {}
        raise RunError(f"run {self.id} {explain_failure(state)}")

    def cancel(self) -> None:
        """Ask the driver to stop; it does so within seconds, and a dead one is not waited for.

        A driver that waits in a queue is taken out of it.

        Raises
        ------
        RunError
            The run is over.
        """
        status = self.status()
        if status.is_over:
            raise RunError(f"run {self.id} is {status}; there is nothing to cancel")
        record = self.record()
        write_json(f"{self.url}/{CANCEL}", {"attempt": record["attempt"]}, mode=PRIVATE)
        if record["launcher"] in WITHDRAWALS:
            WITHDRAWALS[record["launcher"]](self.id)

    def _ipython_display_(self) -> None:
        _show(self)


@checked
def attach(run: str, *, root: UrlOrPath | None = None) -> Run:
    """Return the run of that id, from any process that sees its filesystem.

    Parameters
    ----------
    run : str
        Its id, or the URL of its folder.
    root : URL or path, optional
        Where the folder lies; default the environment's BAGBASIS_RUNS, else the roots that this
        account has submitted to.

    Raises
    ------
    ParameterError
        An argument of another type.
    RunError
        No such run, or no root for an id.
    """
    urls = [run] if "/" in run else [f"{place}/{run}" for place in roots_of(root)]
    if len(urls) > 1:
        urls = [candidate.url for candidate in runs_in(root) if candidate.id == run]
    if not urls:
        raise RunError(
            f"run {run}: give the root that it was submitted to, with --root or in {ROOT_VARIABLE}"
        )
    attached = Run(normalize_url(urls[0]))
    attached.record()
    return attached


@checked
def runs_in(root: UrlOrPath | None = None) -> list[Run]:
    """Return the runs of a root, the oldest first; runs of other accounts cannot be seen.

    Without a root, given or in the environment, it returns the runs of all roots that this account
    has submitted to.

    Raises
    ------
    ParameterError
        A root that is neither text nor a path.
    RunError
        No root at all.
    StoreError
        It cannot be listed.
    """
    urls = [normalize_url(place) for place in roots_of(root)]
    if not urls:
        raise RunError(f"give the root of the runs, with --root or in {ROOT_VARIABLE}")
    folders = []
    for url in urls:
        try:
            folders += [(name, url) for name in names_in(url) if not name.startswith(".")]
        except StoreError as error:
            if len(urls) == 1:
                raise
            logger.warning("its runs are not listed: %s", error)
    runs = [Run(f"{url}/{name}") for name, url in sorted(folders)]  # names begin with the time
    return [run for run in runs if _is_ours(run.url)]


def _is_ours(url: str) -> bool:
    """Whether a folder holds a run that is not another account's."""
    folder = local_path(url)
    if folder and not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
        return False
    return RUN in names_in(url)


def explain_failure(state: RunState) -> str:
    """Return why a run that has ended has no result."""
    if state.status is Status.FAILED:
        return f"failed: {state.error}"
    if state.status is Status.DIED:
        return "died: no sign of life for a minute; resume it, or see its log"
    return f"is {state.status}"


def _show(run: Run) -> None:
    """Display the run in IPython; in a notebook a thread updates it until the run has ended."""
    from IPython.display import display

    state = run.state()
    is_live = in_notebook() and not state.status.is_over
    handle = display(_bundle(run.id, state), raw=True, display_id=is_live or None)
    if is_live:
        threading.Thread(target=_follow, args=(run, handle), daemon=True).start()


def _follow(run: Run, handle: DisplayHandle) -> None:
    while True:
        time.sleep(SHOWN_SECONDS)
        try:
            state = run.state()
        except OSError:  # a filesystem that is away for a while
            continue
        except RunError:  # its folder was deleted
            return
        handle.update(_bundle(run.id, state), raw=True)
        if state.status.is_over:
            return


def _bundle(run_id: str, state: RunState) -> dict[str, str]:
    """Return what a notebook shows, and what a terminal shows."""
    return {"text/html": as_html(run_id, state), "text/plain": _as_text(run_id, state)}


def _as_text(run_id: str, state: RunState) -> str:
    """Return one line: the run, its status, and its progress."""
    parts = [f"run {run_id} is {state.status}"]
    if state.status is Status.RUNNING and state.total:
        share = 100 * state.done / state.total
        parts.append(f"{state.step}: {state.done:,} of {state.total:,} ({share:.0f} %)")
    if state.status is Status.FAILED:
        parts.append(str(state.error))
    return "; ".join(parts)


def as_html(run_id: str, state: RunState) -> str:
    """Return the same line, and a bar while the run is running."""
    total = state.total if state.status is Status.RUNNING else 0
    return bar_html(_as_text(run_id, state), state.done, total)
