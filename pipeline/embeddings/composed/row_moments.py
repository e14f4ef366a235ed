"""Means, scatters and principal axes of rows, one or more per bag, by one pass over the bags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from ...arrays import Floats
from ...bags import Bags
from ...execution import SECONDS_PER_PRODUCT, Cost, Folded, Progress, Reduction, run_pass
from ...labelled import Batch, LabelledBags
from ...store import Range

RowsOf = Callable[[Bags], NDArray[Any]]
# Columns from which few axes are found by products alone: 4,000 in a fifth of the time.
LANCZOS = 1000
SQUARES_HELD = 4  # scatters at once: what is summed, a batch's, and the two terms of a merge


@dataclass(frozen=True, eq=False)
class RowMoments:
    """Moments of rows, which merge without the loss of digits that sums of squares have.

    Attributes
    ----------
    n : int
    mean : float64, shape (s,)
    scatter : float64, shape (s, s)
        Σ (x − mean)(x − mean)ᵀ.
    """

    n: int
    mean: Floats
    scatter: Floats

    @classmethod
    def of(cls, rows: NDArray[Any]) -> RowMoments:
        """Return those of rows, shape (n, s)."""
        if not len(rows):
            s = rows.shape[1]
            return cls(0, np.zeros(s), np.zeros((s, s)))
        mean = rows.mean(axis=0, dtype=np.float64)
        centred = rows - mean
        return cls(len(rows), mean, centred.T @ centred)

    def __add__(self, other: RowMoments) -> RowMoments:
        """Return the moments of both sets of rows."""
        if not (self.n and other.n):
            return self if self.n else other
        n, gap = self.n + other.n, other.mean - self.mean
        between = np.outer(gap, gap * (self.n * other.n / n))
        between += self.scatter
        between += other.scatter
        return RowMoments(n, self.mean + gap * (other.n / n), between)


def measure_moments(
    source: LabelledBags,
    rows_of: RowsOf,
    n_columns: int,
    cost: Cost,
    ranges: Sequence[Range] | None = None,
    progress: Progress | None = None,
) -> RowMoments:
    """Return the moments of the rows of all bags, by one pass.

    Parameters
    ----------
    rows_of : callable
        Bags to rows, shape (n, n_columns); picklable.
    cost : Cost
        Of ``rows_of``, the squares of the rows included.
    ranges : list of (start, stop), optional
        Of the bags; default all.
    progress : Progress, optional
        Of the pass.
    """
    of_batch, none = partial(_of_batch, rows_of), RowMoments.of(np.empty((0, n_columns)))
    held = Cost(bytes_per_task=SQUARES_HELD * 8 * n_columns**2)
    collector = partial(Folded, of_batch, RowMoments.__add__, none)
    reduction = Reduction(collector, RowMoments.__add__, cost + held, name="moments")
    return run_pass(source, reduction, ranges=ranges, progress=progress)


def seconds_per_row(n_columns: int) -> float:
    """Return what the squares of a row take one core, in order of magnitude."""
    return 2 * n_columns**2 * SECONDS_PER_PRODUCT


def _of_batch(rows_of: RowsOf, batch: Batch) -> RowMoments:
    return RowMoments.of(rows_of(batch.bags))


def principal_axes(square: Floats, n_axes: int | None = None) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, in descending order and none below 0, and unit eigenvectors.

    ``n_axes`` None: all. The vectors are rows.
    """
    s = len(square)
    if n_axes is not None and s >= LANCZOS and n_axes <= s // 10 and square.any():
        # from one vector always: the same bits in any process
        values, vectors = eigsh(square, n_axes, v0=np.ones(s))
        order = np.argsort(-values, kind="stable")
        return np.maximum(values[order], 0), vectors[:, order].T
    subset = None if n_axes is None else [max(0, s - n_axes), s - 1]
    values, vectors = eigh(square, subset_by_index=subset, check_finite=False)
    return np.maximum(values[::-1], 0), vectors[:, ::-1].T


def signed(axes: Floats) -> Floats:
    """Return axes whose entry of largest magnitude is positive, as scikit-learn has them."""
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    return axes * np.where(largest < 0, -1.0, 1.0)[:, None]


def count_axes(variances: Floats, share: float) -> int:
    """Return how many of the largest variances have more than a share of all, as scikit-learn."""
    shares = np.cumsum(variances) / (variances.sum() or 1)
    return int(np.searchsorted(shares, share, "right")) + 1
