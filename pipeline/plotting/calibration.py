"""How often predictions are right, in groups of bags: what calibration plots and reports show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_GROUPS, MIN_GROUP = 10, 10  # of a calibration, and bags in each


@dataclass(frozen=True)
class CalibrationGroup:
    """Bags that are alike in what was predicted, or in size.

    Attributes
    ----------
    n : int
    predicted, right : float
        Mean of what the group is ordered by, and the fraction of bags that are right.
    interval : (float, float)
        Wilson's interval of one standard error of ``right``, within [0, 1].
    """

    n: int
    predicted: float
    right: float
    interval: tuple[float, float]

    @property
    def gap(self) -> float:
        """By how much the fraction that is right exceeds the mean prediction."""
        return self.right - self.predicted

    @property
    def error(self) -> float:
        """Half the length of the interval."""
        return (self.interval[1] - self.interval[0]) / 2


def groups_of(order_by: NDArray[np.float64], right: NDArray[np.bool_]) -> list[CalibrationGroup]:
    """Return groups of equally many bags, in the order of a number of each bag."""
    order = np.argsort(order_by, kind="stable")
    n_groups = max(1, min(MAX_GROUPS, len(order) // MIN_GROUP))
    groups = []
    for rows in np.array_split(order, n_groups):
        share = float(right[rows].mean())
        bounds = wilson(share, len(rows))
        groups.append(CalibrationGroup(len(rows), float(order_by[rows].mean()), share, bounds))
    return groups


def wilson(share: float, n: int, z: float = 1.0) -> tuple[float, float]:
    """Return Wilson's interval of a fraction of n: ``z`` standard errors wide, within [0, 1]."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)
