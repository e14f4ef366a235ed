"""`choose_smoothness`: basis size or bandwidth by the leave-one-out score over all bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bags import BagStore, Box, as_bags
from ..bags.labelled import box_of_bags
from ..bases import index_set, norms
from ..bases.functions import check_basis
from ..embeddings.base import OUT_OF_BOX
from ..errors import DataError, ParameterError
from ..execution import Progress
from .kernel_density import check_bandwidth
from .leave_one_out import LeaveOneOutPass

KINDS = ("series", "kde")
SHAPES = ("ball", "tensor")
MAX_SERIES, MAX_SERIES_PER_DIM = 1024, 64
MAX_KERNEL, MAX_KERNEL_PER_DIM = 2**13, 512
BANDWIDTHS = np.geomspace(0.002, 0.5, 64)
SEEN = 3.5  # of default bandwidths: beyond the frequency 3.5 / πh the Gaussian leaves 0.2 %
RESOLVED = 5.5  # beyond the frequency 5.5 / πh it leaves 3e-7


@dataclass(frozen=True, eq=False)
class Smoothness:
    """Leave-one-out scores of candidates, averaged over bags.

    Attributes
    ----------
    kind : {"series", "kde"}
    candidates : float64, shape (m,)
        Ascending: max_norm or n_per_dim of series, bandwidths h of kernel estimates.
    scores : float64, shape (m,)
        Mean over the bags of ∫ p̂² − (2/n) Σ_i p̂^{−i}(x_i) in the unit cube, an estimate of
        ‖p̂ − p‖² less ‖p‖².
    n_bags : int
        Bags of two points or more: the others say nothing.
    n_alone : int
        Those others.
    n_outside : int
        Points outside the box.
    box : Box
        What max_norm and bandwidths refer to; estimate with the same.
    """

    kind: str
    candidates: NDArray[np.float64]
    scores: NDArray[np.float64]
    n_bags: int
    n_alone: int
    n_outside: int
    box: Box

    @property
    def best(self) -> float:
        """The candidate of least score; the smoother one of two alike."""
        alike = np.flatnonzero(self.scores == self.scores.min())
        return float(self.candidates[alike[-1 if self.kind == "kde" else 0]])


def choose_smoothness(
    data: Any,
    kind: str = "series",
    candidates: ArrayLike | None = None,
    *,
    shape: str = "ball",
    basis: str = "cosine",
    box: Any = None,
    out_of_box: str = "clip",
    progress: Progress | None = None,
) -> Smoothness:
    """Leave-one-out scores (004, eq. 2.24 and 2.31) of all candidates in one pass over all bags.

    Parameters
    ----------
    data : BagStore, Bags, or list of (n_i, d) arrays
        A store is read once, on the cluster if one is connected.
    kind : {"series", "kde"}
    candidates : array_like, optional
        Series: max_norm ≥ 0 of balls or n_per_dim ≥ 1 of tensor sets; default all sets of at most
        1,024 functions (64 a dimension). Kernel estimates: bandwidths in (0, 1], as shares of the
        box's side; default those of 64 from 0.002 to 0.5 that 8,192 functions (512 in one
        dimension) resolve. The pass costs the functions that the largest set, or the least
        bandwidth, needs.
    shape : {"ball", "tensor"}
        Of a series' index set, see `bases.index_set`.
    basis : {"cosine", "trigonometric", "legendre"}
        Of a series; kernel estimates live in the cosine basis.
    box : Box, or sequence of (lo, hi), optional
        Default the store's; in memory the unit cube if the points lie in it, else their range and
        1 % on each side.
    out_of_box : {"clip", "drop", "error"}
        What becomes of points outside the box.
    progress : callable, optional
        ``progress(bags done, bags in all)``.

    Raises
    ------
    DataError
        No bag of two points.
    BagError
        With out_of_box="error", the first bag with a point outside.
    ParameterError
        Values that are not there, or candidates that need too many functions.
    """
    check_choice("kind", kind, KINDS)
    check_estimate(kind, shape, basis, out_of_box)
    if not isinstance(data, BagStore):
        data = as_bags(data)
    n_bags = data.n_bags if isinstance(data, BagStore) else len(data)
    if n_bags == 0:
        where = f"{data.url}: " if isinstance(data, BagStore) else ""
        raise DataError(f"{where}no bags to choose a smoothness for")
    if box is None:
        box = data.box if isinstance(data, BagStore) else box_of_bags(data)
    box = Box.of(box, data.n_dims)
    chosen = None if candidates is None else checked_candidates(kind, shape, candidates)
    find = _kernel_candidates if kind == "kde" else _series_candidates
    limits, chosen = find(data.n_dims, shape, basis, chosen)
    scoring = LeaveOneOutPass(data, *limits, basis, box, out_of_box)
    sums = scoring.run(progress)
    weights = weights_of(kind, shape, basis, scoring.indices, chosen)
    return Smoothness(
        kind,
        chosen,
        sums.mean_scores(weights),
        sums.n_bags,
        sums.n_alone,
        sums.n_outside,
        box,
    )


def weights_of(
    kind: str,
    shape: str,
    basis: str,
    indices: NDArray[np.int64],
    candidates: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What each candidate multiplies a bag's coefficients by, shape (m, s)."""
    chosen = candidates[:, None]
    if kind == "kde":
        return np.exp(-0.5 * (np.pi * chosen * norms(indices, basis)) ** 2)
    if shape == "ball":
        return (norms(indices, basis) <= chosen * (1 + 1e-12)).astype(np.float64)
    return (indices.max(axis=1) < chosen).astype(np.float64)


def kernel_radius(bandwidth: float) -> float:
    """max_norm of the cosines that a Gaussian kernel estimate needs."""
    return RESOLVED / (np.pi * bandwidth)


def kernel_index_set(n_dims: int, bandwidth: float) -> NDArray[np.int64]:
    """The cosines of a Gaussian kernel estimate; ParameterError when they are too many."""
    radius = kernel_radius(bandwidth)
    try:
        return index_set(n_dims, None, radius)
    except ParameterError:
        raise ParameterError(
            f"a kernel estimate of bandwidth {bandwidth:g} in {n_dims} dimensions needs the "
            f"functions of norm up to {radius:.0f}, more than 200,000; take a larger bandwidth, "
            "fewer coordinates, or kde_at"
        ) from None


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """ParameterError for a value that is none of the choices."""
    if value not in choices:
        raise ParameterError(f"{name} is {value!r}; expected one of {list(choices)}")


def check_estimate(kind: str, shape: str, basis: str, out_of_box: str) -> None:
    """ParameterError for values that are not there, or that a kernel estimate does not have."""
    check_choice("shape", shape, SHAPES)
    check_basis(basis)
    check_choice("out_of_box", out_of_box, OUT_OF_BOX)
    if kind == "kde" and (shape, basis) != ("ball", "cosine"):
        raise ParameterError(
            f"shape={shape!r} and basis={basis!r} do not fit 'kde': kernel estimates are cosine "
            "series on a ball; leave both out"
        )


def checked_candidates(kind: str, shape: str, candidates: ArrayLike) -> NDArray[np.float64]:
    """Distinct candidates, ascending; ParameterError for one out of range."""
    values = np.unique(np.asarray(candidates, dtype=np.float64))
    if values.size == 0 or not np.isfinite(values).all():
        raise ParameterError(f"candidates are {candidates!r}; expected finite numbers")
    for value in values:
        check_smoothness(kind, shape, float(value))
    return values


def check_smoothness(kind: str, shape: str, value: float) -> None:
    """ParameterError for a bandwidth, max_norm or n_per_dim out of range."""
    if kind == "kde":
        check_bandwidth(value)
    elif shape == "ball" and not 0 <= value < np.inf:
        raise ParameterError(f"max_norm is {value!r}; expected a finite number ≥ 0")
    elif shape == "tensor" and not (value >= 1 and value % 1 == 0):
        raise ParameterError(f"n_per_dim is {value!r}; expected an integer ≥ 1")


Limits = tuple[int | None, float | None]


def _series_candidates(
    n_dims: int, shape: str, basis: str, candidates: NDArray[np.float64] | None
) -> tuple[Limits, NDArray[np.float64]]:
    """(n_per_dim, max_norm) of the largest set, and the candidates."""
    if candidates is not None:
        limits = series_limits(shape, float(candidates[-1]))
        index_set(n_dims, *limits, basis)  # too many functions are refused before the pass
        return limits, candidates
    limits = _largest(n_dims, shape, basis, MAX_SERIES, MAX_SERIES_PER_DIM)
    indices = index_set(n_dims, *limits, basis)
    if shape == "ball":
        squares = np.unique(np.round(norms(indices, basis) ** 2))
        return limits, np.sqrt(squares)
    return limits, np.arange(1.0, int(indices.max()) + 2)


def _kernel_candidates(
    n_dims: int, shape: str, basis: str, candidates: NDArray[np.float64] | None
) -> tuple[Limits, NDArray[np.float64]]:
    """(n_per_dim, max_norm) of the cosines needed, and the candidates."""
    if candidates is not None:
        kernel_index_set(n_dims, float(candidates[0]))
        return (None, kernel_radius(float(candidates[0]))), candidates
    limits = _largest(n_dims, "ball", "cosine", MAX_KERNEL, MAX_KERNEL_PER_DIM)
    radius = limits[1] or 1.0
    return limits, BANDWIDTHS[np.pi * radius * BANDWIDTHS >= SEEN]


def series_limits(shape: str, value: float) -> Limits:
    """(n_per_dim, max_norm) of an index set of the shape."""
    return (None, value) if shape == "ball" else (int(value), None)


def _largest(n_dims: int, shape: str, basis: str, most: int, most_per_dim: int) -> Limits:
    """The largest index set of the shape with at most ``most`` functions."""
    best = series_limits(shape, 1.0 if shape == "tensor" else 0.0)
    for size in range(1, most_per_dim):
        limits = series_limits(shape, float(size + 1 if shape == "tensor" else size))
        if len(index_set(n_dims, *limits, basis)) > most:
            break
        best = limits
    return best
