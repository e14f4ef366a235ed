"""Chooses landmarks of Nyström features: rows of a sample that represent all others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

from ...core.arrays import Floats, Integers

LANDMARK_METHODS = ("rpcholesky", "kmeans++")
PROPOSALS = 128  # per block: large enough for matrix products, and few of them are rejected


def choose_spread(rows: Floats, n_chosen: int, seed: int) -> Integers:
    """Return indices of rows by the seeding of k-means++, far from previously chosen rows."""
    from sklearn.cluster import kmeans_plusplus  # noqa: PLC0415 - a tenth of a second

    generator = np.random.RandomState(np.random.Philox(key=seed))
    chosen: Integers = kmeans_plusplus(rows, n_chosen, random_state=generator)[1].astype(np.int64)
    return chosen


def choose_by_cholesky(
    kernel: Callable[[Integers, Integers | slice], Floats],
    n_rows: int,
    n_chosen: int,
    seed: int,
    tolerance: float,
) -> Integers:
    """Return indices of rows by a randomly pivoted Cholesky factorisation (Chen et al. 2022).

    Each pivot is drawn in proportion to the residual diagonal of the kernel. Blocks of pivots are
    proposed at once and thinned by rejection, which gives the same distribution (Epperly et al.
    2024).

    Parameters
    ----------
    kernel : callable
        From indices of a and b rows to their kernel, shape (a, b); k(x, x) = 1.
    n_rows, n_chosen : int
        Fewer are chosen once no more than the ``tolerance`` of the trace is left.
    seed : int
        Seed of the counter-based generator.
    """
    generator = np.random.Generator(np.random.Philox(key=seed))
    factor = np.empty((n_rows, n_chosen), order="F")  # of the kernel: columns of the pivots
    residuals = np.ones(n_rows)  # of the diagonal
    chosen: list[int] = []
    while len(chosen) < n_chosen and residuals.sum() > tolerance * n_rows:
        n_proposed, known = min(PROPOSALS, n_chosen - len(chosen)), factor[:, : len(chosen)]
        proposed = generator.choice(n_rows, n_proposed, p=residuals / residuals.sum())
        residual = kernel(proposed, proposed) - known[proposed] @ known[proposed].T
        np.fill_diagonal(residual, residuals[proposed])
        taken = _thinned(residual, generator.random(n_proposed))
        pivots = proposed[taken]
        new = factor[:, len(chosen) : len(chosen) + len(taken)]
        columns = kernel(pivots, slice(None))
        columns -= known[pivots] @ known.T
        new[:] = columns.T
        lower = np.tril(residual[np.ix_(taken, taken)])
        blas.dtrsm(1.0, lower, new, side=1, lower=1, trans_a=1, overwrite_b=1)  # in place
        residuals = np.maximum(residuals - np.einsum("ij,ij->i", new, new), 0.0)
        residuals[pivots] = 0.0
        chosen += pivots.tolist()
    return np.array(chosen, np.int64)


def _thinned(residual: Floats, chances: Floats) -> list[int]:
    """Return which proposals are pivots; their columns become those of the Cholesky factor."""
    thresholds, taken = chances * residual.diagonal(), []
    for j in range(len(residual)):
        if residual[j, j] <= thresholds[j]:
            continue
        taken.append(j)
        residual[j:, j] /= np.sqrt(residual[j, j])
        rest = residual[j + 1 :, j]
        residual[j + 1 :, j + 1 :] -= np.outer(rest, rest)
    return taken
