"""A bandwidth per coordinate, by the gradient of a test's power (ARD; Sutherland 2016, ch. 6).

The bandwidths σ_k of a Gaussian kernel exp(−½ Σ_k Δ_k² / σ_k²) maximise t, the ratio of MMD_u² to
its standard error, on units that the test does not use. Coordinates that do not differ get large
bandwidths and no longer count. The importance of a coordinate is the part of t that is lost without
it, on the units that are tested.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from ...core.arrays import Floats, Integers
from ..samples.row_sources import ArrayRows
from .comparison import TwoSamples

STARTS = (
    1.0,
    0.3,
    0.1,
)  # times the median distance: a fine difference is no slope of a wide kernel
# Ratio of a bandwidth to the standard deviation of its coordinate, and its inverse.
MAX_WIDTH_RATIO = 100.0
_MAX_STEPS = 60
_MIN_KERNEL_VARIANCE = 1e-24  # a variance: kernels so narrow that no row sees another have none
_MAX_COORDINATES = 16  # coordinates with the narrowest kernels: the others are left out
_MAX_NAMED = 3  # coordinates in the report's line


def choose_widths(samples: TwoSamples) -> tuple[Floats, float]:
    """Return the bandwidth of each coordinate, shape (d,), and the t that they reach.

    Parameters
    ----------
    samples : TwoSamples
        Samples that the test does not use. The time is quadratic in their rows.
    """
    rows = samples.rows
    spread = spread_of(rows)
    scaled = (rows - rows.mean(axis=0)) / spread
    distances = cdist(scaled, scaled, "sqeuclidean")
    median = float(np.median(distances[distances > 0])) ** 0.5

    def loss(logs: Floats) -> tuple[float, Floats]:
        value, slope = power_slopes(samples, scaled, logs)
        return -value, -slope

    reach, best = np.log(MAX_WIDTH_RATIO), None
    for start in STARTS:
        begin = np.full(scaled.shape[1], np.log(start * median))
        optimum: Any = minimize(
            loss, begin, jac=True, method="L-BFGS-B", bounds=[(-reach, reach)] * len(begin),
            options={"maxiter": _MAX_STEPS},
        )  # fmt: skip
        if best is None or optimum.fun < best.fun:
            best = optimum
    assert best is not None
    return np.exp(best.x) * spread, float(-best.fun)


def power_slopes(samples: TwoSamples, rows: Floats, logs: Floats) -> tuple[float, Floats]:
    """Return t and its gradient in the logarithms of the bandwidths.

    Parameters
    ----------
    rows : shape (n, d)
    logs : shape (d,)
    """
    scaled = rows / np.exp(logs)
    gram = np.exp(-0.5 * cdist(scaled, scaled, "sqeuclidean"))
    share, pairs = _shares(samples)
    mmd = float(np.vdot(pairs, gram))
    residuals = _residuals(samples, gram @ share)
    variance = 4 * float(residuals @ residuals) + _MIN_KERNEL_VARIANCE
    error = variance**0.5
    # of the variance in each row's witness: residuals are linear in the sums of units
    of_rows = 8 * _transposed(samples, residuals)[samples.units]
    slopes = pairs / error - mmd / (2 * error * variance) * np.outer(of_rows, share)
    slopes *= gram
    slopes += slopes.T
    total = slopes.sum(axis=1)
    products = np.einsum("ik,ik->k", scaled, slopes @ scaled)
    return mmd / error, (total @ scaled**2 - products).astype(np.float64)


def lost_without(samples: TwoSamples, coordinates: Integers) -> Floats:
    """Return the fraction of t that is lost without each coordinate, for bandwidths of 1."""
    rows = samples.rows
    distances = cdist(rows, rows, "sqeuclidean")
    share, pairs = _shares(samples)

    def power(squares: Floats) -> float:
        gram = np.exp(-0.5 * squares)
        residuals = _residuals(samples, gram @ share)
        error: float = (4 * float(residuals @ residuals) + _MIN_KERNEL_VARIANCE) ** 0.5
        return float(np.vdot(pairs, gram)) / error

    whole = power(distances)
    if whole <= 0:
        return np.zeros(len(coordinates))
    without = [
        power(distances - cdist(rows[:, [k]], rows[:, [k]], "sqeuclidean")) for k in coordinates
    ]
    return 1 - np.array(without) / whole


def _shares(samples: TwoSamples) -> tuple[Floats, Floats]:
    """Return the weights of rows in the witness, and of pairs of rows in MMD_u²."""
    m, n = len(samples.first), len(samples.second)
    share = np.repeat([1 / m, -1 / n], [m, n])
    pairs = np.outer(share, share)
    # 1 / m(m − 1) for 1 / m² within a sample; pairs of a row with itself are left out
    pairs[:m, :m] *= m / (m - 1)
    pairs[m:, m:] *= n / (n - 1)
    np.fill_diagonal(pairs, 0.0)
    return share, pairs


def _residuals(samples: TwoSamples, witness: Floats) -> Floats:
    sums = np.bincount(samples.units, witness).astype(np.float64)
    return np.concatenate([residuals[:, 0] for residuals in samples.residuals(sums[:, None])])


def _transposed(samples: TwoSamples, residuals: Floats) -> Floats:
    """Apply the transpose of `TwoSamples.residuals` to a number per unit."""
    k, sizes = samples.first.n_units, samples.unit_sizes.astype(np.float64)
    parts = []
    for values, s in ((residuals[:k], sizes[:k]), (residuals[k:], sizes[k:])):
        factor = (len(s) / (len(s) - 1)) ** 0.5 / s.sum()
        parts.append(factor * (values - float(values @ s) / s.sum()))
    return np.concatenate(parts)


def spread_of(rows: Floats) -> Floats:
    """Return the standard deviation of each coordinate; 1 for a constant coordinate."""
    spread = rows.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def in_widths(samples: TwoSamples, widths: Floats) -> TwoSamples:
    """Return the samples with each coordinate divided by its bandwidth."""
    first, second = (
        replace(sample, data=ArrayRows(sample.rows / widths))
        for sample in (samples.first, samples.second)
    )
    return replace(samples, first=first, second=second)


def coordinate_details(widths: Floats, spread: Floats, tested: TwoSamples) -> dict[str, Any]:
    """Return which coordinates differ, for the report and its figure.

    Parameters
    ----------
    tested : TwoSamples
        Samples that the bandwidths were not chosen on, divided by the bandwidths.
    """
    seen = (spread / widths) ** 2
    order = np.argsort(-seen, kind="stable")[:_MAX_COORDINATES]
    lost = np.zeros(len(widths))
    lost[order] = lost_without(tested, order)
    named = [k for k in np.argsort(-lost, kind="stable")[:_MAX_NAMED] if lost[k] > 0]
    names = tested.first.names
    differing = [f"{names[k] if names else k}: {lost[k]:.0%}" for k in named]
    coordinates: dict[str, Any] = {"bandwidth": widths.tolist(), "lost_without": lost.tolist()}
    if names:
        coordinates["names"] = list(names)
    return {"coordinates_that_differ": ", ".join(differing) or "none", "coordinates": coordinates}
