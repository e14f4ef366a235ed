"""Expansion, growth and the linear power spectrum of the simulated universes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import hyp2f1

from bagbasis.jobs.experiments.data.nbody import Cosmology
from bagbasis.jobs.experiments.data.nbody.cosmology import transfer
from tests.oracles.nbody import oscillating_transfer, rms_in_spheres

UNIVERSES = [Cosmology(), Cosmology(omega_m=0.2, omega_b=0.02, h=0.75, n_s=1.0, sigma8=0.9)]
A = np.linspace(0.02, 1, 50)


@pytest.fixture(params=UNIVERSES, ids=["default", "other"])
def universe(request: pytest.FixtureRequest) -> Cosmology:
    return request.param


def test_growth_is_the_known_function(universe: Cosmology) -> None:
    """D1 is a ₂F₁(1/3, 1; 11/6; -a³ Ω_Λ / Ω_m), the growing mode of a flat universe."""

    def exact(a: np.ndarray) -> np.ndarray:
        ratio = (1 - universe.omega_m) / universe.omega_m
        return a * hyp2f1(1 / 3, 1, 11 / 6, -(a**3) * ratio)

    np.testing.assert_allclose(universe.growth.factors(A)[0], exact(A) / exact(1), rtol=1e-7)


def test_second_order_growth(universe: Cosmology) -> None:
    """D2 is -3/7 D1² early, and times Ω_m(a)^(-1/143) at all times (Bouchet et al. 1995)."""
    first, second = universe.growth.factors(A)
    assert second[0] / first[0] ** 2 == pytest.approx(-3 / 7, rel=1e-5)
    matter = universe.omega_m * A**-3 / universe.expansion(A) ** 2
    np.testing.assert_allclose(second, -3 / 7 * first**2 * matter ** (-1 / 143), rtol=1e-3)


def test_momenta_are_rates_of_growth(universe: Cosmology) -> None:
    """a³E dD/da by differences, of both orders; and Newton's law for the first."""
    a, step = A[1:-1], 1e-4
    growth = universe.growth
    rates = (growth.factors(a + step) - growth.factors(a - step)) / (2 * step)
    momenta = growth.momenta(a)
    np.testing.assert_allclose(momenta, a**3 * universe.expansion(a) * rates, rtol=1e-5)
    pull = (growth.momenta(a + step)[0] - growth.momenta(a - step)[0]) / (2 * step)
    newton = 1.5 * universe.omega_m * growth.factors(a)[0] / (a**2 * universe.expansion(a))
    np.testing.assert_allclose(pull, newton, rtol=1e-5)


def test_transfer_function(universe: Cosmology) -> None:
    """The full fit averaged over its oscillations, within 1.5 %; one on the largest scales."""
    k = np.geomspace(1e-3, 3, 3000)
    full = oscillating_transfer(k, universe.omega_m, universe.omega_b, universe.h)
    ratio = (transfer(universe, k) / full).reshape(15, 200).mean(axis=1)
    np.testing.assert_allclose(ratio, 1, atol=0.015)
    assert transfer(universe, np.array(1e-6)) == pytest.approx(1, abs=1e-5)


def test_power_has_sigma8_and_the_primordial_slope(universe: Cosmology) -> None:
    """The rms in spheres of 8 Mpc/h is σ8, and P ∝ k^n_s on the largest scales."""
    assert rms_in_spheres(universe.power, 8) == pytest.approx(universe.sigma8, rel=1e-4)
    assert universe.power(2e-5) / universe.power(1e-5) == pytest.approx(2**universe.n_s, rel=1e-3)
