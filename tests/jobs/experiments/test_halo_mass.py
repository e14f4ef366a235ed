"""`halo-mass` at small scale, its clusters, and σ_v with interlopers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import spence

from bagbasis import Bags
from bagbasis.jobs.experiments.data.halos import (
    APERTURE,
    CRITICAL,
    FIELD,
    LARGEST_VELOCITY,
    RADII,
    clusters,
    dispersions,
    enclosed,
    galaxies,
    virial,
)
from bagbasis.jobs.experiments.regression.halo_mass import (
    velocity_spread,
)


def test_dispersions_solve_the_equation_of_jeans():
    """Without anisotropy as in Łokas and Mamon (2001, eq. 14), in closed form."""
    c = np.array([4.0, 8.0])
    found = dispersions(c, np.zeros(2))
    inner = (RADII > 0.05) & (RADII < 50)
    x = RADII[inner]
    for row, of in zip(found, c, strict=True):
        curly = np.pi**2 - np.log(x) - 1 / x - (1 + x) ** -2 - 6 / (1 + x)
        curly += (1 + x**-2 - 4 / x - 2 / (1 + x)) * np.log1p(x)
        curly += 3 * np.log1p(x) ** 2 + 6 * spence(1 + x)
        squares = of * x * (1 + x) ** 2 * curly / (2 * enclosed(of))
        np.testing.assert_allclose(row[inner], np.sqrt(squares), rtol=3e-3)


def test_galaxies_have_the_moments_of_their_halo():
    """σ_v ~ M^(1/3), about 1,080 km/s at 10^15, as simulations have it, alike along all axes."""
    mass = np.repeat([1e14, 8e14], 300)
    owner = np.repeat(np.arange(600), 50)
    _places, velocities = galaxies(mass, owner, np.random.default_rng(0))
    heavy = owner >= 300
    rms = np.array([np.sqrt((velocities[of] ** 2).mean(axis=0)) for of in (~heavy, heavy)])
    np.testing.assert_allclose(rms[1] / rms[0], 2.0, rtol=0.08)
    np.testing.assert_allclose(rms[1].mean() / 0.8 ** (1 / 3), 1.08, rtol=0.08)
    assert abs(np.corrcoef(velocities.T)[0, 1]) < 0.05
    radius, speed = virial(np.array([1e15]))
    np.testing.assert_allclose(200 * CRITICAL * 4 / 3 * np.pi * radius**3, 1e15)
    gravity = 4.30091e-9 * 1e15 / radius  # (km/s)², G in Mpc (km/s)² per M☉
    np.testing.assert_allclose(speed, gravity**0.5 / 1000, rtol=1e-2)


def test_interlopers_fill_the_cylinder():
    """Members stay; what is added is uniform in |v| and in area."""
    alone, crowded = (clusters(400, kind, np.random.default_rng(1)) for kind in (False, True))
    np.testing.assert_array_equal(alone.log_mass, crowded.log_mass)
    added = crowded.bags.sizes - alone.bags.sizes
    assert added.min() >= 0
    np.testing.assert_allclose(np.median(added), FIELD, atol=3)
    first = crowded.bags[0][: alone.bags.sizes[0]]
    np.testing.assert_array_equal(first, alone.bags[0])
    field = np.concatenate([b[n:] for b, n in zip(crowded.bags, alone.bags.sizes, strict=True)])
    means = [(field[:, 0] / LARGEST_VELOCITY).mean(), ((field[:, 1] / APERTURE) ** 2).mean()]
    np.testing.assert_allclose(means, 0.5, atol=0.02)
    assert (crowded.bags.points <= [LARGEST_VELOCITY, APERTURE]).all()


@pytest.mark.long
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_velocity_spread_of_a_mixture(share):
    """That of the normal part, however many points are uniform."""
    rng = np.random.default_rng(2)
    n = 20000
    points = np.where(
        rng.random(n) < share, LARGEST_VELOCITY * rng.random(n), np.abs(0.6 * rng.normal(size=n))
    )
    bags = Bags(np.tile(points, 2)[:, None], [0, n, 2 * n])
    np.testing.assert_allclose(velocity_spread(bags, True), 0.6, rtol=0.03)
    plain = np.sqrt((points**2).mean())
    np.testing.assert_allclose(velocity_spread(bags, False), plain)
