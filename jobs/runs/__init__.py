"""Jobs that run by themselves: submitted, watched and cancelled from a client that may go away."""

from .launching import LAUNCHERS, Launch
from .run import Run, attach, runs_in
from .state import RunState, Status
from .submitting import resume, submit

__all__ = [
    "LAUNCHERS",
    "Launch",
    "Run",
    "RunState",
    "Status",
    "attach",
    "resume",
    "runs_in",
    "submit",
]
