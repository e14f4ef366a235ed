"""Running on a cluster or in this process; the only room that imports Dask."""

from .arrays import lazy_rows
from .connect import connect, current_client
from .lane import lane
from .map_reduce import map_reduce, map_tasks
from .progress import Progress, Report

__all__ = [
    "Progress",
    "Report",
    "connect",
    "current_client",
    "lane",
    "lazy_rows",
    "map_reduce",
    "map_tasks",
]
