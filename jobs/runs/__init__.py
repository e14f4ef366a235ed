"""Jobs that run on their own: submitted, watched and cancelled by a client that may go away."""

from .launchers import LAUNCHERS, Launch
from .record import RunState, Status
from .run import Run, attach, runs_in
from .submission import resume, submit

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
