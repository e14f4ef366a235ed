"""Jobs that run on their own: submitted, watched and cancelled by a client that may go away."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

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
