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

from ...core.arrays import Floats, Integers
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
        columns = np.array(rows.T, np.float64, order="C")  # reordered, and written over by the gaps
        with np.errstate(over="ignore", invalid="ignore"):  # refused in `__call__`
            centre = _medians(columns, np.zeros(len(columns), np.intp))
            np.abs(np.subtract(rows.T, centre[:, None], out=columns), out=columns)
            n_at_centre = len(rows) - np.count_nonzero(columns, axis=1)
            unit = np.where(n_at_centre < len(rows), _medians(columns, n_at_centre), 1.0)
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


def _medians(columns: Floats, n_smallest: Integers) -> Floats:
    """Return the median of each row of ``columns``, without its smallest values.

    One call for all of them takes a fifth of the time of `numpy.median` for each of 16. The values
    are reordered in place.

    Parameters
    ----------
    columns : shape (d, n)
    n_smallest : shape (d,)
        Number of values to leave out; if all, the result is the largest value.
    """
    last = columns.shape[1] - 1
    low, high = (np.minimum((n_smallest + last + up) // 2, last) for up in (0, 1))
    columns.partition(np.unique([low, high]), axis=1)
    below, above = (np.take_along_axis(columns, at[:, None], axis=1)[:, 0] for at in (low, high))
    medians: Floats = np.where(low == high, below, (below + above) / 2)
    return medians


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
