"""`choose_smoothness`: choose a basis size or bandwidth by leave-one-out scores over bags."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..core import checked
from ..core.arrays import Floats, Integers, as_array
from ..core.errors import DataError, ParameterError, shown
from ..data.bags.bags import BagsInMemory, as_bags
from ..data.bags.box import Box
from ..data.labelled.labelled import Batch, LabelledBags
from ..data.store.store import BagStore
from ..embeddings.base import BoxLike, OutOfBox
from ..embeddings.bases.functions import Basis
from ..embeddings.bases.index_sets import known_index_set
from ..embeddings.bases.smoothness import (
    Candidates,
    DensityKind,
    IndexShape,
    LeaveOneOutSums,
    largest_set,
    leave_one_out_sums,
    limits_of,
    series_candidates,
)
from ..embeddings.refusals import outside_error
from ..execution.costs import Cost
from ..execution.passes import Folded, Reduction, run_pass
from ..execution.progress import Progress
from .kernel_density import check_bandwidth

# Largest number of functions for kernel estimates; a pass over a million points takes seconds.
MAX_KERNEL, MAX_KERNEL_PER_DIM = 2**13, 512
_BANDWIDTHS = np.geomspace(0.002, 0.5, 64)  # 9 % apart
# Beyond the frequency 3.5 / πh, the Gaussian damps coefficients to 0.2 %.
HIGHEST_VISIBLE = 3.5
HIGHEST_RESOLVED = 5.5  # beyond the frequency 5.5 / πh, the Gaussian damps to 3e-7
_VALUES_PER_BLOCK = 2**20  # coefficients of a block of bags, in two arrays of 8 MiB
_SECONDS_PER_VALUE = 5e-10  # for a function at a point, with both means


@dataclass(frozen=True, eq=False, kw_only=True)
class Smoothness:
    """Result of `choose_smoothness`: a score for each candidate, averaged over bags.

    Attributes
    ----------
    kind : {"series", "kde"}
        Kind of the density estimates.
    candidates : float64, shape (m,)
        Candidates in ascending order: max_norm or n_per_dim for series, bandwidths h for kernel
        estimates.
    scores : float64, shape (m,)
        Mean over the bags of ∫ p̂² − (2/n) Σ_i p̂^{−i}(x_i) in the unit cube. It estimates
        ‖p̂ − p‖² less ‖p‖².
    n_bags : int
        Number of bags of two or more points, over which scores are averaged.
    n_alone : int
        Number of bags with fewer than two points, which have no score.
    n_outside : int
        Number of points outside the box.
    box : Box
        Box to which max_norm and bandwidths refer. Use the same box for the estimate.

    See Also
    --------
    choose_smoothness : Choose the number of basis functions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, s, (40, 1)) for s in (1.0, 1.1, 3.0)]
    >>> from bagbasis.densities import choose_smoothness
    >>> choice = choose_smoothness(X)
    >>> choice.kind, choice.n_bags
    ('series', 3)
    """

    kind: str
    candidates: Floats
    scores: Floats
    n_bags: int
    n_alone: int
    n_outside: int
    box: Box

    @property
    def best(self) -> float:
        """Candidate with the lowest score; for equal scores, the smoothest candidate."""
        alike = np.flatnonzero(self.scores == self.scores.min())
        return float(self.candidates[alike[-1 if self.kind == "kde" else 0]])


@checked
def choose_smoothness(
    data: BagStore | BagsInMemory,
    kind: DensityKind = "series",
    *,
    candidates: ArrayLike | None = None,
    shape: IndexShape = "ball",
    basis: Basis = "cosine",
    box: BoxLike | None = None,
    out_of_box: OutOfBox = "clip",
    progress: Progress | None = None,
) -> Smoothness:
    """Choose the number of basis functions of a density by leave-one-out scores.

    The leave-one-out scores (Oliva 2018, eq. 2.24 and 2.31) of all candidates are computed in one
    pass over all bags.

    Parameters
    ----------
    data : BagStore, Bags, or list of (n_i, d) arrays
        Bags of points. A store is read once, on the cluster if one is connected.
    kind : {"series", "kde"}
        Kind of the density estimates.
    candidates : array_like, optional
        Values to compare. For series: max_norm ≥ 0 of balls or n_per_dim ≥ 1 of tensor sets.
        Default: all sets of at most 1,024 functions (64 per dimension). For kernel estimates:
        bandwidths in (0, 1], as fractions of the box's side. Default: 64 bandwidths from 0.002 to
        0.5, without those that need more than 8,192 functions (512 in one dimension). The cost of
        the pass depends on the largest set or the smallest bandwidth.
    shape : {"ball", "tensor"}
        Shape of the index set of a series; see `bases.index_set`.
    basis : {"cosine", "trigonometric", "legendre"}
        Basis of a series; kernel estimates always use the cosine basis.
    box : Box, or sequence of (lo, hi), optional
        Range of each coordinate. Default: the box of the store. For bags in memory, the default is
        the unit cube if it contains the points, else the range of the points plus 1 % on each side.
    out_of_box : {"clip", "drop", "error"}
        How to treat points outside the box.
    progress : callable, optional
        Function that is called with (bags done, bags in all).

    Returns
    -------
    Smoothness
        Scores of all candidates, and the best candidate.

    Raises
    ------
    DataError
        If no bag has two points.
    BagError
        If out_of_box="error" and a bag has a point outside the box.
    ParameterError
        If a parameter has an unknown value, or candidates need too many functions.

    See Also
    --------
    Smoothness : Scores of the candidates.
    estimate_densities : Estimate the density of each bag.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, s, (40, 1)) for s in (1.0, 1.1, 3.0)]
    >>> from bagbasis.densities import choose_smoothness, estimate_densities
    >>> choice = choose_smoothness(X, 'kde')
    >>> estimate_densities(X, 'kde', smoothness=choice.best).at([[0.0]]).shape
    (3, 1)
    """
    check_estimate(kind, shape, basis)
    bags = LabelledBags(data if isinstance(data, BagStore) else as_bags(data))
    if bags.n_bags == 0:
        where = "" if bags.url is None else f"{bags.url}: "
        raise DataError(f"{where}no bags to choose a smoothness for")
    box = bags.box if box is None else Box.of(box, bags.n_dims)
    if candidates is None:
        chosen = default_candidates(kind, bags.n_dims, shape, basis)
    else:
        chosen = given_candidates(kind, bags.n_dims, shape, basis, candidates)
    indices = chosen.indices(bags.n_dims)
    sums = run_pass(bags, _Scoring(chosen, bags.n_dims, box, out_of_box).pass_, progress=progress)
    if sums.n_bags == 0:
        raise DataError("the leave-one-out choice needs bags of at least two points in the box")
    scores = sums.mean_scores(chosen.weights(indices))
    return Smoothness(
        kind=kind,
        candidates=chosen.values,
        scores=scores,
        n_bags=sums.n_bags,
        n_alone=sums.n_alone,
        n_outside=sums.n_outside,
        box=box,
    )


@dataclass(frozen=True)
class _Scoring:
    """Parameters of the pass for leave-one-out sums, which are sent to its tasks."""

    candidates: Candidates
    n_dims: int
    box: Box
    out_of_box: str

    @property
    def pass_(self) -> Reduction[LeaveOneOutSums]:
        s = len(self.candidates.indices(self.n_dims))
        cost = Cost(seconds_per_point=_SECONDS_PER_VALUE * s, bytes_per_bag=16 * s)
        rows = max(1, _VALUES_PER_BLOCK // s)
        return Reduction(self.collector, operator.add, cost, rows_per_block=rows)

    def collector(self) -> Folded[LeaveOneOutSums]:
        s = len(self.candidates.indices(self.n_dims))
        return Folded(self.of_batch, operator.add, LeaveOneOutSums.empty(s))

    def of_batch(self, batch: Batch) -> LeaveOneOutSums:
        indices, every = self.candidates.indices(self.n_dims), np.arange(self.n_dims)
        drop = self.out_of_box == "drop"
        basis = self.candidates.basis
        sums, outside = leave_one_out_sums(batch.bags, indices, every, basis, self.box, drop)
        if self.out_of_box == "error" and outside.any():
            bag = int(np.flatnonzero(outside)[0])
            raise outside_error(bag, int(outside[bag]), self.box)
        return sums


def default_candidates(kind: str, n_dims: int, shape: str, basis: str) -> Candidates:
    """Return all series or bandwidths that need at most the largest number of functions."""
    if kind == "series":
        return series_candidates(n_dims, shape, basis)
    limits = largest_set(n_dims, "ball", "cosine", MAX_KERNEL, MAX_KERNEL_PER_DIM)
    radius = limits[1] or 1.0
    return Candidates(kind, _BANDWIDTHS[np.pi * radius * _BANDWIDTHS >= HIGHEST_VISIBLE], limits)


def given_candidates(
    kind: str, n_dims: int, shape: str, basis: str, candidates: ArrayLike
) -> Candidates:
    """Return distinct candidates, ascending; ParameterError if one is out of range."""
    values = checked_candidates(kind, shape, candidates)
    if kind == "kde":
        kernel_index_set(n_dims, float(values[0]))  # raises if there are too many functions
        return Candidates(kind, values, (None, kernel_radius(float(values[0]))))
    limits = limits_of(shape, float(values[-1]))
    known_index_set(n_dims, *limits, basis)  # raises if there are too many functions
    return Candidates(kind, values, limits, shape, basis)


def kernel_radius(bandwidth: float) -> float:
    """Return max_norm of the cosines that a Gaussian kernel estimate needs."""
    return HIGHEST_RESOLVED / (np.pi * bandwidth)


def kernel_index_set(n_dims: int, bandwidth: float) -> Integers:
    """Return the index set of a Gaussian kernel estimate; ParameterError if it is too large."""
    radius = kernel_radius(bandwidth)
    try:
        return known_index_set(n_dims, None, radius)
    except ParameterError:
        raise ParameterError(
            f"a kernel estimate of bandwidth {bandwidth:g} in {n_dims} dimensions needs the "
            f"functions of norm up to {radius:.0f}, more than 200,000; take a larger bandwidth, "
            "fewer coordinates, or kde_at"
        ) from None


def check_estimate(kind: str, shape: str, basis: str) -> None:
    """Raise ParameterError if a kernel estimate does not support the shape or basis."""
    if kind == "kde" and (shape, basis) != ("ball", "cosine"):
        raise ParameterError(
            f"shape={shape!r} and basis={basis!r} do not fit 'kde': kernel estimates are cosine "
            "series on a ball; leave both out"
        )


def checked_candidates(kind: str, shape: str, candidates: ArrayLike) -> Floats:
    """Return distinct values, ascending; ParameterError if one is out of range."""
    values = np.unique(as_array("candidates", candidates, np.float64))
    if values.size == 0 or not np.isfinite(values).all():
        raise ParameterError(f"candidates are {shown(candidates)}; expected finite numbers")
    for value in values:
        check_smoothness(kind, shape, float(value))
    return values


def check_smoothness(kind: str, shape: str, value: float) -> None:
    """Raise ParameterError if a bandwidth, max_norm or n_per_dim is out of range."""
    if kind == "kde":
        check_bandwidth(value)
    elif shape == "ball" and not 0 <= value < np.inf:
        raise ParameterError(f"max_norm is {value!r}; expected a finite number ≥ 0")
    elif shape == "tensor" and not (value >= 1 and value % 1 == 0):
        raise ParameterError(f"n_per_dim is {value!r}; expected an integer ≥ 1")
