"""Random points, each kind for one experiment: filters' responses, mixtures, and pairs of sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from bagbasis import Bags
from bagbasis.core.arrays import Floats
from bagbasis.data.bags.bags import offsets_of

# Of `Patches`.
FIRING = (0.3, 1.2)  # Beta parameters of the rate at which a part makes a filter fire
STRENGTH = (0.5, 2.0)  # range of a firing response's mean
GAMMA_SHAPE = 2.0  # of a firing response
_NOISE = 0.25  # standard deviation of a response at rest
_GAIN = 0.5  # standard deviation of the logarithm of an image's contrast

# Of `truncated_mixtures` (001, Appendix A).
_N_COMPONENTS = 5  # of a mixture
MEASURED_AT = 100  # midpoints per side

# Of `blobs`.
SPACING = 10.0  # of the grid of blobs, in standard deviations of a round one

# Of `histograms`.
_WORDS = 0.002  # the sum of the squares of a vector's numbers, about


@dataclass(frozen=True)
class Patches:
    """Images of classes: a bag holds the responses of filters at an image's patches.

    A patch shows one of several parts (sky, wall, leaf). A class is a distribution over parts; an
    image's own distribution (Dirichlet) and contrast differ from it. Each part makes each filter
    fire at some rate and with some mean strength (Gamma), above noise at rest. The squashing of
    001, §5.4, maps rest to ½ and the larger responses to about 0.9, in [0, 1].
    """

    n_classes: int = 15
    n_parts: int = 40
    n_filters: int = 64
    n_points: int = 400
    evenness: float = 1.0
    closeness: float = 20.0
    dependent: bool = True
    seed: int = 0

    def images(self, n: int, index: int) -> tuple[Bags, NDArray[np.int64]]:
        """Return bags of n images and their classes, which come in turn; another index, others."""
        world = np.random.default_rng([self.seed, 0])
        classes = world.dirichlet(np.full(self.n_parts, self.evenness), self.n_classes)
        rates = world.beta(*FIRING, (self.n_parts, self.n_filters)).astype(np.float32)
        strengths = world.uniform(*STRENGTH, rates.shape).astype(np.float32) / GAMMA_SHAPE
        filters = np.arange(self.n_filters)
        rng = np.random.default_rng([self.seed, 1, index])
        labels = np.arange(n) % self.n_classes
        points = np.empty((n, self.n_points, self.n_filters), dtype=np.float32)
        for i, label in enumerate(labels):
            shares = rng.dirichlet(self.closeness * classes[label] + 1e-3)
            shape = (self.n_points, 1 if self.dependent else self.n_filters)
            parts = rng.choice(self.n_parts, shape, p=shares)
            points[i] = self._responses(rng, rates[parts, filters], strengths[parts, filters])
        bags = Bags.trusted(
            points.reshape(-1, self.n_filters), offsets_of(np.full(n, self.n_points))
        )
        return bags, labels

    def _responses(
        self, rng: np.random.Generator, rates: NDArray[np.float32], strengths: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the squashed responses of one image, shape (n_points, n_filters)."""
        fires = rng.random(rates.shape, dtype=np.float32) < rates
        responses = np.zeros(rates.shape, dtype=np.float32)
        drawn = rng.standard_gamma(GAMMA_SHAPE, int(fires.sum()), dtype=np.float32)
        responses[fires] = drawn * strengths[fires] * np.float32(np.exp(_GAIN * rng.normal()))
        responses += _NOISE * rng.standard_normal(rates.shape, dtype=np.float32)
        return np.asarray(1 / (1 + np.exp(-responses)), dtype=np.float32)


def truncated_mixtures(
    seed: int, n_mixtures: int = 50, n_points: int = 2500
) -> tuple[Bags, Floats]:
    """Draw bags of five equally weighted truncated Gaussians in [0, 1]², and their densities.

    Means are uniform in the square, standard deviations uniform in [0.05, 0.15], each of its own.
    Densities are above 0, at the midpoints of a grid.
    """
    rng = np.random.default_rng(seed)
    mean = rng.random((n_mixtures, _N_COMPONENTS, 2))
    scale = rng.uniform(0.05, 0.15, (n_mixtures, _N_COMPONENTS, 2))
    lo, hi = norm.cdf(-mean / scale), norm.cdf((1 - mean) / scale)
    axis = (np.arange(MEASURED_AT) + 0.5) / MEASURED_AT
    at = np.stack([g.ravel() for g in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    densities = np.empty((n_mixtures, len(at)))
    for i in range(n_mixtures):
        values = norm.pdf(at, mean[i, :, None], scale[i, :, None]) / (hi - lo)[i, :, None]
        densities[i] = values.prod(axis=2).mean(axis=0)
    component = rng.integers(0, _N_COMPONENTS, (n_mixtures, n_points))
    row = np.arange(n_mixtures)[:, None]
    u = lo[row, component] + (hi - lo)[row, component] * rng.random((n_mixtures, n_points, 2))
    points = mean[row, component] + scale[row, component] * norm.ppf(u)
    return Bags.from_list(list(np.clip(points, 0, 1))), np.maximum(densities, 1e-300)


def blobs(rng: np.random.Generator, n: int, ratio: float) -> Floats:
    """Draw n points of 5 × 5 Gaussians, shape (n, 2) (002, §4.1).

    Variances are 1, and eigenvalues of the covariance have the ratio ε; 1 is round. The paper
    prints neither the spacing nor the direction.
    """
    correlation = (ratio - 1) / (ratio + 1)
    centres = SPACING * rng.integers(0, 5, size=(n, 2))
    covariance = [[1.0, correlation], [correlation, 1.0]]
    return centres + rng.multivariate_normal([0.0, 0.0], covariance, size=n)


def ring(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Draw n points of [−5, 5]² at 1 to 4 from its middle, and n elsewhere in it (002, §4.2)."""
    points = rng.uniform(-5, 5, size=(20 * n, 2))
    squares = (points**2).sum(axis=1)
    inside = (squares > 1) & (squares < 16)
    return points[inside][:n], points[~inside][:n]


def uniform(rng: np.random.Generator, n: int, d: int) -> tuple[Floats, Floats]:
    """Draw n points of [0, 0.95]^d and n of [0.95, 1]^d (002, §4.3)."""
    return rng.uniform(0, 0.95, size=(n, d)), rng.uniform(0.95, 1, size=(n, d))


def histograms(rng: np.random.Generator, sizes: Sequence[int], d: int) -> list[Floats]:
    """Draw two sets of sparse vectors (n, d) of sum 1, with different mean sizes of their numbers.

    About 500 words have a large part in a vector, as in histograms of visual words (002, §4.4).
    """
    shape = 1 / max(1.0, _WORDS * d - 1)
    sets = []
    for n in sizes:
        values = rng.standard_gamma(shape, (n, d)) * np.exp(0.5 * rng.standard_normal(d))
        sets.append(values / values.sum(axis=1, keepdims=True))
    return sets


def bags_by_owner(points: NDArray[Any], owners: NDArray[np.int64], n: int) -> Bags:
    """Return n bags of points that come in any order, from the bag of each; none may be empty."""
    order = np.argsort(owners, kind="stable")
    return Bags(points[order], offsets_of(np.bincount(owners, minlength=n)))
