"""Test for a difference of the mean rows of two sets, by a sequential number of permutations.

Rows are feature vectors, so that ‖μ₁ − μ₂‖² is the MMD² of the kernel that the features
approximate. A test at a level of 10⁻⁴ takes tens of thousands of permutations, but only if so small
a p-value is still possible. Otherwise the sequential p-value of Besag and Clifford (1991) stops
after a thousand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ..declared import MAX_PERMUTATIONS
from .permutation import p_values, split_blocks

# Permutations that reach the statistic: p is then known to a third, and no stage follows.
MIN_EXCEEDANCES = 10
STAGE_FACTOR = 10  # permutations of a stage, relative to the stage before
RESOLUTION = 2  # permutations of the last stage times the level: one may reach the statistic


@dataclass(frozen=True)
class MeanDifference:
    """How two sets of rows differ.

    Attributes
    ----------
    statistic : float
        ‖μ₁ − μ₂‖², unbiased: about 0 without a difference, at times below.
    p_value : float
    effect : float
        The statistic in units of E‖x − μ‖² within the sets. It does not grow with their size: in
        one dimension it is the square of Cohen's d.
    """

    statistic: float
    p_value: float
    effect: float


def compare_means(
    rows: Floats,
    is_first: NDArray[np.bool_],
    n_permutations: int,
    seed: int,
    level: float | None = None,
) -> MeanDifference:
    """Compare the mean of the rows of a set with that of the others.

    Parameters
    ----------
    rows : shape (n, k)
        Rows, whose mean square norm is about 1.
    is_first : shape (n,)
        At least two rows in each set.
    n_permutations, level
        See `staged_p_values`.
    """
    rows = np.asarray(rows, np.float64)
    values, p = staged_p_values(rows[:, None], is_first, n_permutations, seed, level)
    sets = rows[is_first], rows[~is_first]
    within = sum(float(((x - x.mean(axis=0)) ** 2).sum()) for x in sets) / (len(rows) - 2)
    value = float(values[0])
    return MeanDifference(value, float(p[0]), value / within if within > 0 else 0.0)


def staged_p_values(
    rows: Floats,
    is_first: NDArray[np.bool_],
    n_permutations: int,
    seed: int,
    level: float | None = None,
) -> tuple[Floats, Floats]:
    """Return the statistics and p-values of several comparisons of the same units.

    Where fewer than ten of the permutations reach a statistic, ten times as many follow, up to
    2 / ``level``. The p-value of the stage that ends it is valid at every level: a p-value of an
    earlier stage is at least 11 / (1 + n), those of later stages are at most as often below that
    as they are of that stage (Besag and Clifford 1991).

    Parameters
    ----------
    rows : shape (n, n_comparisons, k)
    n_permutations : int
        Number of permutations of the first stage.
    level : float, optional
        The smallest that p-values are compared with; None: there is one stage.

    Returns
    -------
    shape (n_comparisons,), shape (n_comparisons,)
    """
    observed: Floats = np.empty(0)
    p = np.ones(rows.shape[1])
    open_, n = np.arange(rows.shape[1]), n_permutations
    last = n if not level else max(n, min(MAX_PERMUTATIONS, math.ceil(RESOLUTION / level)))
    while len(open_):
        values = _differences(rows[:, open_], is_first, n, seed)
        observed = observed if len(observed) else values[0]
        p[open_] = [float(p_values(column[0], column[1:])) for column in values.T]
        open_ = open_[p[open_] * (1 + n) <= MIN_EXCEEDANCES] if n < last else open_[:0]
        n = min(STAGE_FACTOR * n, last)
    return observed, p


def _differences(
    rows: Floats, is_first: NDArray[np.bool_], n_permutations: int, seed: int
) -> Floats:
    """Return the unbiased ‖μ₁ − μ₂‖² of the sets, and of random splits: (1 + n, n_comparisons).

    The squares of the rows are summed, too, as ‖μ‖² is too large by the variance of the mean.
    """
    n_rows, n_comparisons, k = rows.shape
    squares = np.einsum("ijk,ijk->ij", rows, rows)
    columns = np.concatenate([rows, squares[:, :, None]], axis=2).reshape(n_rows, -1)
    total, width = columns.sum(axis=0), columns.shape[1]
    m = int(is_first.sum())
    out = []
    for splits in (is_first[None], *split_blocks(is_first, n_permutations, seed, 4 * width)):
        first = splits.astype(np.float64) @ columns
        means, own = [], 0.0
        for sums, n in ((first, m), (total - first, n_rows - m)):
            sums = sums.reshape(-1, n_comparisons, k + 1)
            mean = sums[:, :, :k] / n
            norms = np.einsum("ijk,ijk->ij", mean, mean)
            means.append(mean)
            own = own + (sums[:, :, k] / n - norms) / (n - 1)
        gap = means[0] - means[1]
        out.append(np.einsum("ijk,ijk->ij", gap, gap) - own)
    return np.concatenate(out)
