"""Choosing the bandwidth of density estimates by the leave-one-out score (004, eq. 2.30-2.32).

On [0, 1]^d the Gaussian density estimate with reflection at the walls has the cosine coefficients
a_α e^{−½(πh)²‖α‖²}, a_α those of the bag. So every bandwidth's score comes from the same two sums.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, Box
from ..bases import index_set
from ..bases.leave_one_out import LeaveOneOutSums, leave_one_out_sums
from ..errors import DataError

CANDIDATES = np.geomspace(0.005, 0.3, 42)
MAX_WORK = 2**32  # points times functions: seconds
BAGS_A_PART, BAGS_A_BLOCK = 256, 32


def choose_bandwidth(
    sample: Iterable[Bags],
    groups: NDArray[np.int64],
    box: Box,
    n_coefficients: int,
    drop: bool = False,
) -> float:
    """The candidate of least score, averaged over bags and summed over marginals.

    Parameters
    ----------
    sample : iterable of Bags
        Up to 256 evenly spread bags of each, until there are points enough; bags of one point
        say nothing.
    groups : int64, shape (n_groups, g)
    n_coefficients : int
        A dimension; a bandwidth they do not resolve is not chosen.
    drop : bool
        Leave points outside the box out; default they are clipped to its walls.

    Raises
    ------
    DataError
        No bag of the sample has two points (inside the box, with ``drop``).
    """
    indices = index_set(groups.shape[1], n_coefficients)
    sums = _sums(sample, indices, groups, box, drop)
    frequency = (indices.astype(np.float64) ** 2).sum(axis=1)
    resolved = CANDIDATES[np.pi * n_coefficients * CANDIDATES >= 2.0]
    damping = np.exp(-0.5 * (np.pi * resolved[:, None]) ** 2 * frequency)
    return float(resolved[int(np.argmin(sums.mean_scores(damping)))])


def _sums(
    sample: Iterable[Bags],
    indices: NDArray[np.int64],
    groups: NDArray[np.int64],
    box: Box,
    drop: bool,
) -> LeaveOneOutSums:
    """Over bags and marginals, until there are points enough."""
    sums = LeaveOneOutSums.empty(len(indices))
    n_points = 0
    for part in sample:
        bags = part[:: -(-len(part) // BAGS_A_PART)] if len(part) > BAGS_A_PART else part
        for start in range(0, len(bags), BAGS_A_BLOCK):
            block = bags[start : start + BAGS_A_BLOCK]
            for group in groups:
                sums += leave_one_out_sums(block, indices, group, "cosine", box, drop)[0]
            n_points += block.n_points
            if n_points * len(groups) * len(indices) > MAX_WORK and sums.n_bags > 0:
                return sums
    if sums.n_bags == 0:
        raise DataError("the leave-one-out choice needs bags of at least two points")
    return sums
