"""The box of a new store, given or measured while its points are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.bags.box import Box, box_or_quantile, range_of

_MAX_NAMED = 5  # coordinates in a warning


class Boxes(NamedTuple):
    """The given boxes of the bags and of the responses; see `box_or_quantile`."""

    points: Any
    responses: Any


class MeasuredBox:
    """A given box, or a box that is measured from the range and a sample of the points.

    The points come batch by batch. Every point gets a random number. The sample consists of the
    points with the smallest numbers.
    """

    def __init__(self, box: object, n_dims: int, name: str = "box") -> None:
        self.box_or_quantile = box_or_quantile(box, n_dims, name)
        self._size = Box.sample_size(n_dims)
        self._lo, self._hi = np.full(n_dims, np.inf), np.full(n_dims, -np.inf)
        self._rng = np.random.default_rng(0)
        self._numbers, self._sample = np.empty(0), np.empty((0, n_dims))
        self._most = np.inf  # largest random number in the sample, once the sample is full

    def add(self, points: NDArray[Any]) -> None:
        """Update the range and the sample with a batch."""
        if isinstance(self.box_or_quantile, Box) or not len(points):
            return
        lo, hi = range_of(points)
        self._lo, self._hi = np.minimum(self._lo, lo), np.maximum(self._hi, hi)
        drawn = self._rng.random(len(points))
        fewer = np.flatnonzero(drawn < self._most)  # sorting millions of numbers is slow
        numbers = np.append(self._numbers, drawn[fewer])
        sample = np.concatenate([self._sample, points[fewer]])
        if len(numbers) > self._size:
            smallest = np.argpartition(numbers, self._size)[: self._size]
            numbers, sample = numbers[smallest], sample[smallest]
            self._most = numbers.max()
        self._numbers, self._sample = numbers, sample

    @property
    def warnings(self) -> list[str]:
        """Return warnings about the points; none if the box was given."""
        return warnings_of_range(self._lo, self._hi) if len(self._numbers) else []

    @property
    def box(self) -> Box | None:
        """The box; None if there are no points."""
        if isinstance(self.box_or_quantile, Box) or not len(self._numbers):
            return None
        return Box.around(self._lo, self._hi, sample=self._sample, quantile=self.box_or_quantile)


def warnings_of_range(
    lo: NDArray[Any], hi: NDArray[Any], names: Sequence[str] | None = None
) -> list[str]:
    """Return warnings about coordinates that range from ``lo`` to ``hi``, shape (d,)."""
    constant = np.flatnonzero(np.equal(lo, hi)).tolist()
    if not constant:
        return []
    shown = [names[j] if names else j for j in constant[:_MAX_NAMED]]
    more = ", …" if len(constant) > _MAX_NAMED else ""
    return [
        f"{len(constant)} of {len(lo)} coordinates are constant: {str(shown)[1:-1]}{more}; leave "
        "them out, as they tell nothing and have functions of their own"
    ]
