"""Ragged sample sets: in memory, in Zarr, and how ranges of them are planned and read."""

from .bags import Bags, as_bags, concatenate
from .box import Box
from .store import BagStore

__all__ = ["BagStore", "Bags", "Box", "as_bags", "concatenate"]
