"""Smoothness of density estimates: leave-one-out scores of all candidates at once.

An estimate with the coefficients w_α a_α, a_α those of the bag, has the score (Oliva 2018,
§2.1-2.2)

    Ŝ = ∫ p̂² − (2/n) Σ_i p̂^{−i}(x_i) = Σ_α w_α² a_α² − 2 w_α (n a_α² − mean φ_α²) / (n − 1).

An orthogonal series has w_α = 1 on its index set and 0 elsewhere, which gives (2.24); a Gaussian
kernel estimate with reflection at the edges has w_α = e^{−½(πh)²‖α‖²} in the cosine basis, which
gives (2.31), and (2.32) with the inner products Gaussians of bandwidth √2 h and 1/n² before both
of them. So two sums per function, additive over bags, hold the score of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Annotated

import numpy as np

from ...core import OneOf
from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ...core.sums import Sums
from ...data.bags.bags import Bags
from ...data.bags.box import Box
from .coefficients import project
from .index_sets import known_index_set, norms

DensityKind = Annotated[str, OneOf("series", "kde")]
IndexShape = Annotated[str, OneOf("ball", "tensor")]
_WIDEST = 1e6  # sides of the box: a wider Gaussian leaves nothing but the mean either
MAX_CHOSEN_FUNCTIONS, MAX_PER_DIM = 1024, 64  # of a chosen series: the second basis sees them all
BANDWIDTHS = np.geomspace(0.005, 0.3, 42)  # 10 % apart
_MAX_WORK = 2**32  # points times functions: seconds
BAGS_PER_PART = 256  # of each part of a sample, that a bandwidth is chosen from
# Bags whose coefficients are in memory at a time, some megabytes: a bandwidth needs more functions.
BAGS_PER_SERIES_BLOCK, BAGS_PER_KERNEL_BLOCK = 128, 32

Limits = tuple[int | None, float | None]
"""(n_per_dim, max_norm) of an index set; one of them is None."""


@dataclass(frozen=True)
class LeaveOneOutSums(Sums):
    """Σ a_α² and Σ (n a_α² − mean φ_α²)/(n − 1) over the bags of two points or more.

    Attributes
    ----------
    squares, cross : float64, shape (s,)
    n_bags : int
        Number of bags in the sums.
    n_alone : int
        Number of bags left out because they have fewer than two points that count.
    n_outside : int
        Number of points outside the box.
    """

    squares: Floats
    cross: Floats
    n_bags: int
    n_alone: int
    n_outside: int

    @classmethod
    def empty(cls, n_functions: int) -> LeaveOneOutSums:
        """Return sums without bags."""
        return cls(np.zeros(n_functions), np.zeros(n_functions), 0, 0, 0)

    def with_noise(self, share: float) -> LeaveOneOutSums:
        """Return the sums with a fraction of the sampling noise of the coefficients."""
        return replace(self, squares=self.cross + share * (self.squares - self.cross))

    def mean_scores(self, weights: Floats) -> Floats:
        """Ŝ averaged over the bags, shape (m,), for each row of weights w, shape (m, s)."""
        return (weights**2 @ self.squares - 2 * weights @ self.cross) / self.n_bags


def leave_one_out_sums(
    bags: Bags, indices: Integers, group: Integers, basis: str, box: Box, drop: bool = False
) -> tuple[LeaveOneOutSums, Integers]:
    """Return the sums over bags, and the number of points outside the box of each bag.

    Parameters
    ----------
    bags : Bags
    indices : int64, shape (s, g)
    group : int64, shape (g,)
        Columns of the points that are used.
    basis : {"cosine", "trigonometric", "legendre"}
    box : Box
    drop : bool
        Whether to leave out points outside the box; otherwise they are moved to its edge.
    """
    means, squares = (np.empty((len(bags), len(indices))) for _ in range(2))
    outside = project(bags, indices, group[None], basis, box, means, drop=drop)
    project(bags, indices, group[None], basis, box, squares, drop=drop, squared=True)
    n = bags.sizes - outside if drop else bags.sizes
    used = n > 1
    weight = 1 / (n[used] - 1.0)
    of_bags = means[used] ** 2
    sums = LeaveOneOutSums(
        of_bags.sum(axis=0),
        (n[used] * weight) @ of_bags - weight @ squares[used],
        int(used.sum()),
        int((~used).sum()),
        int(outside.sum()),
    )
    return sums, outside


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates for the smoothness of an estimate, and an index set that contains all functions.

    Attributes
    ----------
    kind : {"series", "kde"}
    values : float64, shape (m,)
        Ascending: max_norm or n_per_dim of series, bandwidths of kernel estimates.
    limits : (n_per_dim, max_norm)
        Limits of the index set of all functions.
    shape : {"ball", "tensor"}
        Shape of a series' index set.
    basis : {"cosine", "trigonometric", "legendre"}
    """

    kind: str
    values: Floats
    limits: Limits
    shape: str = "ball"
    basis: str = "cosine"

    def indices(self, n_dims: int) -> Integers:
        """Return the functions that the candidates need, shape (s, n_dims)."""
        return known_index_set(n_dims, *self.limits, self.basis)

    def weights(self, indices: Integers) -> Floats:
        """Return the factors of each candidate for a bag's coefficients, shape (m, s)."""
        chosen = self.values[:, None]
        if self.kind == "kde":
            return damping(indices, self.basis, chosen)
        if self.shape == "ball":
            return (norms(indices, self.basis) <= chosen * (1 + 1e-12)).astype(np.float64)
        weights: Floats = (indices.max(axis=1) < chosen).astype(np.float64)
        return weights


def damping(indices: Integers, basis: str, bandwidth: float | Floats) -> Floats:
    """Return the factors by which a Gaussian damps each coefficient, shape (s,) or (m, s).

    The coefficients are then those of a kernel estimate: reflected at the edges in the cosine
    basis, of period 1 in the trigonometric one.

    Parameters
    ----------
    indices : int64, shape (s, g)
    basis : {"cosine", "trigonometric"}
    bandwidth : float, or shape (m, 1)
        A fraction of the box's side.
    """
    turn = 2 * np.pi if basis == "trigonometric" else np.pi
    width = np.minimum(bandwidth, _WIDEST)
    return np.exp(-0.5 * (turn * width * norms(indices, basis)) ** 2)


def series_candidates(n_dims: int, shape: str, basis: str) -> Candidates:
    """All series of the shape with at most 1,024 functions, 64 per dimension."""
    limits = largest_set(n_dims, shape, basis, MAX_CHOSEN_FUNCTIONS, MAX_PER_DIM)
    indices = known_index_set(n_dims, *limits, basis)
    if shape == "ball":  # rounded, so that the indices on one sphere are one candidate
        values = np.sqrt(np.unique(np.round(norms(indices, basis) ** 2)))
    else:
        values = np.arange(1.0, int(indices.max()) + 2)
    return Candidates("series", values, limits, shape, basis)


def largest_set(n_dims: int, shape: str, basis: str, most: int, max_per_dim: int) -> Limits:
    """Return the largest index set of the shape with at most ``most`` functions."""
    best = limits_of(shape, 1.0 if shape == "tensor" else 0.0)
    for size in range(1, max_per_dim):
        limits = limits_of(shape, float(size + 1 if shape == "tensor" else size))
        if len(known_index_set(n_dims, *limits, basis)) > most:
            break
        best = limits
    return best


def limits_of(shape: str, value: float) -> Limits:
    """(n_per_dim, max_norm) of the index set of a shape and size."""
    return (None, value) if shape == "ball" else (int(value), None)


def choose_index_set(
    sample: Iterable[Bags],
    shape: str,
    basis: str,
    groups: Integers,
    box: Box,
    drop: bool = False,
    max_work: float = inf,
    noise: float = 1.0,
) -> Limits:
    """Return the index set with the lowest score, averaged over bags (2.24).

    The scores of all marginals are added. With ``drop``, points outside the box are left out. Bags
    are read until points times functions exceed ``max_work``. Only the fraction ``noise`` of the
    sampling noise of coefficients counts; below 1 for estimates that average over bags.

    Raises
    ------
    DataError
        If no bag of the sample has two points (inside the box, with ``drop``).
    """
    candidates = series_candidates(groups.shape[1], shape, basis)
    indices = candidates.indices(groups.shape[1])
    weights = candidates.weights(indices)
    sums = sums_per_group(
        sample, indices, groups, basis, box, drop, BAGS_PER_SERIES_BLOCK, max_work
    )
    if noise < 1:
        sums = [group_sums.with_noise(noise) for group_sums in sums]
    scores = np.sum(
        [group_sums.mean_scores(weights) for group_sums in sums if group_sums.n_bags], axis=0
    )
    return limits_of(shape, float(candidates.values[int(scores.argmin())]))


def choose_bandwidth(
    sample: Iterable[Bags],
    groups: Integers,
    box: Box,
    n_coefficients: int,
    drop: bool = False,
    max_work: float = _MAX_WORK,
) -> float:
    """Return the bandwidth with the lowest score, averaged over bags and marginals (2.30-2.32).

    Parameters
    ----------
    sample : iterable of Bags
        Up to 256 evenly spread bags of each, until there are points enough; bags of one point
        say nothing.
    groups : int64, shape (n_groups, g)
    box : Box
    n_coefficients : int
        Number per dimension. Bandwidths that they do not resolve are not compared.
    drop : bool
        Whether to leave out points outside the box; otherwise they are moved to its edge.
    max_work : float
        Points times functions at which reading stops.

    Raises
    ------
    DataError
        No bag of the sample has two points (inside the box, with ``drop``).
    """
    # at πhK = 2 the Gaussian leaves an eighth of the last coefficient
    resolved = BANDWIDTHS[np.pi * n_coefficients * BANDWIDTHS >= 2.0]
    candidates = Candidates("kde", resolved, (n_coefficients, None))
    indices = candidates.indices(groups.shape[1])
    spread = (part[:: max(1, -(-len(part) // BAGS_PER_PART))] for part in sample)
    sums = sums_per_group(
        spread, indices, groups, "cosine", box, drop, BAGS_PER_KERNEL_BLOCK, max_work
    )
    total = sum(sums, LeaveOneOutSums.empty(len(indices)))
    return float(resolved[int(total.mean_scores(candidates.weights(indices)).argmin())])


def sums_per_group(
    sample: Iterable[Bags],
    indices: Integers,
    groups: Integers,
    basis: str,
    box: Box,
    drop: bool,
    bags_per_block: int,
    max_work: float = inf,
) -> list[LeaveOneOutSums]:
    """Return the sums of each marginal over a sample, until points times functions are enough."""
    sums = [LeaveOneOutSums.empty(len(indices)) for _ in groups]
    n_points = 0
    for bags in sample:
        for start in range(0, len(bags), bags_per_block):
            block = bags[start : start + bags_per_block]
            for g, group in enumerate(groups):
                sums[g] += leave_one_out_sums(block, indices, group, basis, box, drop)[0]
            n_points += block.n_points
            has_bags = any(group_sums.n_bags for group_sums in sums)
            if has_bags and n_points * len(groups) * len(indices) > max_work:
                return sums
    if not any(group_sums.n_bags for group_sums in sums):
        raise DataError("the leave-one-out choice needs bags of at least two points")
    return sums
