"""Projection coefficients of bags by finufft, and directly, beside the projection kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, ProjectionEmbedding

from ..terminal import Callback
from .peers_regression import bag_features
from .scaling_measures import one_core
from .timing import in_turn, timed_in_turn
from .two_sample import one_thread

SETTINGS = {"upsampfac 2": (2.0, 1e-6), "upsampfac 1.25": (1.25, 1e-4)}
"""Of finufft: factor and tolerance; the least tolerances it has in float32 without a warning."""
DIRECT_ROWS = 2048
DIRECT_BAGS = 2

Array = NDArray[Any]


def finufft_coefficients(bags: Bags, n_per_dim: int, setting: str) -> Array:
    """Cosine coefficients of bags in [0, 1]^d, shape (n_bags, n_per_dim^d), float32.

    One type-1 transform a bag, planned once for all: Σ_j exp(i k πx_j) for |k| < n_per_dim in
    each dimension. A product of cosines is the mean of real parts over the signs of k.
    """
    import finufft

    factor, tolerance = SETTINGS[setting]
    modes = (2 * n_per_dim - 1,) * bags.n_dims
    plan = finufft.Plan(
        1, modes, eps=tolerance, isign=1, dtype="complex64", nthreads=1, upsampfac=factor
    )
    angles = np.ascontiguousarray((bags.points * np.float32(np.pi)).T)
    strengths = np.ones(int(bags.sizes.max()), np.complex64)
    spectra = np.empty((len(bags), *modes), np.complex64)
    for i, (start, stop) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
        plan.setpts(*angles[:, start:stop])
        plan.execute(strengths[: stop - start], out=spectra[i])
    folded = fold(spectra, n_per_dim)
    folded /= bags.sizes[:, None]
    return folded


def fold(spectra: Array, n_per_dim: int) -> Array:
    """Sums of orthonormal cosines' products, shape (n_bags, n_per_dim^d), from Fourier sums.

    Parameters
    ----------
    spectra : complex64, shape (n_bags, 2 n_per_dim − 1, …)
        Wave numbers from 1 − n_per_dim in each dimension.
    """
    values = spectra.real
    middle = n_per_dim - 1
    scale = np.where(np.arange(n_per_dim) == 0, 0.5, np.sqrt(0.5)).astype(np.float32)
    for axis in range(1, spectra.ndim):
        values = np.moveaxis(values, axis, -1)
        values = (values[..., middle:] + values[..., middle::-1]) * scale
        values = np.moveaxis(values, -1, axis)
    return values.reshape(len(spectra), -1)


def direct_coefficients(points: Array, n_per_dim: int) -> Array:
    """Those of one bag in double precision, by numpy's cosines."""
    sums = np.zeros(n_per_dim ** points.shape[1])
    for start in range(0, len(points), DIRECT_ROWS):
        part = points[start : start + DIRECT_ROWS].astype(np.float64)
        sums += len(part) * bag_features(part, n_per_dim)
    return sums / len(points)


def measure_projection(params: Any, seed: int, progress: Callback) -> dict[str, Any]:
    """Seconds a bag on one thread, in turn, and the largest errors of coefficients."""
    n, d, n_bags = params["n_points"], params["d"], params["n_bags"]
    points = np.random.default_rng([seed, n, d]).random((n * n_bags, d), dtype=np.float32)
    bags = Bags(points, n * np.arange(n_bags + 1))
    sizes = []
    with one_core(), one_thread():
        for done, n_per_dim in enumerate(params["n_per_dim"], 1):
            sizes.append(_size(bags, n_per_dim, params["n_rounds"]))
            progress(done, len(params["n_per_dim"]))
    return {"sizes": sizes}


def _size(bags: Bags, n_per_dim: int, n_rounds: int) -> dict[str, Any]:
    embedding = ProjectionEmbedding(n_per_dim=n_per_dim, box=[(0, 1)] * bags.n_dims).fit(bags)
    setting = _quicker(bags, n_per_dim)
    calls: dict[str, Callable[[], Array]] = {
        "ours": lambda: embedding.transform(bags),
        "peer": lambda: finufft_coefficients(bags, n_per_dim, setting),
    }
    calls["ours"]()
    rounds = in_turn(calls, n_rounds)
    found = rounds.compared("ours", "peer")
    n_direct = min(DIRECT_BAGS, len(bags))
    truth = np.stack([direct_coefficients(bags[i], n_per_dim) for i in range(n_direct)])
    return {
        **found,
        "ours": found["ours"] / len(bags),
        "peer": found["peer"] / len(bags),
        "s": n_per_dim**bags.n_dims,
        "setting": setting,
        "quality": np.abs(rounds.last["ours"][:n_direct] - truth).max(),
        "peer_quality": np.abs(rounds.last["peer"][:n_direct] - truth).max(),
    }


def _quicker(bags: Bags, n_per_dim: int) -> str:
    """finufft's better setting for these bags, which it does not always choose by itself."""

    def call(setting: str) -> Callable[[], Array]:
        return lambda: finufft_coefficients(bags, n_per_dim, setting)

    seconds = timed_in_turn({setting: call(setting) for setting in SETTINGS}, 1)
    return min(seconds, key=lambda setting: seconds[setting])
