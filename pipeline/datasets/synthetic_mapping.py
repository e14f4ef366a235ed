"""`SyntheticMapping`: a known smooth real function of a one-dimensional density."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from ..core import frozen_component
from ..core.arrays import Floats, Integers
from ..data.bags.bags import Bags, offsets_of
from .base import DatasetSeed, LabelledBlock, RandomDataset, block_rng
from .mixtures import choose_components, truncated_gaussians
from .registered import DATASETS

# Oliva 2018, 3.5.1
N_TERMS = 10  # terms of the sum that defines f
_N_COMPONENTS = 2  # components of each mixture
THETA_RANGE = (-5.0, 5.0)
_SCALE_RANGE = (0.05, 0.1)  # standard deviations
KERNEL_BANDWIDTH = 1.0  # bandwidth of the Gaussian kernel of ‖g - p‖


class IntervalMixtures(NamedTuple):
    """Densities on [0, 1]: equally weighted mixtures of truncated Gaussians.

    Attributes
    ----------
    means, scales : float64, shape (n, 2)
        Mean and standard deviation of each component before the truncation.
    """

    means: Floats
    scales: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, n: int) -> IntervalMixtures:
        """Draw the parameters of n densities."""
        shape = (n, _N_COMPONENTS)
        return cls(rng.uniform(0, 1, shape), rng.uniform(*_SCALE_RANGE, shape))


@DATASETS.register
@frozen_component
class SyntheticMapping(RandomDataset):
    """Bags in [0, 1] from mixtures p of two truncated Gaussians; the target is f(p), noiseless.

    The experiment is from Oliva 2018, section 3.5.1: f(p) = Σ_{i=1}^{10} θ_i exp(-‖g_i - p‖₂² / 2)
    with θ_i ~ Unif[-5, 5]. The densities g_i and p have the same distribution: weights 1/2, means
    ~ Unif[0, 1], and "variance parameters" ~ Unif[.05, .1]. These parameters are used as standard
    deviations, like for similar mixtures in Sutherland et al. 2016, App. A. If they were variances,
    every density would be nearly flat and f nearly linear.

    Parameters
    ----------
    mapping_seed
        Seed for drawing f. Use the same value for training and test bags, and another ``seed``.
    n_points : int or (lo, hi)
        Number of points in a bag. In the thesis it grows as N^(3/5) with the number N of bags.
    seed
        Seed for drawing the bags.

    See Also
    --------
    DensityMapping : Bags with densities as responses.
    GMMComponents : Count the components of a mixture.

    Examples
    --------
    >>> from bagbasis.datasets import SyntheticMapping
    >>> bags, values = SyntheticMapping(n_points=50).block(0)
    >>> bags[0].shape, values.shape[0] == len(bags)
    ((50, 1), True)
    """

    name: ClassVar[str] = "synthetic_mapping"
    n_dims = 1
    target_names = ("f",)
    box: ClassVar = ((0.0, 1.0),)

    mapping_seed: DatasetSeed = 0

    def mapping(self) -> tuple[Floats, IntervalMixtures]:
        """Return the coefficients θ of f, shape (10,), and the densities g."""
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(self.mapping_seed)))
        return rng.uniform(*THETA_RANGE, N_TERMS), IntervalMixtures.draw(rng, N_TERMS)

    def densities(self, index: int) -> IntervalMixtures:
        """Return the densities from which the bags of a block are drawn."""
        return self._start(index)[2]

    def block(self, index: int) -> LabelledBlock:
        """Return bags (float32) and targets of a block."""
        rng, sizes, densities = self._start(index)
        n_components = np.full(len(sizes), _N_COMPONENTS)
        component = choose_components(rng, n_components, sizes, _N_COMPONENTS)
        points = truncated_gaussians(
            rng,
            component,
            densities.means.reshape(-1, 1),
            densities.scales.reshape(-1, 1, 1),
            self.box,
        )
        theta, g = self.mapping()
        kernel = np.exp(-_squared_distances(densities, g) / (2 * KERNEL_BANDWIDTH**2))
        return Bags.trusted(points, offsets_of(sizes)), (kernel @ theta)[:, None]

    def _start(self, index: int) -> tuple[np.random.Generator, Integers, IntervalMixtures]:
        rng = block_rng(self.seed, index)
        sizes = self._sizes(rng)
        return rng, sizes, IntervalMixtures.draw(rng, len(sizes))


def _squared_distances(p: IntervalMixtures, q: IntervalMixtures) -> Floats:
    """Return ‖p_i - q_j‖₂² on [0, 1], shape (len(p), len(q)), in closed form."""
    crossed = inner_products(
        IntervalMixtures(p.means[:, None], p.scales[:, None]),
        IntervalMixtures(q.means[None], q.scales[None]),
    )
    return inner_products(p, p)[:, None] + inner_products(q, q) - 2 * crossed


def inner_products(p: IntervalMixtures, q: IntervalMixtures) -> Floats:
    """Return ∫₀¹ p q for pairs of mixtures; all axes but the last (components) are broadcast.

    The product of two Gaussians is a Gaussian times the density of N(0, s² + t²) at the distance
    between their means. Its integral over [0, 1] therefore needs two values of Φ.
    """
    m, s = p.means[..., :, None], p.scales[..., :, None]
    n, t = q.means[..., None, :], q.scales[..., None, :]
    variance = s**2 + t**2
    height = np.exp(-((m - n) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    overlap = _mass((m * t**2 + n * s**2) / variance, s * t / np.sqrt(variance))
    products = height * overlap / (_mass(m, s) * _mass(n, t))
    means: Floats = products.sum(axis=(-2, -1)) / _N_COMPONENTS**2
    return means


def _mass(mean: Floats, scale: Floats) -> Floats:
    """Return the mass of N(mean, scale²) within [0, 1]."""
    mass: Floats = ndtr((1 - mean) / scale) - ndtr(-mean / scale)
    return mass
