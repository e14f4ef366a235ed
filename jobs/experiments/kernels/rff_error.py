"""`FeatureError`: the errors of paired and of phase features of a Gaussian kernel on an interval.

000, §3.5 and Figures 3.3 to 3.5. Errors f(x, y) = z(x)ᵀz(y) − k(x, y), σ = 1, over all pairs of
evenly spaced points. Paired features are [sin ωx, cos ωx], phase features √2 cos(ωx + b).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_limits

from bagbasis import RandomFourierFeatures
from bagbasis.core.arrays import Floats

from ..kit import Callback, Curves, Experiment, Measure, Params, counted

_N_POINTS, _WIDEST = 1_000, 5.0  # evenly spaced on [−5, 5], as in 000
RADII = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
RADIUS = 3.0  # b of the interval that 000 gives numbers for
AT_RADIUS = RADII.index(RADIUS)
_QUANTILES = np.linspace(0, 1, 101)  # of largest errors that are kept for Figure 3.5
FORMS = ("paired", "phase")


class FeatureError(Experiment):
    name = "rff-error"
    title = "Errors of random Fourier features"
    source = "000, §3.5"
    pictures = (Curves("features.png", "*.square", x="n_features", log="xy", label="E‖f‖²"),)

    def measures(self) -> list[Measure]:
        s = self.settings
        over, fixed = {"n_features": s.n_features}, {"n_repeats": s.n_repeats}
        return [Measure("", self._errors, "D {n_features}", over, fixed)]

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        n_features, n_repeats = p["n_features"], p["n_repeats"]
        seeds = np.random.SeedSequence([self.seed, n_features]).generate_state(n_repeats)
        errors = {"paired": paired_errors, "phase": phase_errors}
        by_form: dict[str, list[FeatureErrors]] = {form: [] for form in FORMS}
        with threadpool_limits(1):  # of products of so few rows more threads wait for each other
            for seed in counted(seeds.tolist(), progress):
                for form in FORMS:
                    by_form[form].append(errors[form](n_features, seed))
        return {form: _summary(by_form[form]) for form in FORMS}


class FeatureErrors(NamedTuple):
    """Errors of a draw: ‖f‖_∞ on [−b, b]² for each b in `RADII`; ‖f‖²_μ, μ uniform on [−3, 3]²."""

    largest: Floats
    square: float


def _summary(errors: Sequence[FeatureErrors]) -> dict[str, Any]:
    """Return means, their standard errors, and the quantiles of ‖f‖_∞ on [−3, 3]²."""
    largest = np.array([e.largest for e in errors])
    square = np.array([e.square for e in errors])
    within = largest[:, AT_RADIUS]
    root = len(errors) ** 0.5
    return {
        "largest": largest.mean(axis=0),
        "largest_error": within.std(ddof=1) / root,
        "square": square.mean(),
        "square_error": square.std(ddof=1) / root,
        "quantiles": np.quantile(within, _QUANTILES),
    }


class Grid(NamedTuple):
    """Points x_i of [−5, 5], x_i − x_0 and k(x_i, x_0), (n,) each, and those within each radius."""

    points: Floats
    differences: Floats
    kernel: Floats
    within: tuple[slice, ...]


@lru_cache(maxsize=1)
def grid() -> Grid:
    points = np.linspace(-_WIDEST, _WIDEST, _N_POINTS)
    differences = points - points[0]
    within = []
    for radius in RADII:
        inside = np.flatnonzero(np.abs(points) <= radius)
        within.append(slice(int(inside[0]), int(inside[-1]) + 1))
    return Grid(points, differences, np.exp(-0.5 * differences**2), tuple(within))


def paired_errors(n_features: int, seed: int) -> FeatureErrors:
    """Return errors of `RandomFourierFeatures`, functions of x − y: so one row says all."""
    g = grid()
    features = RandomFourierFeatures(n_features=n_features, scale=1.0, seed=seed)
    z = features.fit_transform(g.differences[:, None].astype(np.float32))
    f = np.abs((z @ z[0]).astype(np.float64) - g.kernel)
    largest = np.array([f[: within.stop - within.start].max() for within in g.within])
    within = g.within[AT_RADIUS]
    n = within.stop - within.start
    return FeatureErrors(largest, float(_pairs_at_distance(n) @ f[:n] ** 2))


def phase_errors(n_features: int, seed: int) -> FeatureErrors:
    """Return errors of `RBFSampler`: functions of x − y plus functions of x + y."""
    of_difference, of_sum = phase_sums(n_features, seed)
    gaps = of_difference - grid().kernel
    mirrored = np.concatenate([gaps[:0:-1], gaps])
    of_pairs = sliding_window_view(mirrored, _N_POINTS)[::-1]  # at |i − j|, as a view
    f = np.abs(of_pairs + sliding_window_view(of_sum, _N_POINTS))  # at i + j
    inside = [f[within, within] for within in grid().within]
    return FeatureErrors(
        np.array([part.max() for part in inside]), float((inside[AT_RADIUS] ** 2).mean())
    )


def phase_sums(n_features: int, seed: int) -> tuple[Floats, Floats]:
    """z(x)ᵀz(y) of `RBFSampler` as the sum of two functions, shapes (n,) and (2n − 1,).

    (2/D) Σ cos(ωx + b) cos(ωy + b) = (1/D) Σ cos ω(x − y) + (1/D) Σ cos(ω(x + y) + 2b); of x_i and
    x_j the values at |i − j| of the first and at i + j of the second.
    """
    points = grid().points
    sampler = RBFSampler(gamma=0.5, n_components=n_features, random_state=seed)
    sampler.fit(points[:, None])
    omega, phase = sampler.random_weights_[0], sampler.random_offset_
    step = float(points[1] - points[0])
    of_difference = sums_of_phases(omega, np.zeros_like(omega), step, _N_POINTS)
    of_sum = sums_of_phases(omega, 2 * (omega * points[0] + phase), step, 2 * _N_POINTS - 1)
    return of_difference / n_features, of_sum / n_features


def sums_of_phases(omega: Floats, phase: Floats, step: float, n: int) -> Floats:
    """Σ_j cos(phase_j + ω_j · step · m) for m = 0 … n − 1.

    With m = F c + f the sines and cosines of c and of f are made alone, and all sums are two
    products. In single precision, as the paired features are.
    """
    width = int(np.ceil(n**0.5))
    fine = np.outer(np.arange(width) * step, omega)
    coarse = phase + np.outer(np.arange(-(-n // width)) * width * step, omega)
    fine, coarse = fine.astype(np.float32), coarse.astype(np.float32)
    sums = np.cos(coarse) @ np.cos(fine).T - np.sin(coarse) @ np.sin(fine).T
    return sums.ravel()[:n].astype(np.float64)


def _pairs_at_distance(n: int) -> Floats:
    counts = 2.0 * (n - np.arange(n))
    counts[0] = n
    return counts / n**2
