"""Bags like the last layer of a network on photographs: 64 filters' responses at many patches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags
from bagbasis.bags.bags import offsets_of

FIRING = (0.3, 1.2)  # Beta parameters of the rate at which a part makes a filter fire
STRENGTH = (0.5, 2.0)  # range of a firing response's mean
GAMMA_SHAPE = 2.0
NOISE = 0.25  # standard deviation of a response at rest
GAIN = 0.5  # standard deviation of the logarithm of an image's contrast


@dataclass(frozen=True)
class Patches:
    """Images of classes: a bag holds the responses of filters at an image's patches.

    A patch shows one of several parts (sky, wall, leaf). A class is a distribution over parts,
    from which that of an image differs (Dirichlet), as its contrast does. A part makes each
    filter fire at a rate and with a mean strength of its own (Gamma), above noise at rest. The
    squashing of 001, §5.4, puts rest at ½ and the larger responses at about 0.9, in [0, 1].

    Attributes
    ----------
    n_classes, n_parts, n_filters, n_points : int
    evenness : float
        Dirichlet parameter of a class's distribution over parts: small ones differ much.
    closeness : float
        Dirichlet weight of the class in an image's distribution: large ones differ little.
    seed : int
        Of the classes and parts, and with an index of the images.
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
        """Bags of ``n`` images and their classes, which come in turn; another index, others.

        The bags have float32 points of R^n_filters in [0, 1].
        """
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
        """Of one image, squashed, shape (n_points, n_filters)."""
        fires = rng.random(rates.shape, dtype=np.float32) < rates
        responses = np.zeros(rates.shape, dtype=np.float32)
        drawn = rng.standard_gamma(GAMMA_SHAPE, int(fires.sum()), dtype=np.float32)
        responses[fires] = drawn * strengths[fires] * np.float32(np.exp(GAIN * rng.normal()))
        responses += NOISE * rng.standard_normal(rates.shape, dtype=np.float32)
        return np.asarray(1 / (1 + np.exp(-responses)), dtype=np.float32)
