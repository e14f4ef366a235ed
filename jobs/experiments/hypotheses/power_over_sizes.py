"""`Independence`, `GoodnessOfFit`: what several tests find, over the size of the sample (003).

Dependence is local (a sinusoid), in a sign that no pair of coordinates shows, or spread out. Points
that do not fit have another variance, or are of a Laplace distribution with the same moments, or of
a mixture (Jitkrittum et al. 2017). One more problem of each has nothing to find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import FSSD, NFSIC, MixtureScore, fit_test, independence_test

from ..kit import Callback, Curves, Experiment, Measure, Params
from ..kit.rates import shares

_LEVEL = 0.05
FREQUENCY = 2.0  # ω of the sinusoid
_SIGNS = 2  # coordinates of x whose signs decide that of y
CORRELATION = 0.15
DIMS = 3  # of points of a distribution
NORMAL = MixtureScore(np.zeros(DIMS))
VARIANCE = 1.3  # of the first coordinate
_SHIFT = 0.6  # of both components, each to its side; the covariance stays I

_Drawn = tuple[Floats, Floats]
_Test = Callable[[Any, int], float]
"""From data and a seed to a p-value."""


class PowerOverSizes(Experiment):
    """A point is a problem at a size, with the fraction of data sets that each test rejects."""

    source = "003"
    problems: ClassVar[Mapping[str, Callable[..., Any]]]
    methods: ClassVar[Mapping[str, _Test]]

    def measures(self) -> list[Measure]:
        s = self.settings
        axes: dict[str, Any] = {"problem": list(self.problems), "n": s.n_points}
        fixed = {"n_tests": s.n_tests, "methods": list(self.methods)}
        return [Measure("", self._power, "{problem} n {n}", axes, fixed)]

    def _power(self, p: Params, progress: Callback) -> dict[str, Any]:
        draw = self.problems[p["problem"]]

        def p_value(name: str, i: int) -> float:
            return self.methods[name](draw(self.rng(i), p["n"]), i)

        tests = {name: partial(p_value, name) for name in p["methods"]}
        return shares(tests, p["n_tests"], _LEVEL, progress)


def independent(rng: np.random.Generator, n: int) -> _Drawn:
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
    x, noise = rng.standard_normal((2, n))
    return x, CORRELATION * x + (1 - CORRELATION**2) ** 0.5 * noise


def _independence(statistic: Any, null: str) -> _Test:  # noqa: ANN401 - a name or an instance
    options: dict[str, Any] = {"statistic": statistic, "null": null, "n_permutations": 199,
                               "standardize": False}  # fmt: skip
    return lambda data, seed: independence_test(*data, seed=seed, **options).p_value


class Independence(PowerOverSizes):
    name = "independence"
    title = "Tests of independence"
    problems: ClassVar = {
        "sinusoid": sinusoid,
        "sign": sign,
        "correlation": correlation,
        "independent": independent,
    }
    methods: ClassVar = {
        "NFSIC": _independence("nfsic", "chi_square"),
        "NFSIC, learnt": _independence(NFSIC(n_locations=5, learn=0.5), "chi_square"),
        "RFF-HSIC": _independence("hsic_fourier", "spectral"),
        "Nyström-HSIC": _independence("hsic_nystroem", "spectral"),
        "HSIC": _independence("hsic_u", "gamma"),
        "RDC": _independence("rdc", "permutation"),
        "dCov": _independence("dcov", "pearson"),
    }
    pictures = (Curves("power.png", tuple(methods), x="n", panels="problem"),)


def right(rng: np.random.Generator, n: int) -> Floats:
    return rng.standard_normal((n, DIMS))


def variance(rng: np.random.Generator, n: int) -> Floats:
    return right(rng, n) * np.array([VARIANCE**0.5, *[1.0] * (DIMS - 1)])


def laplace(rng: np.random.Generator, n: int) -> Floats:
    return rng.laplace(0, 2**-0.5, (n, DIMS))


def mixture(rng: np.random.Generator, n: int) -> Floats:
    """Draw of two components, apart along the first coordinate, with covariance I in all."""
    points = right(rng, n)
    sides = _SHIFT * rng.choice([-1.0, 1.0], n)
    points[:, 0] = sides + (1 - _SHIFT**2) ** 0.5 * points[:, 0]
    return points


def _fit(statistic: Any) -> _Test:  # noqa: ANN401 - a name or an instance
    options: dict[str, Any] = {"statistic": statistic, "n_draws": 199}
    return lambda points, seed: fit_test(points, NORMAL, seed=seed, **options).p_value


class GoodnessOfFit(PowerOverSizes):
    name = "goodness-of-fit"
    title = "Tests of goodness of fit"
    problems: ClassVar = {
        "other variance": variance,
        "Laplace": laplace,
        "mixture": mixture,
        "the distribution itself": right,
    }
    methods: ClassVar = {
        "KSD": _fit("ksd"),
        "FSSD": _fit("fssd"),
        "FSSD, learnt": _fit(FSSD(learn=0.3)),
    }
    pictures = (Curves("power.png", tuple(methods), x="n", panels="problem"),)
