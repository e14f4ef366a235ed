"""Calibration of predictions in groups of bags, for plots and reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_GROUPS, MIN_GROUP = 10, 10  # largest number of groups, smallest number of bags in a group


@dataclass(frozen=True)
class CalibrationGroup:
    """A group of bags with similar predictions or similar sizes.

    Attributes
    ----------
    n : int
        Number of bags.
    predicted, right : float
        Mean of the value by which bags are ordered, and fraction of bags with a right prediction.
    interval : (float, float)
        Wilson interval of one standard error for ``right``, within [0, 1].
    """

    n: int
    predicted: float
    right: float
    interval: tuple[float, float]

    @property
    def gap(self) -> float:
        """Difference between the fraction of right predictions and the mean prediction."""
        return self.right - self.predicted

    @property
    def error(self) -> float:
        """Half the length of the interval."""
        return (self.interval[1] - self.interval[0]) / 2


def groups_of(order_by: NDArray[np.float64], right: NDArray[np.bool_]) -> list[CalibrationGroup]:
    """Return groups of about equal numbers of bags, which are ordered by ``order_by``."""
    order = np.argsort(order_by, kind="stable")
    n_groups = max(1, min(MAX_GROUPS, len(order) // MIN_GROUP))
    groups = []
    for rows in np.array_split(order, n_groups):
        share = float(right[rows].mean())
        bounds = wilson(share, len(rows))
        groups.append(CalibrationGroup(len(rows), float(order_by[rows].mean()), share, bounds))
    return groups


def wilson(share: float, n: int, z: float = 1.0) -> tuple[float, float]:
    """Return the Wilson interval of ``z`` standard errors for a fraction of n, within [0, 1]."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)
