"""Ragged sets of points: in memory, in Zarr, and how ranges of them are planned and read."""

from .bags import Bags, as_bags, concatenate
from .box import Box
from .merging import merge_stores
from .responses import Responses, as_responses
from .store import BagStore

__all__ = [
    "BagStore",
    "Bags",
    "Box",
    "Responses",
    "as_bags",
    "as_responses",
    "concatenate",
    "merge_stores",
]
