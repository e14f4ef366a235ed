"""`BagsInView`: bags in memory, read as pages read those of a store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bagbasis.core.arrays import Integers
from bagbasis.data.bags.bags import Bags, offsets_of
from bagbasis.data.bags.box import Box
from bagbasis.data.labelled.labelled import LabelledBags


@dataclass(frozen=True)
class BagsInView:
    """Bags in memory as pages read those of a store; their ids are their positions."""

    bags: Bags
    box: Box
    url: None = None

    @classmethod
    def of(cls, bags: LabelledBags) -> BagsInView:
        """Return the view of labelled bags, with coordinates in the order of the fit."""
        assert isinstance(bags.data, Bags)
        return cls(bags.ordered(bags.data), bags.box)

    @property
    def n_points(self) -> int:
        """Points of all bags."""
        return self.bags.n_points

    @property
    def coordinate_names(self) -> list[str] | None:
        """Names of the coordinates; None without any."""
        return self.bags.coordinate_names

    def present(self) -> Integers:
        """Return the positions of the bags."""
        return np.arange(len(self.bags))

    def ids(self, start: int, stop: int) -> Integers:
        """Return the positions of some bags."""
        return np.arange(start, stop)

    def offsets(self, start: int = 0, stop: int | None = None) -> Integers:
        """Return where the points of bags begin and end."""
        return offsets_of(self.bags.sizes[start:stop])

    def read(self, start: int, stop: int) -> Bags:
        """Return some bags."""
        return self.bags[start:stop]
