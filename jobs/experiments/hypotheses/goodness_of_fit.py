"""`GoodnessOfFit`: how often KSD and FSSD notice that points are not of the tested distribution.

The points have another variance, or are of a Laplace distribution with the same moments, or of a
mixture whose components are apart, or of the distribution itself (003; Jitkrittum et al. 2017).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import FSSD, MixtureScore, fit_test

from ..kit.plots import Curves
from .power_over_sizes import PowerOverSizes, Test

DIMS = 3
NORMAL = MixtureScore(np.zeros(DIMS))
VARIANCE = 1.3  # of the first coordinate
_SHIFT = 0.6  # of both components, each to its side; the covariance stays I


def right(rng: np.random.Generator, n: int) -> Floats:
    """Draw of the distribution itself."""
    return rng.standard_normal((n, DIMS))


def variance(rng: np.random.Generator, n: int) -> Floats:
    """Draw with another variance of one coordinate."""
    wider: Floats = right(rng, n) * np.array([VARIANCE**0.5, *[1.0] * (DIMS - 1)])
    return wider


def laplace(rng: np.random.Generator, n: int) -> Floats:
    """Draw Laplace numbers of variance 1."""
    return rng.laplace(0, 2**-0.5, (n, DIMS))


def mixture(rng: np.random.Generator, n: int) -> Floats:
    """Draw of two components, apart along the first coordinate, with covariance I in all."""
    points = right(rng, n)
    sides = _SHIFT * rng.choice([-1.0, 1.0], n)
    points[:, 0] = sides + (1 - _SHIFT**2) ** 0.5 * points[:, 0]
    return points


def _test(statistic: Any) -> Test:  # noqa: ANN401 - a name or an instance
    def p_value(points: Floats, seed: int) -> float:
        return fit_test(points, NORMAL, statistic=statistic, n_draws=199, seed=seed).p_value

    return p_value


class GoodnessOfFit(PowerOverSizes):
    """Rejection rates of tests of fit, over numbers of points."""

    name = "goodness-of-fit"
    title = "Tests of goodness of fit"
    source = "003"
    problems: ClassVar = {
        "other variance": variance,
        "Laplace": laplace,
        "mixture": mixture,
        "the distribution itself": right,
    }
    methods: ClassVar = {
        "KSD": _test("ksd"),
        "FSSD": _test("fssd"),
        "FSSD, learnt": _test(FSSD(learn=0.3)),
    }
    pictures = (Curves(file="power.png", x="n", y=tuple(methods), panels="problem"),)
