"""What a notebook shows of a run: its status and a bar, which move until the run is over."""

from __future__ import annotations

import threading
import time
from html import escape
from typing import Any, Protocol

from bagbasis.errors import RunError

from .state import RunState, Status

SECONDS = 2.0  # between two looks at the run's folder


class Shown(Protocol):
    """What can be shown: a run."""

    @property
    def id(self) -> str:
        """Its name."""

    def state(self) -> RunState:
        """How it stands now."""


def show(run: Shown) -> None:
    """Display the run in IPython; in a notebook a thread keeps it up to date until it is over."""
    from IPython import get_ipython
    from IPython.display import display

    state = run.state()
    is_live = hasattr(get_ipython(), "kernel") and not state.status.is_over
    handle = display(_bundle(run.id, state), raw=True, display_id=is_live or None)
    if is_live:
        threading.Thread(target=_follow, args=(run, handle), daemon=True).start()


def _follow(run: Shown, handle: Any) -> None:
    while True:
        time.sleep(SECONDS)
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
    """For a notebook, and for a terminal."""
    return {"text/html": as_html(run_id, state), "text/plain": as_text(run_id, state)}


def as_text(run_id: str, state: RunState) -> str:
    """One line: the run, how it stands, and how far it is."""
    parts = [f"run {run_id} is {state.status}"]
    if state.status is Status.RUNNING and state.total:
        share = 100 * state.done / state.total
        parts.append(f"{state.step}: {state.done:,} of {state.total:,} ({share:.0f} %)")
    if state.status is Status.FAILED:
        parts.append(str(state.error))
    return "; ".join(parts)


def as_html(run_id: str, state: RunState) -> str:
    """The same line, and a bar while the run is running."""
    bar = ""
    if state.status is Status.RUNNING and state.total:
        bar = (
            f'<br><progress value="{state.done}" max="{state.total}" style="width:30em"></progress>'
        )
    return f"<div>{escape(as_text(run_id, state))}{bar}</div>"
