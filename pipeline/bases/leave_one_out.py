"""The leave-one-out score of density estimates, for every smoothness at once (004, §2.1-2.2).

An estimate with the coefficients w_α a_α, a_α those of the bag, has the score

    Ŝ = ∫ p̂² − (2/n) Σ_i p̂^{−i}(x_i) = Σ_α w_α² a_α² − 2 w_α (n a_α² − mean φ_α²) / (n − 1).

An orthogonal series has w_α = 1 on its index set and 0 elsewhere, which gives (2.24); a Gaussian
kernel estimate with reflection at the walls has w_α = e^{−½(πh)²‖α‖²} in the cosine basis, which
gives (2.31), and (2.32) with the inner products Gaussians of bandwidth √2 h and 1/n² before both
of them. So two sums a function, additive over bags, hold the score of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, Box
from .projection import project


@dataclass(frozen=True)
class LeaveOneOutSums:
    """Σ a_α² and Σ (n a_α² − mean φ_α²)/(n − 1) over the bags of two points or more.

    Attributes
    ----------
    squares, cross : float64, shape (s,)
    n_bags : int
        Bags that were summed.
    n_alone : int
        Bags passed over, as they have no two points (in the box, where others are dropped).
    n_outside : int
        Points outside the box.
    """

    squares: NDArray[np.float64]
    cross: NDArray[np.float64]
    n_bags: int
    n_alone: int
    n_outside: int

    def __add__(self, other: LeaveOneOutSums) -> LeaveOneOutSums:
        return LeaveOneOutSums(
            self.squares + other.squares,
            self.cross + other.cross,
            self.n_bags + other.n_bags,
            self.n_alone + other.n_alone,
            self.n_outside + other.n_outside,
        )

    @classmethod
    def empty(cls, n_functions: int) -> LeaveOneOutSums:
        return cls(np.zeros(n_functions), np.zeros(n_functions), 0, 0, 0)

    def mean_scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ŝ averaged over the bags, shape (m,), for each row of weights w, shape (m, s)."""
        return (weights**2 @ self.squares - 2 * weights @ self.cross) / self.n_bags


def leave_one_out_sums(
    bags: Bags,
    indices: NDArray[np.int64],
    group: NDArray[np.int64],
    basis: str,
    box: Box,
    drop: bool = False,
) -> tuple[LeaveOneOutSums, NDArray[np.int64]]:
    """The sums of some bags, and the points of each outside the box, shape (n_bags,).

    Parameters
    ----------
    indices : int64, shape (s, g)
    group : int64, shape (g,)
        The columns that are looked at.
    drop : bool
        Leave points outside the box out; default they are clipped to its walls.
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
