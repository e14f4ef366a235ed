"""Permutation tests of two sets of rows: every split of them in one matrix product."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..execution.passes import check_memory

VALUES_PER_BLOCK = 2**24  # of the splits in memory: 128 MiB
STREAM = 2**63  # of the seed: no block of frequencies has that number
TIE = 1e-12  # splits of equal statistics may differ by rounding, and count as equal


def split_sums(
    columns: NDArray[np.float64],
    is_reference: NDArray[np.bool_],
    n_permutations: int,
    seed: int,
) -> NDArray[np.float64]:
    """Sum the reference's rows, and again and again as many rows that are drawn at random.

    Parameters
    ----------
    columns : shape (n_rows, k)
    is_reference : shape (n_rows,)
    n_permutations : int
    seed : int
        Splits are a pure function of it, ``n_permutations`` and ``is_reference``.

    Returns
    -------
    shape (1 + n_permutations, k)
        The first row is that of the reference itself.
    """
    generator = np.random.Generator(np.random.Philox(key=np.array([seed, STREAM], np.uint64)))
    shape = 1 + n_permutations, columns.shape[1]
    check_memory(f"{n_permutations:,} permutations", 8 * shape[0] * shape[1], "take fewer")
    out = np.empty(shape)
    observed = is_reference.astype(np.float64)
    out[0] = observed @ columns
    step = max(1, VALUES_PER_BLOCK // len(observed))
    for start in range(1, len(out), step):
        rows = out[start : start + step]
        splits = generator.permuted(np.tile(observed, (len(rows), 1)), axis=1)
        np.matmul(splits, columns, out=rows)
    return out


def mmd_squared_of_splits(
    sums: NDArray[np.float64], total: NDArray[np.float64], n_reference: int, n_new: int
) -> NDArray[np.float64]:
    """Unbiased MMD² of each split from the sums of its features (002, Algorithm 1, A.1).

    MMD_u² = ‖μ_1 − μ_2‖² + ‖μ_1‖²/(m − 1) + ‖μ_2‖²/(n − 1) − (m + n − 2)/((m − 1)(n − 1)), which
    needs features of norm 1, as paired sines and cosines are.

    Parameters
    ----------
    sums : shape (n_splits, D)
        Of the features over the m rows of each split's first set.
    total : shape (D,)
        Over all rows.
    """
    m, n = n_reference, n_new
    first, second = sums / m, (total - sums) / n
    biased = _squares(first - second)
    own = _squares(first) / (m - 1) + _squares(second) / (n - 1)
    squared: NDArray[np.float64] = biased + own - (m + n - 2) / ((m - 1) * (n - 1))
    return squared


def p_values(observed: ArrayLike, permuted: NDArray[np.float64]) -> NDArray[np.float64]:
    """(1 + #{permuted ≥ observed}) / (1 + n_permutations), for each of the observed.

    At least 1 / (1 + n_permutations), and never too small: the observed split is one of the
    splits that are equally likely without a difference.

    Parameters
    ----------
    observed : float or shape (k,)
    permuted : shape (n_permutations,)
    """
    ranked = np.sort(permuted)
    smaller = np.searchsorted(ranked, np.asarray(observed) - TIE, side="left")
    return (1 + len(ranked) - smaller) / (1 + len(ranked))


def _squares(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", rows, rows)
    return squares
