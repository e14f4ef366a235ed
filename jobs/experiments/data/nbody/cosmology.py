"""A flat ΛCDM universe: expansion, growth of structure to second order, linear power spectrum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from bagbasis.core import Real
from bagbasis.core.arrays import Floats
from bagbasis.core.errors import ParameterError

CMB_TEMPERATURE = 2.7255  # K
SIGMA8_RADIUS = 8.0  # Mpc/h
A_EARLY = 1e-3  # matter dominates: Λ is 1e-9 of it
K_RANGE = (1e-5, 1e2)  # h/Mpc; beyond it nothing adds to σ8


@dataclass(frozen=True)
class Cosmology:
    """A flat universe of matter and Λ; lengths are comoving, in Mpc/h, k in h/Mpc.

    Densities are in units of today's critical one, ``sigma8`` is the linear rms contrast of spheres
    of 8 Mpc/h today. The defaults are Planck's 2018 values, rounded.
    """

    omega_m: float = 0.31
    omega_b: float = 0.049
    h: float = 0.68
    n_s: float = 0.965
    sigma8: float = 0.81

    def __post_init__(self) -> None:
        for field in fields(self):
            Real(gt=0).check(field.name, getattr(self, field.name))
        if not self.omega_b < self.omega_m < 1:
            raise ParameterError(
                f"omega_m is {self.omega_m} and omega_b is {self.omega_b}; expected "
                "0 < omega_b < omega_m < 1"
            )

    def expansion(self, a: ArrayLike) -> Floats:
        """E(a) = H(a) / H0 at scale factor a."""
        return np.sqrt(self.omega_m * np.asarray(a, dtype=np.float64) ** -3 + 1 - self.omega_m)

    def power(self, k: ArrayLike) -> Floats:
        """Linear power spectrum today, (Mpc/h)³, for k > 0."""
        return power_amplitude(self) * self.shape(k)

    def shape(self, k: ArrayLike) -> Floats:
        k = np.asarray(k, dtype=np.float64)
        return k**self.n_s * transfer(self, k) ** 2

    @property
    def growth(self) -> Growth:
        return solve_growth(self)


@dataclass(frozen=True, eq=False)
class Growth:
    """Growth of the first and second order displacements with the scale factor a ≤ 1.

    A particle at rest at q in the beginning is at x = q + D1 ψ1 + D2 ψ2, with momentum
    p = a² dx/dt = (a³E dD1/da) ψ1 + (a³E dD2/da) ψ2 for times in units of 1/H0.
    """

    cosmology: Cosmology
    solution: Callable[[ArrayLike], Floats]

    def factors(self, a: ArrayLike) -> Floats:
        """(D1, D2) at a, shape (2, …); D1(1) = 1, and D2 = -3/7 D1² while matter dominates."""
        return self.solution(np.log(a))[:2] / self._norms(np.ndim(a))

    def momenta(self, a: ArrayLike) -> Floats:
        """a³E (dD1/da, dD2/da), shape (2, …)."""
        rate: Floats = np.asarray(a) ** 2 * self.cosmology.expansion(a)
        return rate * self.solution(np.log(a))[2:] / self._norms(np.ndim(a))

    def _norms(self, n_dims: int) -> Floats:
        today = self.solution(0.0)[0]
        return np.array([today, today**2]).reshape(2, *[1] * n_dims)


@lru_cache
def solve_growth(cosmology: Cosmology) -> Growth:
    """Integrate both growth equations over ln a, from the growing modes of a matter universe.

    With ′ = d/d ln a: D1″ + (2 + E′/E) D1′ = 3/2 Ω_m(a) D1, and for D2 the source
    3/2 Ω_m(a) (D2 - D1²) (Bouchet et al. 1995).
    """

    def derivatives(ln_a: float, y: Floats) -> Floats:
        matter = cosmology.omega_m * np.exp(-3 * ln_a)
        matter /= matter + 1 - cosmology.omega_m
        d1, d2, rate1, rate2 = y
        drag = 2 - 1.5 * matter
        pull1, pull2 = 1.5 * matter * d1, 1.5 * matter * (d2 - d1**2)
        return np.array([rate1, rate2, pull1 - drag * rate1, pull2 - drag * rate2])

    a = A_EARLY
    start = [a, -3 / 7 * a**2, a, -6 / 7 * a**2]
    result = solve_ivp(
        derivatives, (np.log(a), 0), start, method="DOP853", rtol=1e-10, atol=0, dense_output=True
    )
    return Growth(cosmology, result.sol)


def transfer(cosmology: Cosmology, k: Floats) -> Floats:
    """Transfer function without acoustic oscillations (Eisenstein & Hu 1998, eq. 26-31)."""
    matter = cosmology.omega_m * cosmology.h**2
    baryons = cosmology.omega_b * cosmology.h**2
    fraction = cosmology.omega_b / cosmology.omega_m
    sound_horizon = 44.5 * np.log(9.83 / matter) / np.sqrt(1 + 10 * baryons**0.75)  # Mpc
    alpha = 1 - 0.328 * np.log(431 * matter) * fraction + 0.38 * np.log(22.3 * matter) * fraction**2
    suppression = alpha + (1 - alpha) / (1 + (0.43 * k * cosmology.h * sound_horizon) ** 4)
    q = k * (CMB_TEMPERATURE / 2.7) ** 2 / (cosmology.omega_m * cosmology.h * suppression)
    logarithm = np.log(2 * np.e + 1.8 * q)
    return logarithm / (logarithm + (14.2 + 731 / (1 + 62.5 * q)) * q**2)


@lru_cache
def power_amplitude(cosmology: Cosmology) -> float:
    """Return the factor that gives the spectrum's shape the cosmology's σ8."""
    log_k = np.linspace(np.log(K_RANGE[0]), np.log(K_RANGE[1]), 8192)
    k = np.exp(log_k)
    x = k * SIGMA8_RADIUS
    window = 3 * (np.sin(x) - x * np.cos(x)) / x**3
    variance = np.trapezoid(k**3 * cosmology.shape(k) * window**2, log_k) / (2 * np.pi**2)
    return float(cosmology.sigma8**2 / variance)
