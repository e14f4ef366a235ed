"""`Independence`: where tests of independence find dependence, and where they do not (003).

There are three kinds of dependence: local with many peaks (a sinusoid), in a sign that no pair of
coordinates shows, and spread out (a correlation). A fourth problem has none.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import NFSIC, independence_test

from ..kit.plots import Curves
from .power_over_sizes import PowerOverSizes, Test

_Drawn = tuple[Floats, Floats]

FREQUENCY = 2.0  # ω of the sinusoid
_SIGNS = 2  # coordinates of x whose signs decide that of y
CORRELATION = 0.15


def independent(rng: np.random.Generator, n: int) -> _Drawn:
    """Draw normal x in R² and y in R."""
    return rng.standard_normal((n, 2)), rng.standard_normal(n)


def sinusoid(rng: np.random.Generator, n: int) -> _Drawn:
    """Draw of the density ∝ 1 + sin(ωx) sin(ωy) on [−π, π]², by rejection."""
    drawn = rng.uniform(-np.pi, np.pi, (6 * n + 100, 2))
    accepted = 2 * rng.random(len(drawn)) < 1 + np.sin(FREQUENCY * drawn).prod(axis=1)
    x, y = drawn[accepted][:n].T
    return x, y


def sign(rng: np.random.Generator, n: int) -> _Drawn:
    """Draw normal x, and y = |normal| · Π sign(x_j): y is independent of each x_j."""
    x = rng.standard_normal((n, _SIGNS))
    return x, np.abs(rng.standard_normal(n)) * np.sign(x).prod(axis=1)


def correlation(rng: np.random.Generator, n: int) -> _Drawn:
    """Draw two normal numbers with a correlation."""
    x, noise = rng.standard_normal((2, n))
    return x, CORRELATION * x + (1 - CORRELATION**2) ** 0.5 * noise


def _test(statistic: Any, null: str) -> Test:  # noqa: ANN401 - a name or an instance
    def p_value(data: _Drawn, seed: int) -> float:
        return independence_test(
            *data, statistic=statistic, null=null, n_permutations=199, seed=seed, standardize=False
        ).p_value

    return p_value


class Independence(PowerOverSizes):
    """Rejection rates of tests of independence, over numbers of points."""

    name = "independence"
    title = "Tests of independence"
    source = "003"
    problems: ClassVar = {
        "sinusoid": sinusoid,
        "sign": sign,
        "correlation": correlation,
        "independent": independent,
    }
    methods: ClassVar = {
        "NFSIC": _test("nfsic", "chi_square"),
        "NFSIC, learnt": _test(NFSIC(n_locations=5, learn=0.5), "chi_square"),
        "RFF-HSIC": _test("hsic_fourier", "spectral"),
        "Nyström-HSIC": _test("hsic_nystroem", "spectral"),
        "HSIC": _test("hsic_u", "gamma"),
        "RDC": _test("rdc", "permutation"),
        "dCov": _test("dcov", "pearson"),
    }
    pictures = (Curves(file="power.png", x="n", y=tuple(methods), panels="problem"),)
