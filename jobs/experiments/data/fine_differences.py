"""Pairs of samples whose difference is much finer than the samples are wide (Biggs et al. 2023).

They are the mixtures and the perturbed uniform distributions on which the authors of MMD-FUSE
compare tests.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from bagbasis.core.arrays import Floats

N_PUBLISHED = 200  # data sets of a size
FIRST_SEED = 42  # of the first of them
PUBLISHED_SIZES = (500, 1000, 1500, 2000, 2500, 3000)  # in the order in which seeds were given
_CENTRE = 20.0  # of the components of a mixture, in each coordinate and of either sign
BUMPS = (1, 2)  # places of a perturbation along a coordinate


def mixtures(rng: np.random.Generator, n: int, deviation: float) -> tuple[Floats, Floats]:
    """Draw two samples of four Gaussians at (±20, ±20), shapes (n, 2).

    All have standard deviation 1 but that at (−20, −20) of the second sample.
    """
    pair = []
    for own in (1.0, deviation):
        centres = rng.choice([-_CENTRE, _CENTRE], (n, 2))
        is_other = (centres < 0).all(axis=1)
        noise = rng.standard_normal((n, 2)) * np.where(is_other, own, 1.0)[:, None]
        pair.append(centres + noise)
    return pair[0], pair[1]


def perturbed_uniforms(
    rng: np.random.Generator, n: int, n_dims: int, scale: float
) -> tuple[Floats, Floats]:
    """Draw from the uniform distribution on [0, 1]^d and from one with bumps, shapes (n, d)."""
    signs = rng.choice([-1.0, 1.0], len(BUMPS) ** n_dims)
    perturbed = np.empty((0, n_dims))
    while len(perturbed) < n:
        drawn = rng.random((2 * n + 100, n_dims))
        accepted = rng.random(len(drawn)) * (1 + scale) < perturbed_density(drawn, signs, scale)
        perturbed = np.concatenate([perturbed, drawn[accepted]])
    return rng.random((n, n_dims)), perturbed[:n]


def published_perturbed_uniforms(
    i: int, n: int, n_dims: int, scale: float
) -> tuple[Floats, Floats]:
    """Return the authors' own data set ``i`` of size ``n``, to single precision, shapes (n, d).

    Their code says how seeds go on over sizes and data sets, and draws with numpy's legacy
    generator, whose numbers stay what they were: signs, then a point and a height at a time of the
    perturbed distribution, then the uniform distribution.

    Parameters
    ----------
    i : int from 0 to 199
    n : int
        One of `PUBLISHED_SIZES`.
    """
    seed = FIRST_SEED + N_PUBLISHED * PUBLISHED_SIZES.index(n) + i
    legacy = np.random.RandomState
    signs = legacy(seed + 1).choice([-1, 1], len(BUMPS) ** n_dims)
    drawn = legacy(seed + 2).random_sample((round(n * (1 + scale) * 2), n_dims + 1))
    points, heights = drawn[:, :-1], drawn[:, -1] * (1 + scale)
    perturbed = points[heights <= perturbed_density(points, signs, scale)][:n]
    return perturbed, legacy(seed).random_sample((n, n_dims))


def perturbed_density(points: Floats, signs: Floats, scale: float) -> Floats:
    """Return 1 + scale · e^d Σ_j θ_j Π_r G(2 x_r − j_r), at most 1 + scale, shape (n,).

    Parameters
    ----------
    points : shape (n, d)
    signs : shape (2^d,)
        θ_j of the places j ∈ {1, 2}^d, the last coordinate fastest.
    """
    n_dims = points.shape[1]
    values = np.zeros(len(points))
    for sign, place in zip(signs, product(BUMPS, repeat=n_dims), strict=True):
        values += sign * _wave(len(BUMPS) * points - np.array(place)).prod(axis=1)
    density: Floats = 1 + scale * np.e**n_dims * values
    return density


def _wave(x: Floats) -> Floats:
    """Return G(x), a smooth bump on (−1, −½) and its negative on (−½, 0)."""
    out = np.zeros_like(x)
    for low, sign in ((-1.0, 1.0), (-0.5, -1.0)):
        t = 4 * (x - low) - 1  # from −1 to 1 over the bump
        inside = np.abs(t) < 1
        out[inside] = sign * np.exp(-1 / (1 - t[inside] ** 2))
    return out
