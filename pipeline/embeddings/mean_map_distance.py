"""Maximum mean discrepancies of bags from their mean maps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import euclidean_distances

from ..errors import BagError, DataError


def mmd_squared(
    A: ArrayLike,
    sizes_A: ArrayLike | None = None,
    B: ArrayLike | None = None,
    sizes_B: ArrayLike | None = None,
    unbiased: bool = True,
) -> NDArray[np.float64]:
    """MMD² of each bag of A from each bag of B, shape (n_A, n_B), from their mean maps.

    Biased, ‖μ − μ'‖² (002, eq. 12), it is at least 0 and on average too large, the more the
    smaller the bags. The unbiased one leaves out the kernel of each point with itself, which is 1
    (002, eq. 13): MMD_u² = MMD_b² − (1 − ‖μ‖²)/(m − 1) − (1 − ‖μ'‖²)/(n − 1), 0 on average when
    both bags are from one density, and so at times below.

    Parameters
    ----------
    A, B : shape (n, s)
        Of one `MeanMapEmbedding`. Without B all pairs of A, with zeros on the diagonal.
    sizes_A, sizes_B : int, shape (n,)
        Points that each bag's mean is of (`Bags.sizes`, less what "drop" left out); not used
        when biased.

    Raises
    ------
    BagError
        A bag of one point, of which there is no unbiased estimate.
    DataError
        Other shapes, or no sizes.
    """
    first = _rows(A, "A")
    second = first if B is None else _rows(B, "B")
    if first.shape[1] != second.shape[1]:
        raise DataError(f"A has {first.shape[1]} features and B {second.shape[1]}")
    squares: NDArray[np.float64] = euclidean_distances(
        first, None if B is None else second, squared=True
    )
    if not unbiased:
        return squares
    excess = _excess(first, sizes_A, "sizes_A")
    squares -= excess[:, None]
    squares -= excess if B is None else _excess(second, sizes_B, "sizes_B")
    if B is None:
        np.fill_diagonal(squares, 0.0)
    return squares


def _rows(A: ArrayLike, name: str) -> NDArray[np.float64]:
    rows = np.asarray(A, dtype=np.float64)
    if rows.ndim != 2 or len(rows) == 0:
        raise DataError(f"{name} has shape {rows.shape}; expected (n_bags, n_features)")
    return rows


def _excess(rows: NDArray[np.float64], sizes: ArrayLike | None, name: str) -> NDArray[np.float64]:
    """(1 − ‖μ‖²)/(n − 1): what k(x, x) adds on average to the biased estimate."""
    counts = np.asarray(sizes if sizes is not None else [])
    if counts.shape != (len(rows),) or counts.dtype.kind not in "iu":
        raise DataError(f"{name} is to be the number of points of each of the {len(rows)} bags")
    if counts.min() < 2:
        raise BagError(
            int(np.argmin(counts)), f"{counts.min()} points in {name}; unbiased MMD² needs two"
        )
    return (1.0 - (rows**2).sum(axis=1)) / (counts - 1.0)
