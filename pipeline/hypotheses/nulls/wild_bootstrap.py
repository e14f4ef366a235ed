"""The wild bootstrap: null distributions for series, by random weights with autocorrelation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import chdtrc, chdtri

from ...core.arrays import Floats, Integers
from .distributions import Null, permutation_null
from .draws import generator_of

WILD = "wild_bootstrap"
_MIN_LENGTH = 0.1  # correlation length below which neighbours are independent


def wild_signs(n: int, n_draws: int, correlation_length: float, seed: int) -> Floats:
    """Draw signs with correlations e^{−lag / correlation_length}, shape (n_draws, n).

    Parameters
    ----------
    correlation_length : float ≥ 0
        Correlation length of the series, in points; 0 for independent points.
    """
    rng = generator_of(seed, "weights")
    stay = 0.5 if correlation_length == 0 else 0.5 + 0.5 * np.exp(-1 / correlation_length)
    flips = rng.random((n_draws, n)) >= stay
    flips[:, 0] = rng.random(n_draws) < 0.5
    return np.where(np.cumsum(flips, axis=1) % 2, -1.0, 1.0)


def wild_waves(n: int, n_draws: int, correlation_length: float, seed: int) -> Floats:
    """Draw normal weights with correlations e^{−lag² / 2 correlation_length²}, shape (n_draws, n).

    At short lags these correlations fall with the square of the lag. Weighted sums of a series
    therefore underestimate its variance less than with signs (Shao 2010): by 2 % instead of 12 %
    for a series with correlations e^{−7 lag / correlation_length}.
    """
    rng = generator_of(seed, "weights")
    correlation_length = _bounded(correlation_length, n)
    reach = int(4 * correlation_length) + 1  # e^−16 is negligible
    taps = np.exp(-((np.arange(-reach, reach + 1) / correlation_length) ** 2))
    noise = rng.standard_normal((n_draws, n + 2 * reach))
    waves: Floats = fftconvolve(noise, taps[None] / np.linalg.norm(taps), "valid", axes=1)
    return waves


def centred_variance(sizes: Integers, correlation_length: float) -> float:
    """Return the expected variance of `wild_waves` about their weighted mean, from 0 to 1.

    Parameters
    ----------
    sizes : shape (n,)
        Number of rows of each unit, which is the unit's weight in the mean.
    """
    n, rows = len(sizes), sizes.astype(np.float64)
    lags = np.arange(1 - n, n)
    pairs = fftconvolve(rows, rows[::-1])  # pairs of rows at each lag of their units
    unlike = -np.expm1(-((lags / _bounded(correlation_length, n)) ** 2) / 2)
    return float(pairs @ unlike) / float(rows.sum()) ** 2


def wild_degrees(n: int, correlation_length: float) -> float:
    """Return the degrees of freedom, at least 1, of the variance that `wild_waves` give."""
    lags = np.arange(1 - n, n)
    length = max(_MIN_LENGTH, correlation_length)
    return max(1.0, n / float(np.exp(-((lags / length) ** 2)).sum()) - 1)


def wild_factors(n_draws: int, degrees: float, seed: int) -> Floats:
    """Draw factors (degrees / χ²)^½: with an estimated variance, χ² becomes F."""
    return (degrees / generator_of(seed, "weights").chisquare(degrees, n_draws)) ** 0.5


def spread_squares(values: Floats, degrees: float, seed: int) -> Floats:
    """Return draws of Σ λ z² that also vary by the estimation error of the variances λ.

    With a single λ a draw becomes F-distributed. A sum Σ λ of several variances is estimated with
    more degrees of freedom: ``degrees`` times (Σ λ)² / Σ λ², which is computed from the mean and
    the variance of the draws. All columns of a draw have the same quantile of their χ².

    Parameters
    ----------
    values : shape (n_draws, K)
        Draws of Σ λ z², with z² ~ χ²_1.
    degrees : float
        Degrees of freedom of one variance.

    Returns
    -------
    shape (n_draws, K)
    """
    means, variances = values.mean(axis=0), values.var(axis=0)
    least = np.finfo(float).eps * means**2  # of a single draw there is no variance
    several = 2 * means**2 / np.maximum(variances, np.maximum(least, np.finfo(float).tiny))
    of_column = degrees * np.maximum(1.0, several)
    drawn = generator_of(seed, "weights").chisquare(degrees, len(values))
    above = chdtrc(degrees, drawn)
    spread: Floats = values * of_column / chdtri(of_column, above[:, None])
    return spread


def wild_null(observed: float, values: Floats, scale: float) -> Null:
    """Return the null distribution of bootstrapped statistics; see `permutation_null`."""
    return replace(permutation_null(observed, values, scale), name=WILD)


def _bounded(correlation_length: float, n: int) -> float:
    return max(_MIN_LENGTH, min(correlation_length, n))
