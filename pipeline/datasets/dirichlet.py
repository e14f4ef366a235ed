"""`Dirichlet`: bags from Dirichlet distributions, whose parameters are the targets."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from ..core import Integer, frozen_component
from ..core.arrays import Floats, Integers
from ..data.bags.bags import Bags, offsets_of
from ..data.bags.box import MAX_DIMS
from .base import LabelledBlock, RandomDataset, block_rng
from .registered import DATASETS

ALPHA_RANGE = (0.1, 10.0)  # Oliva 2018, 3.5.3


@DATASETS.register
@frozen_component
class Dirichlet(RandomDataset):
    """Bags of proportions from Dirichlet(alpha), alpha_i ~ Unif[0.1, 10]; the target is alpha.

    The experiment is from Oliva 2018, section 3.5.3. A point of d proportions is stored as its
    first d - 1 proportions; the last one is one minus their sum. The simplex is a null set of R^d,
    so that d proportions have no density in R^d. The first d - 1 proportions have a density in the
    unit cube.

    Parameters
    ----------
    n_categories
        Number d of proportions, at least 2. There are d targets, alpha_1 … alpha_d, and points have
        d - 1 coordinates.
    n_points : int or (lo, hi)
        Number of points in a bag.
    seed
        Seed for drawing the bags.

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

    n_categories: Annotated[int, Integer(2, MAX_DIMS)] = 3

    @property
    def n_dims(self) -> int:
        """Number of stored proportions, d - 1."""
        return self.n_categories - 1

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets, alpha_1 … alpha_d."""
        return tuple(f"alpha_{i + 1}" for i in range(self.n_categories))

    def block(self, index: int) -> LabelledBlock:
        """Return bags (float32) and targets of a block."""
        proportions, sizes, alpha = self.proportions(index)
        points = np.ascontiguousarray(proportions[:, :-1], dtype=np.float32)
        return Bags.trusted(points, offsets_of(sizes)), alpha

    def proportions(self, index: int) -> tuple[Floats, Integers, Floats]:
        """Return all d proportions of the points of a block in float64, for likelihoods.

        Returns
        -------
        proportions : float64, shape (n_points, d)
            Proportions before they are rounded to float32.
        sizes : int64, shape (n_bags,)
            Number of points in each bag.
        alpha : float64, shape (n_bags, d)
            Parameters of the Dirichlet distribution of each bag.
        """
        rng = block_rng(self.seed, index)
        sizes = self._sizes(rng)
        alpha = rng.uniform(*ALPHA_RANGE, (len(sizes), self.n_categories))
        # In float64: with alpha = 0.1, all float32 gammas of a point can underflow to 0.
        gammas = rng.standard_gamma(np.repeat(alpha, sizes, axis=0))
        return gammas / gammas.sum(axis=1, keepdims=True), sizes, alpha
