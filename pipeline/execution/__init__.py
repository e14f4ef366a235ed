"""Running on a cluster or in this process; the only room that imports Dask."""

from .arrays import lazy_rows
from .connect import connect, current_client
from .kept import Keeper
from .lane import lane
from .map_reduce import SPLIT_EVERY, map_reduce, map_tasks
from .progress import Progress, Report

__all__ = [
    "SPLIT_EVERY",
    "Keeper",
    "Progress",
    "Report",
    "connect",
    "current_client",
    "lane",
    "lazy_rows",
    "map_reduce",
    "map_tasks",
]
