"""`Dirichlet`: bags from Dirichlet distributions, whose parameters are the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core import Integer
from ..core.arrays import Floats, Integers
from ..data.bags.bags import Bags, offsets_of
from ..data.bags.box import MAX_DIMS
from .base import LabelledBlock, RandomDataset, block_rng

ALPHA_RANGE = (0.1, 10.0)  # Oliva 2018, 3.5.3


@dataclass(frozen=True, kw_only=True)
class Dirichlet(RandomDataset):
    """Bags of proportions from Dirichlet(alpha), alpha_i ~ Unif[0.1, 10]; the target is alpha.

    Oliva 2018, 3.5.3. A point on the simplex of d proportions is stored as its first d - 1: the
    d-th is one minus their sum, and on the simplex, a null set of R^d, there is no density to
    expand in a d-dimensional basis. The d - 1 have one, in the unit cube.

    Parameters
    ----------
    n_categories : int, default 3
        d, at least 2; there are d targets, alpha_1 … alpha_d, and points in R^(d-1).
    n_points : int or (lo, hi), default 200
    seed : int

    See Also
    --------
    GMMComponents : Count the components of a mixture.
    Digits : Images of handwritten digits.
    generate : Write a dataset to a store.

    Examples
    --------
    >>> from bagbasis.datasets import Dirichlet
    >>> bags, alpha = Dirichlet(n_points=50).block(0)
    >>> bags[0].shape, alpha[0].shape
    ((50, 2), (3,))
    """

    name: ClassVar[str] = "dirichlet"

    n_categories: int = 3

    def __post_init__(self) -> None:
        """Refuse parameters out of their range."""
        Integer(2, MAX_DIMS).check("n_categories", self.n_categories)
        super().__post_init__()

    @property
    def n_dims(self) -> int:
        """All proportions but the last."""
        return self.n_categories - 1

    @property
    def target_names(self) -> tuple[str, ...]:
        """alpha_1 … alpha_d."""
        return tuple(f"alpha_{i + 1}" for i in range(self.n_categories))

    def block(self, index: int) -> LabelledBlock:
        """Make a block: bags of float32 points, and their targets."""
        proportions, sizes, alpha = self.proportions(index)
        points = np.ascontiguousarray(proportions[:, :-1], dtype=np.float32)
        return Bags.trusted(points, offsets_of(sizes)), alpha

    def proportions(self, index: int) -> tuple[Floats, Integers, Floats]:
        """Draw all d proportions of a block's points, before they are rounded, as likelihoods need.

        Returns
        -------
        proportions : float64, shape (n_points, d)
        sizes : int64, shape (n_bags,)
            Points in each bag.
        alpha : float64, shape (n_bags, d)
        """
        rng = block_rng(self.seed, index)
        sizes = self._sizes(rng)
        alpha = rng.uniform(*ALPHA_RANGE, (len(sizes), self.n_categories))
        # In double precision: at alpha = 0.1 all of a point's float32 gammas can underflow to 0.
        gammas = rng.standard_gamma(np.repeat(alpha, sizes, axis=0))
        return gammas / gammas.sum(axis=1, keepdims=True), sizes, alpha
