"""Finite sets of multi-indices α of a tensor-product basis (Oliva 2018 §2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, NoReturn

import numpy as np

from ...core import Integer, Real, checked
from ...core.arrays import Floats, Integers
from ...core.errors import ParameterError
from .functions import MAX_FUNCTIONS, Basis


@checked
def index_set(
    n_dims: Annotated[int, Integer(1)],
    n_per_dim: Annotated[int, Integer(1)] | None = None,
    *,
    max_norm: Annotated[float, Real(ge=0)] | None = None,
    basis: Basis = "cosine",
) -> Integers:
    """Return the multi-indices of a basis in lexicographic order.

    The result has shape (s, n_dims) and is read-only.

    Parameters
    ----------
    n_dims : int
        Number d ≥ 1 of dimensions.
    n_per_dim : int, optional
        Number of functions per dimension of a tensor set: 0 ≤ α_j < n_per_dim, so that
        s = n_per_dim^d (10^d in the papers).
    max_norm : float, optional
        Radius of a ball: ‖α‖₂ ≤ max_norm (Oliva 2018, eq. 2.14). In the trigonometric basis, the
        norm of the frequencies ⌈α_j / 2⌉ is used. If n_per_dim is also given, the result is the
        intersection of both sets.
    basis : {"cosine", "trigonometric", "legendre"}
        Orthonormal basis.

    Raises
    ------
    ParameterError
        If neither n_per_dim nor max_norm is given, a value is out of range, or the set has more
        than 200,000 functions (per dimension or in all).

    See Also
    --------
    evaluate_basis : Evaluate orthonormal basis functions.
    bagbasis.ProjectionEmbedding : Projection coefficients of a density.

    Examples
    --------
    >>> from bagbasis.embeddings import index_set
    >>> index_set(n_dims=2, n_per_dim=2)
    array([[0, 0],
           [0, 1],
           [1, 0],
           [1, 1]])
    """
    return known_index_set(n_dims, n_per_dim, max_norm, basis)


@lru_cache(maxsize=64)
def known_index_set(
    n_dims: int, n_per_dim: int | None, max_norm: float | None, basis: str = "cosine"
) -> Integers:
    """Return `index_set` for values that were checked before, from a cache."""
    if n_per_dim is None and max_norm is None:
        raise ParameterError("an index set needs n_per_dim or max_norm")
    if max_norm is not None and max_norm > MAX_FUNCTIONS:
        _refuse_size(n_dims)
    limit = np.inf if max_norm is None else max_norm**2 * (1 + 1e-12)
    length = n_per_dim if n_per_dim is not None else _functions_within(max_norm or 0.0, basis)
    _check_size(length, n_dims)
    squares = frequencies(np.arange(length), basis).astype(np.float64) ** 2
    rows = np.zeros((1, 0), dtype=np.int64)
    sums = np.zeros(1)
    for _ in range(n_dims):
        counts = np.searchsorted(squares, limit - sums, side="right")
        _check_size(int(counts.sum()), n_dims)
        starts = np.cumsum(counts) - counts
        value = np.arange(counts.sum()) - np.repeat(starts, counts)
        rows = np.concatenate([np.repeat(rows, counts, axis=0), value[:, None]], axis=1)
        sums = np.repeat(sums, counts) + squares[value]
    rows.setflags(write=False)
    return rows


def frequencies(indices: Integers, basis: str) -> Integers:
    """Return frequencies of one-dimensional indices: i, or ⌈i / 2⌉ (trigonometric basis)."""
    return (indices + 1) // 2 if basis == "trigonometric" else indices


def norms(indices: Integers, basis: str) -> Floats:
    """Return ‖α‖₂ of each index, shape (s,)."""
    result: Floats = np.sqrt((frequencies(indices, basis).astype(np.float64) ** 2).sum(axis=1))
    return result


@dataclass(frozen=True)
class Prefixes:
    """An index set in the order of the kernel: prefixes, each with last indices 0 … count − 1.

    Attributes
    ----------
    prefixes : int64, shape (n_prefixes, max(1, d − 1))
        All indices but the last one.
    counts : int64, shape (n_prefixes,)
        Number of last indices of each prefix.
    changed : int64, shape (n_prefixes,)
        First position in which a prefix differs from the previous prefix.
    """

    prefixes: Integers
    counts: Integers
    changed: Integers


def prefix_runs(indices: Integers) -> Prefixes:
    """Group an index set of `index_set` by all but its last column."""
    n_dims = indices.shape[1]
    if n_dims == 1:
        start = np.zeros((1, 1), dtype=np.int64)
        return Prefixes(start, np.array([len(indices)]), np.zeros(1, dtype=np.int64))
    starts = np.flatnonzero(indices[:, -1] == 0)
    prefixes = np.ascontiguousarray(indices[starts, :-1])
    counts = np.diff(starts, append=len(indices))
    differs = prefixes[1:] != prefixes[:-1]
    changed = np.concatenate([[0], differs.argmax(axis=1)]).astype(np.int64)
    return Prefixes(prefixes, counts.astype(np.int64), changed)


def _check_size(n_functions: int, n_dims: int) -> None:
    if n_functions > MAX_FUNCTIONS:
        _refuse_size(n_dims)


def _refuse_size(n_dims: int) -> NoReturn:
    raise ParameterError(
        f"the index set in {n_dims} dimensions has more than {MAX_FUNCTIONS} functions; "
        "lower n_per_dim or max_norm, or use marginals=1 or 2"
    )


def _functions_within(max_norm: float, basis: str) -> int:
    reach = int(np.floor(max_norm * (1 + 1e-12)))
    return 2 * reach + 1 if basis == "trigonometric" else reach + 1
