"""`halo-mass` at small scale, its clusters, and σ_v with interlopers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import spence

from bagbasis import Bags
from bagbasis.jobs.experiments.regression.halo_mass import (
    LARGEST_VELOCITY,
    TABLE_RADII,
    dispersions,
    enclosed,
    velocity_spread,
)


def test_dispersions_solve_the_equation_of_jeans():
    """Without anisotropy as in Łokas and Mamon (2001, eq. 14), in closed form."""
    c = np.array([4.0, 8.0])
    result = dispersions(c, np.zeros(2))
    inner = (TABLE_RADII > 0.05) & (TABLE_RADII < 50)
    x = TABLE_RADII[inner]
    for row, of in zip(result, c, strict=True):
        curly = np.pi**2 - np.log(x) - 1 / x - (1 + x) ** -2 - 6 / (1 + x)
        curly += (1 + x**-2 - 4 / x - 2 / (1 + x)) * np.log1p(x)
        curly += 3 * np.log1p(x) ** 2 + 6 * spence(1 + x)
        squares = of * x * (1 + x) ** 2 * curly / (2 * enclosed(of))
        np.testing.assert_allclose(row[inner], np.sqrt(squares), rtol=3e-3)


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
