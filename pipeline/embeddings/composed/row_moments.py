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

from ...core.arrays import Floats
from ...data.bags.bags import Bags
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.store.plan import Range
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.passes import Folded, Reduction, run_pass
from ...execution.progress import Progress

RowsOf = Callable[[Bags], NDArray[Any]]
# Columns from which few axes are found by products alone: 4,000 in a fifth of the time.
LANCZOS = 1000
SQUARES_HELD = 4  # scatters at once: what is summed, a batch's, and the two terms of a merge


@dataclass(frozen=True, eq=False)
class RowMoments:
    """Moments of rows, which merge without the rounding errors of sums of squares.

    Attributes
    ----------
    n : int
    mean : float64, shape (s,)
    scatter : float64, shape (s, s) or (s,)
        Σ (x − mean)(x − mean)ᵀ, or its diagonal alone.
    """

    n: int
    mean: Floats
    scatter: Floats

    @classmethod
    def of(cls, rows: NDArray[Any], diagonal: bool = False) -> RowMoments:
        """Return the moments of rows, shape (n, s), with the full scatter or its diagonal."""
        if not len(rows):
            s = rows.shape[1]
            return cls(0, np.zeros(s), np.zeros(s if diagonal else (s, s)))
        mean = rows.mean(axis=0, dtype=np.float64)
        centred = rows - mean
        if diagonal:
            return cls(len(rows), mean, np.einsum("ij,ij->j", centred, centred))
        return cls(len(rows), mean, centred.T @ centred)

    @property
    def squares(self) -> Floats:
        """The diagonal of the scatter, shape (s,)."""
        return self.scatter if self.scatter.ndim == 1 else np.diag(self.scatter)

    def __add__(self, other: RowMoments) -> RowMoments:
        """Return the moments of both sets of rows."""
        if not (self.n and other.n):
            return self if self.n else other
        n, gap = self.n + other.n, other.mean - self.mean
        weighted = gap * (self.n * other.n / n)
        between = gap * weighted if self.scatter.ndim == 1 else np.outer(gap, weighted)
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
    diagonal: bool = False,
) -> RowMoments:
    """Return the moments of the rows of all bags, by one pass.

    Parameters
    ----------
    rows_of : callable
        Function from bags to rows, shape (n, n_columns); picklable.
    cost : Cost
        Cost of ``rows_of``, including the squares of the rows.
    ranges : list of (start, stop), optional
        Ranges of bags; default all.
    progress : Progress, optional
        Progress reporter of the pass.
    diagonal : bool
        Whether to compute only the diagonal of the scatter.
    """
    of_batch = partial(_of_batch, rows_of, diagonal)
    none = RowMoments.of(np.empty((0, n_columns)), diagonal)
    held = Cost(bytes_per_task=SQUARES_HELD * none.scatter.nbytes)
    collector = partial(Folded, of_batch, RowMoments.__add__, none)
    reduction = Reduction(collector, RowMoments.__add__, cost + held, name="moments")
    return run_pass(source, reduction, ranges=ranges, progress=progress)


def seconds_per_row(n_columns: int, diagonal: bool = False) -> float:
    """Return the seconds of one core for the squares of a row, in order of magnitude."""
    return 2 * n_columns * (1 if diagonal else n_columns) * SECONDS_PER_PRODUCT


def _of_batch(rows_of: RowsOf, diagonal: bool, batch: Batch) -> RowMoments:
    return RowMoments.of(rows_of(batch.bags), diagonal)


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
    """Return how many variances make up more than a fraction of their sum, as scikit-learn."""
    shares = np.cumsum(variances) / (variances.sum() or 1)
    return int(np.searchsorted(shares, share, "right")) + 1
