"""Running on a cluster or in this process: lanes, passes, merges, progress."""

from .arrays import lazy_rows
from .kept import Keeper
from .lane import lane
from .map_reduce import SPLIT_EVERY, current_client, map_reduce, map_tasks
from .progress import Progress, Report

__all__ = [
    "SPLIT_EVERY",
    "Keeper",
    "Progress",
    "Report",
    "current_client",
    "lane",
    "lazy_rows",
    "map_reduce",
    "map_tasks",
]
