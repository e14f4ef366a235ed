"""Work on a cluster or in this process: lanes, passes over bags, merging, progress.

Names are imported when they are first used. Modules that only declare what a pass costs (`costs`)
should not have to wait for Dask.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .keepers import Keeper
    from .lanes import lane
    from .progress import Progress, Report
    from .tasks import current_client, map_reduce, map_tasks

__all__ = [
    "Keeper",
    "Progress",
    "Report",
    "current_client",
    "lane",
    "map_reduce",
    "map_tasks",
]

_MODULES = {
    "Keeper": "keepers",
    "Progress": "progress",
    "Report": "progress",
    "current_client": "tasks",
    "lane": "lanes",
    "map_reduce": "tasks",
    "map_tasks": "tasks",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
