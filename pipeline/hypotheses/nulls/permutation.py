"""Permutations of exchangeable units: splits of two samples, orders of one, and p-values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays import Floats, Integers
from ...execution.passes import check_memory
from .draws import generator_of

VALUES_PER_BLOCK = 2**24  # of the splits in memory: 128 MiB
TIE_TOLERANCE = 1e-12  # splits of equal statistics may differ by rounding, and count as equal


def split_sums(
    columns: Floats, is_reference: NDArray[np.bool_], n_permutations: int, seed: int
) -> Floats:
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
    shape = 1 + n_permutations, columns.shape[1]
    check_memory(f"{n_permutations:,} permutations", 8 * shape[0] * shape[1], "take fewer")
    out = np.empty(shape)
    out[0] = is_reference.astype(np.float64) @ columns
    start = 1
    for splits in split_blocks(is_reference, n_permutations, seed):
        np.matmul(splits.astype(np.float64), columns, out=out[start : start + len(splits)])
        start += len(splits)
    return out


def draw_splits(
    is_reference: NDArray[np.bool_], n_permutations: int, seed: int
) -> NDArray[np.bool_]:
    """Return the splits that `split_sums` sums over, shape (1 + n_permutations, n_rows)."""
    shape = 1 + n_permutations, len(is_reference)
    check_memory(f"{n_permutations:,} permutations", shape[0] * shape[1], "take fewer")
    return np.concatenate([is_reference[None], *split_blocks(is_reference, n_permutations, seed)])


def draw_orders(n_units: int, n_permutations: int, seed: int) -> Iterator[Integers]:
    """Yield orders of units, shape (n_units,): a pure function of the arguments."""
    generator = generator_of(seed, "splits")
    return (generator.permutation(n_units) for _ in range(n_permutations))


def split_blocks(
    is_reference: NDArray[np.bool_], n_permutations: int, seed: int, width: int = 1
) -> Iterator[NDArray[np.bool_]]:
    """Yield blocks (m, n_rows) of random splits, the same ones whatever ``width`` is.

    Parameters
    ----------
    width : int
        Numbers that a caller holds per split; blocks of many are shorter.
    """
    generator = generator_of(seed, "splits")
    step = max(1, VALUES_PER_BLOCK // max(width, len(is_reference)))
    for start in range(0, n_permutations, step):
        n_rows = min(step, n_permutations - start)
        yield generator.permuted(np.tile(is_reference, (n_rows, 1)), axis=1)


def mmd_squared_of_splits(
    sums: Floats, total: Floats, n_reference: ArrayLike, n_new: ArrayLike
) -> Floats:
    """Unbiased MMD² of each split from the sums of its features (FastMMD 2015, Algorithm 1, A.1).

    MMD_u² = ‖μ_1 − μ_2‖² + ‖μ_1‖²/(m − 1) + ‖μ_2‖²/(n − 1) − (m + n − 2)/((m − 1)(n − 1)), which
    needs features of norm 1, as paired sines and cosines are.

    Parameters
    ----------
    sums : shape (n_splits, D)
        Sums of the features over the m rows of each split's first set.
    total : shape (D,)
        Over all rows.
    n_reference, n_new : int, or shape (n_splits,)
        m and n.
    """
    m, n = np.asarray(n_reference, np.float64), np.asarray(n_new, np.float64)
    first, second = sums / m[..., None], (total - sums) / n[..., None]
    biased = _squares(first - second)
    own = _squares(first) / (m - 1) + _squares(second) / (n - 1)
    squared: Floats = biased + own - (m + n - 2) / ((m - 1) * (n - 1))
    return squared


def p_values(observed: ArrayLike, permuted: Floats) -> Floats:
    """(1 + #{permuted ≥ observed}) / (1 + n_permutations), for each of the observed.

    At least 1 / (1 + n_permutations), and never too small: the observed split is one of the
    splits that are equally likely without a difference.

    Parameters
    ----------
    observed : float or shape (k,)
    permuted : shape (n_permutations,)
    """
    ranked = np.sort(permuted)
    smaller = np.searchsorted(ranked, np.asarray(observed) - TIE_TOLERANCE, side="left")
    return (1 + len(ranked) - smaller) / (1 + len(ranked))


def _squares(rows: Floats) -> Floats:
    squares: Floats = np.einsum("ij,ij->i", rows, rows)
    return squares
