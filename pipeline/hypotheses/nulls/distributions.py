"""Null distributions of test statistics, and their p-values.

Each function returns a `Null` for an observed statistic; large values are evidence against the null
hypothesis. Distributions in closed form are kept as equally spaced quantiles, so that every null
distribution can be plotted and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ...core.arrays import Floats
from .draws import generator_of
from .permutation import p_values

N_QUANTILES = 999  # quantiles of a known distribution: enough for a histogram
# Relative to the largest weight of a mixture: smaller weights do not change a p-value.
_MIN_WEIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Null:
    """Null distribution of a statistic.

    Attributes
    ----------
    name : str
        Name of the method.
    p_value : float
        p-value of the observed statistic.
    values : float64, shape (n,), ascending
        Values or quantiles of the distribution.
    """

    name: str
    p_value: float
    values: Floats


def permutation_null(observed: float, permuted: Floats, scale: float = 1.0) -> Null:
    """Return the null distribution of permuted statistics, exact for any number of units.

    Parameters
    ----------
    observed : float
    permuted : shape (n_permutations,)
    scale : float
        Scale of the sums from which the statistic is computed: values that differ by 1e-12 of
        it are equal up to rounding.
    """
    p = float(p_values(observed / scale, permuted / scale))
    return Null("permutation", p, np.sort(permuted))


def mixture_null(
    observed: float, weights: Floats, n_draws: int, seed: int, shift: float = 0.0
) -> Null:
    """Return the null Σ_i w_i χ²_1 + shift, simulated (the "spectral" null).

    Parameters
    ----------
    weights : shape (k,)
        Weights, at least 0 up to rounding; negative weights are left out.
    shift : float
        Use −Σ w_i for unbiased statistics, whose mean is 0.
    """
    weights = weights[weights > _MIN_WEIGHT * max(0.0, float(weights.max(initial=0.0)))]
    generator = generator_of(seed, "simulation")
    values = generator.chisquare(1.0, (n_draws, len(weights))) @ weights + shift
    return Null("spectral", float(p_values(observed, values)), np.sort(values))


def gamma_null(observed: float, mean: float, variance: float, shift: float) -> Null:
    """Return the gamma distribution above ``shift`` with the given mean and variance."""
    above = max(mean - shift, np.finfo(float).tiny)
    return _of_distribution(
        "gamma", observed, stats.gamma(above**2 / variance, shift, variance / above)
    )


def pearson_null(observed: float, mean: float, variance: float, skewness: float) -> Null:
    """Return the Pearson type III distribution with the given first three moments."""
    return _of_distribution("pearson", observed, stats.pearson3(skewness, mean, variance**0.5))


def normal_null(observed: float, standard_error: float, degrees: float = np.inf) -> Null:
    """Return Student's t-distribution about 0, scaled; by default the normal distribution.

    Parameters
    ----------
    degrees : float > 0
        Degrees of freedom of the standard error.
    """
    return _of_distribution("normal", observed, stats.t(degrees, 0.0, standard_error))


def weighted_chi_square_null(
    observed: float, weights: Floats, degrees: float, scale: float = 1.0
) -> Null:
    """Return the distribution of a T² with a ridge: Σ w_j χ²_1 if there are many units.

    The sum is approximated by a multiple of χ² with the same mean and variance.

    Parameters
    ----------
    weights : shape (J,)
        w_j = σ_j / (σ_j + ridge) for the eigenvalues σ of the covariance; one is above 0.
    """
    share = float((weights**2).sum() / weights.sum())
    return chi_square_null(observed, float(weights.sum()) / share, degrees, share * scale)


def chi_square_null(observed: float, n_features: float, degrees: float, scale: float = 1.0) -> Null:
    """Return the distribution of ``scale`` times Hotelling's T²: a scaled F, χ² for many units.

    Parameters
    ----------
    n_features : float
        Degrees of freedom J of the χ².
    degrees : float ≥ J
        Degrees of freedom of the estimated covariance in T².
    """
    rest = degrees - n_features + 1
    distribution = stats.f(n_features, rest, scale=scale * degrees * n_features / rest)
    return _of_distribution("chi_square", observed, distribution)


def _of_distribution(name: str, observed: float, distribution: Any) -> Null:  # noqa: ANN401 - scipy has no types
    values = distribution.ppf((np.arange(N_QUANTILES) + 0.5) / N_QUANTILES)
    # no p-value is 0: tails below the smallest number are unknown
    return Null(name, max(float(distribution.sf(observed)), np.finfo(float).tiny), values)
