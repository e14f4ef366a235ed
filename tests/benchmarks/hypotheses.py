"""Hypothesis tests: fast ones against those of all pairs, and ours against hyppo's and SciPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from bagbasis.hypotheses import FastfoodMMD, FourierMMD, independence_test, two_sample_test
from bagbasis.jobs.experiments.timing import in_turn

from .drift_peers import drift_peers
from .pairing import Row, pair

N_DIMS, N_FREQUENCIES, N_PERMUTATIONS = 16, 1024, 99
SIZES = 10_000, 100_000  # points of each sample
LARGEST = 1_000_000  # of the fast ones once, for the slope beyond what every test takes
N_OF_PEERS, N_OF_MGC = 500, 100  # rows in all: of two samples half of these each


def hypotheses() -> Iterator[Row]:
    """P-values in double; a gamma or a χ² approximation for each, and 99 permutations."""
    yield from drift_peers()
    yield from _fast()
    yield from _two_samples()
    yield from _dependence()


def _fast() -> Iterator[Row]:
    """Compare at both sizes with all pairs of the smaller one: these take time ∝ N² exactly."""
    rng, calls = np.random.default_rng(0), {}
    kinds = {kind.name: kind(N_FREQUENCIES) for kind in (FourierMMD, FastfoodMMD)}
    for n in SIZES:
        X, Y = rng.standard_normal((n, N_DIMS)), 0.02 + rng.standard_normal((n, N_DIMS))
        calls |= {(name, n): _ours(X, Y, kind, "gamma") for name, kind in kinds.items()}
        if n == SIZES[0]:
            calls["mmd_u", n] = _ours(X, Y, "mmd_u", "gamma")
            for call in calls.values():
                call()  # once, not timed
    rounds = in_turn(calls, 3)
    for name, n in product(kinds, SIZES):
        result, times = rounds.compared((name, n), ("mmd_u", SIZES[0])), (n / SIZES[0]) ** 2
        taken = "" if times == 1 else f" (taken at {SIZES[0]:,}, × {times:.0f})"
        title = f"{name}, L = {N_FREQUENCIES:,} / MMD² of all pairs{taken}, N = {n:,}, d = {N_DIMS}"
        ratios = (times * result[key] for key in ("peer", "ratio", "low", "high"))
        yield Row(title, result["ours"], *ratios, "")
    X, Y = rng.standard_normal((LARGEST, N_DIMS)), 0.02 + rng.standard_normal((LARGEST, N_DIMS))
    largest = {(name, n): call for (name, n), call in calls.items() if n == SIZES[1]}
    largest |= {(name, LARGEST): _ours(X, Y, kind, "gamma") for name, kind in kinds.items()}
    slopes = (rounds, *SIZES), (in_turn(largest, 1), SIZES[1], LARGEST)
    for name, (of, n, larger) in product(kinds, slopes):
        result = of.compared((name, n), (name, larger))
        title = f"{name}: time at N = {larger:,} / at {n:,}"
        row = (result[key] for key in ("ours", "peer", "ratio", "low", "high"))
        yield Row(title, *row, "10 is linear")


def _two_samples() -> Iterator[Row]:
    rng = np.random.default_rng(1)
    X, Y = (rng.standard_normal((N_OF_PEERS // 2, N_DIMS)) for _ in range(2))
    ksample: Any = import_module("hyppo.ksample")
    mmd = partial(ksample.MMD, "gaussian", gamma=0.5 / N_DIMS)
    x, y = X[:, 0], Y[:, 0]
    yield from _beside("MMD²", lambda null: _ours(X, Y, "mmd_b", null), mmd, X, Y)
    yield from _beside(
        "energy distance", lambda null: _ours(X, Y, "energy", null), ksample.Energy, X, Y
    )
    yield pair(
        f"energy distance with a permutation / scipy's without, N = {len(x):,}, d = 1",
        lambda: two_sample_test(x, y, statistic="energy", n_permutations=1),
        lambda: stats.energy_distance(x, y),
    )


def _dependence() -> Iterator[Row]:
    rng = np.random.default_rng(2)
    X, Y = (rng.standard_normal((N_OF_PEERS, N_DIMS)) for _ in range(2))
    independence: Any = import_module("hyppo.independence")

    def ours(statistic: str) -> Callable[[str], Callable[[], object]]:
        return lambda null: (
            lambda: independence_test(
                X, Y, statistic=statistic, null=null, n_permutations=N_PERMUTATIONS
            )
        )

    hsic = partial(independence.Hsic, gamma=0.5 / N_DIMS)
    yield from _beside("HSIC", ours("hsic_b"), hsic, X, Y)
    yield from _beside("distance covariance", ours("dcov"), independence.Dcorr, X, Y, "pearson")
    yield pair(
        f"distance covariance / scipy's multiscale_graphcorr, N = {N_OF_MGC:,}, "
        f"d = {N_DIMS}, {N_PERMUTATIONS} permutations",
        lambda: independence_test(
            X[:N_OF_MGC], Y[:N_OF_MGC], statistic="dcov", n_permutations=N_PERMUTATIONS
        ),
        lambda: stats.multiscale_graphcorr(
            X[:N_OF_MGC], Y[:N_OF_MGC], reps=N_PERMUTATIONS, random_state=0
        ),
        repeats=2,
    )


def _ours(X: np.ndarray, Y: np.ndarray, statistic: object, null: str) -> Callable[[], object]:
    return lambda: two_sample_test(
        X, Y, statistic=statistic, bandwidth=None if statistic == "energy" else N_DIMS**0.5,
        null=null, n_permutations=N_PERMUTATIONS,
    )  # fmt: skip


def _beside(
    name: str, ours: Callable[[str], Callable[[], object]], make: Any, X: np.ndarray, Y: np.ndarray,
    null: str = "gamma",
) -> Iterator[Row]:  # fmt: skip
    """Yield a row with each kind of null; the peer is made anew, as a test changes it."""
    title = f"{name} / hyppo, N = {len(X):,}, d = {N_DIMS}"
    yield pair(
        f"{title}, {N_PERMUTATIONS} permutations",
        ours("permutation"),
        lambda: make().test(X, Y, reps=N_PERMUTATIONS, workers=1, auto=False),
        repeats=2,
    )
    yield pair(f"{title}, approximate null", ours(null), lambda: make().test(X, Y, auto=True))
