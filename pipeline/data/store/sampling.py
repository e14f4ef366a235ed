"""Samples of bags and rows for data-driven choices: their sizes and positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from .plan import Range, sample_ranges

# Rows for a median pairwise distance: half a million pairs, exact to about 0.1 %.
MEDIAN_ROWS = 1024


class RunSample(NamedTuple):
    """Evenly spread runs of consecutive bags, which touch fewer chunks than single bags."""

    n_runs: int
    run_length: int

    @classmethod
    def of_about(cls, n_bags: int) -> RunSample:
        """About ``n_bags``, in up to 32 runs of at least eight."""
        n_runs = min(32, max(1, n_bags // 8))
        return cls(n_runs, n_bags // n_runs)

    def ranges(self, start: int, stop: int) -> list[Range]:
        """Return the runs among the bags ``start:stop``; all bags if there are no more."""
        return [(start + a, start + b) for a, b in sample_ranges(stop - start, *self)]


CHOICE_SAMPLE = RunSample(32, 128)  # 4,096 bags: index sets, bandwidths, a drift
DISTANCE_SAMPLE = RunSample(32, 32)  # 1,024 bags, as `MEDIAN_ROWS`: distances between bags
JUDGED_SAMPLE = RunSample(128, 40)  # 5,120 bags, whose held-out part judges densities


def spread_rows(rows: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """Up to n_rows rows, evenly spread."""
    if len(rows) <= n_rows:
        return rows
    return rows[np.linspace(0, len(rows) - 1, n_rows).astype(np.int64)]


def median_l1_distance(sample: NDArray[Any]) -> float:
    """Median L1 distance of pairs of rows, shape (n, s); 1 when most rows are the same."""
    distances = pdist(np.asarray(sample, np.float64), "cityblock")
    return (float(np.median(distances)) if len(distances) else 0.0) or 1.0


def median_distance(sample: NDArray[Any]) -> float:
    """Median pairwise distance of the rows; 1 when most rows are the same.

    Parameters
    ----------
    sample : shape (n, s)
    """
    rows = np.asarray(sample, dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    squares = (rows**2).sum(axis=1)
    products, lower = 2 * rows @ rows.T, np.empty(len(rows) * (len(rows) - 1) // 2)
    start = 0
    for i, of_row in enumerate(squares):  # the lower triangle
        np.add(of_row, squares[:i], out=lower[start : start + i])
        lower[start : start + i] -= products[i, :i]
        start += i
    square = max(0.0, float(np.median(lower, overwrite_input=True))) if len(lower) else 0.0
    median = float(np.sqrt(square))
    # the differences of squares above are exact to about 1e-15 of the largest square
    return median if median > 1e-7 * float(np.sqrt(squares.max())) else 1.0
