"""MMD² of two sets of points by hyppo, beside ours from all pairs and from random features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from ..terminal import Callback
from .data.two_sample_data import blobs
from .scaling_measures import one_core
from .timing import in_turn
from .two_sample import exact_mmd, one_thread, random_feature_mmd

SIGMA, RATIO = 1.0, 4.0  # of the kernel, and of the second set's blobs

Floats = NDArray[np.float64]


def hyppo_statistic(X: Floats, Y: Floats) -> float:
    """`hyppo.ksample.MMD`, biased, of the kernel exp(−‖x − y‖² / 2σ²), without permutations."""
    from hyppo.ksample import MMD

    return float(MMD("gaussian", bias=True, gamma=1 / (2 * SIGMA**2)).statistic(X, Y))


def mmd_of_statistic(statistic: float, X: Floats, Y: Floats) -> float:
    """The biased MMD² in a value of `hyppo_statistic`.

    That is 2n²m²/N⁴ √ρ, N = n + m, with the correlation of centred kernel and labels
    ρ = (nm/N) MMD² / ‖HKH‖: hyppo multiplies it by the factor by which the covariance, which it
    does not give, would have to be divided.
    """
    n, m = len(X), len(Y)
    N = n + m
    points = np.concatenate([X, Y])
    kernel = rbf_kernel(points, gamma=1 / (2 * SIGMA**2))
    means = kernel.mean(axis=0)
    kernel -= means
    kernel -= means[:, None] - means.mean()
    correlation = (statistic * N**4 / (2 * n**2 * m**2)) ** 2
    return float(correlation * np.linalg.norm(kernel) * N / (n * m))


def measure_mmd(params: Any, seed: int, progress: Callback) -> dict[str, Any]:
    """Seconds on one thread, in turn, and relative differences from MMD² in double precision."""
    n = params["n_points"]
    rng = np.random.default_rng([seed, n])
    X, Y = blobs(rng, n, 1.0), blobs(rng, n, RATIO)
    calls: dict[str, Callable[[], float]] = {
        "all pairs": lambda: exact_mmd(X, Y, SIGMA)[0],
        "random features": lambda: random_feature_mmd(X, Y, SIGMA, params["L"], seed)[0],
        "hyppo": lambda: hyppo_statistic(X, Y),
    }
    with one_core(), one_thread():
        for call in calls.values():
            call()
        progress(1, 2)
        rounds = in_turn(calls, params["n_rounds"])
        truth = exact_mmd(X, Y, SIGMA, "float64")[0]
        theirs = mmd_of_statistic(rounds.last["hyppo"], X, Y)
    progress(2, 2)
    return {
        "mmd": truth,
        "statistic": rounds.last["hyppo"],
        **{
            name: {
                **rounds.compared(name, "hyppo"),
                "quality": abs(rounds.last[name] - truth) / truth,
                "peer_quality": abs(theirs - truth) / truth,
            }
            for name in ("all pairs", "random features")
        },
    }
