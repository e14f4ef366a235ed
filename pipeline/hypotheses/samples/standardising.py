"""Standardised coordinates of points, so that no test depends on the units of the data.

Each coordinate is divided by its median distance from its median, over the points that are not at
the median. A kernel, or a distance, then depends on all coordinates, whatever their units. The
median and the divisor do not depend on which sample a point belongs to, so that permutations stay
exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.arrays import Floats
from ...core.errors import DataError
from .row_sources import ArrayRows
from .samples import Sample


@dataclass(frozen=True, eq=False)
class CoordinateUnits:
    """The centre and the unit of each coordinate, shapes (d,)."""

    centre: Floats
    unit: Floats

    @classmethod
    def of(cls, rows: Floats) -> CoordinateUnits:
        """Return the units of the coordinates of rows, shape (n, d).

        A coordinate that is the same in all rows keeps its unit.
        """
        centre, unit = np.empty((2, rows.shape[1]))
        for j, column in enumerate(rows.T):
            with np.errstate(over="ignore", invalid="ignore"):  # refused in `__call__`
                centre[j] = np.median(column)
                gaps = np.abs(column - centre[j])
                unit[j] = np.median(gaps[gaps > 0]) if gaps.any() else 1.0
        return cls(centre, unit)

    def __call__(self, rows: Floats) -> Floats:
        """Return rows in these units.

        Raises
        ------
        DataError
            If the values overflow.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # refused
            scaled: Floats = (rows - self.centre) / self.unit
        finite = np.isfinite(scaled).all(axis=0)
        if not finite.all():
            raise DataError(
                f"coordinate {int(np.argmin(finite))} of the points has values too far apart to be "
                "standardised; leave out the outliers, or give standardize=False"
            )
        return scaled

    def restored(self, rows: Floats) -> Floats:
        """Return rows, shape (n, d), in the units of the data."""
        return rows * self.unit + self.centre


def in_own_units(samples: Sequence[Sample]) -> tuple[list[Sample], CoordinateUnits | None]:
    """Return samples of points with standardised coordinates, and the units of the coordinates.

    Bags, whose rows are embeddings, are not rescaled. Points with one coordinate are not rescaled
    either, because no test depends on the unit of a single coordinate.
    """
    data = [sample.data for sample in samples]
    if not all(isinstance(member, ArrayRows) and member.n_dims > 1 for member in data):
        return list(samples), None
    units = CoordinateUnits.of(np.concatenate([sample.rows for sample in samples]))
    return [replace(s, data=ArrayRows(units(s.rows))) for s in samples], units
