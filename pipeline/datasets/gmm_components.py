"""`GMMComponents`: bags from Gaussian mixtures, whose number of components is the target."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from ..core import OneOf, frozen_component
from ..core.arrays import Floats, Integers
from ..data.bags.bags import Bags, offsets_of
from .base import LabelledBlock, RandomDataset, block_rng
from .mixtures import Mixtures
from .registered import DATASETS

_MAX_COMPONENTS = 10  # Sutherland et al. 2016, 5.2
_MEAN_RANGE = 5.0  # means are in [-5, 5]^2
HALF_WIDTH = 10.0  # half the side of the box, which removes one point in two thousand


@DATASETS.register
@frozen_component
class GMMComponents(RandomDataset):
    """Bags in R^2 from mixtures of k Gaussians, k ~ Unif{1, …, 10}; the target is k.

    All components have equal weights and means ~ Unif[-5, 5]^2. Each component has its own
    covariance. Entries of the matrix A are ~ Unif[-1, 1], and entries of the diagonal matrix B are
    ~ Unif[0, 1]. The covariance is

    - a A A^T + B with a ~ Unif[1, 4] for ``variant="001"`` (Sutherland et al. 2016, 5.2),
    - a^2 A A^T + B with a ~ Unif[1, 2] for ``variant="004"`` (Oliva 2018, 3.5.2). The range is the
      same, but components are narrower on average.

    The components are truncated to the box [-10, 10]^2. The papers do not say where components are
    truncated; this box removes one point in two thousand.

    Parameters
    ----------
    n_points : int or (lo, hi)
        Number of points in a bag.
    variant
        Distribution of the covariances. Both are described above.
    seed
        Seed for drawing the bags.

    See Also
    --------
    Dirichlet : Bags of proportions.
    Digits : Images of handwritten digits.
    generate : Write a dataset to a store.

    Examples
    --------
    >>> from bagbasis.datasets import GMMComponents
    >>> bags, k = GMMComponents(n_points=50).block(0)
    >>> bags[0].shape
    (50, 2)
    """

    name: ClassVar[str] = "gmm_components"
    n_dims = 2
    target_names = ("n_components",)
    box: ClassVar = ((-HALF_WIDTH, HALF_WIDTH),) * 2

    variant: Annotated[str, OneOf("001", "004")] = "001"

    def densities(self, index: int) -> Mixtures:
        """Return the mixtures from which the bags of a block are drawn."""
        return self._start(index)[2]

    def block(self, index: int) -> LabelledBlock:
        """Return bags (float32) and targets of a block."""
        rng, sizes, mixtures = self._start(index)
        points = mixtures.draw_points(rng, sizes, self.box)
        targets = mixtures.n_components[:, None].astype(np.float64)
        return Bags.trusted(points, offsets_of(sizes)), targets

    def _start(self, index: int) -> tuple[np.random.Generator, Integers, Mixtures]:
        rng = block_rng(self.seed, index)
        sizes = self._sizes(rng)
        shape = (len(sizes), _MAX_COMPONENTS)
        n_components = rng.integers(1, _MAX_COMPONENTS, len(sizes), endpoint=True)
        means = rng.uniform(-_MEAN_RANGE, _MEAN_RANGE, (*shape, 2))
        scale = rng.uniform(1, 4, shape) if self.variant == "001" else rng.uniform(1, 2, shape) ** 2
        a = rng.uniform(-1, 1, (*shape, 2, 2))
        covariances = scale[..., None, None] * (a @ np.swapaxes(a, -1, -2))
        covariances[..., [0, 1], [0, 1]] += rng.uniform(0, 1, (*shape, 2))
        return rng, sizes, Mixtures(n_components, means, cholesky_2x2(covariances))


def cholesky_2x2(matrices: Floats) -> Floats:
    """Return the lower Cholesky factors of a stack of 2x2 matrices, shape (..., 2, 2)."""
    factors = np.zeros_like(matrices)
    factors[..., 0, 0] = np.sqrt(matrices[..., 0, 0])
    factors[..., 1, 0] = matrices[..., 1, 0] / factors[..., 0, 0]
    factors[..., 1, 1] = np.sqrt(np.maximum(matrices[..., 1, 1] - factors[..., 1, 0] ** 2, 0))
    return factors
