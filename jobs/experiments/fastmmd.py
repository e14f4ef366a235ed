"""`FastMMD`: MMD² from random features against all pairs of points, few pairs, and blocks of pairs.

002, §4.1-4.3 and 4.5, Figures 5 to 8. Points of `measure`: "error" over the number L of
frequencies, "spread" over bandwidths, "time" over the number of points N and of dimensions d,
"power" and "test" of tests of shuffled sets over L and over how much the two densities differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis.divergences import divergence_matrix
from bagbasis.embeddings import MeanMapEmbedding

from ..terminal import Callback
from .data.two_sample_data import blobs, ring, uniform
from .experiment import Experiment, Point, Result, Table
from .fastmmd_pictures import draw_errors, draw_spreads, draw_tests, draw_times
from .fastmmd_tables import error_table, rejection_tables, spread_table, time_tables
from .timing import timed_in_turn, timed_once
from .two_sample import (
    block_mmds,
    exact_mmd,
    exact_rejects,
    mean_test_rejects,
    one_thread,
    pair_mmds,
    random_feature_mmd,
    random_feature_rejects,
    splits,
)

Floats = NDArray[np.float64]

SIGMA, RATIO = 1.0, 4.0  # of the kernel, and ε of errors
ONCE = 10.0  # seconds: a call that is likely to take longer is made once
SECONDS_A_PAIR = 1e-9


@dataclass(frozen=True)
class Settings:
    """A scale.

    Attributes
    ----------
    n_points : int
        In each set, of errors and tests.
    n_frequencies, n_trials : tuple of int, int
        L and repeats of errors.
    bandwidths, n_spread : tuple of float, int
        σ and repeats of the spread; 200 points and L = 1,024 as in the paper.
    sizes : tuple of int
        N in each set, of times with d = 16 and L = 128.
    dims, size_of_dims, frequencies_of_dims : tuple of int, int, int
        d, and N and L of times over it.
    power_frequencies, power_ratio : tuple of int, float
        L, and the one ε, of tests over L.
    ratios, frequencies_of_ratios : tuple of float, int
        ε, and the one L, of tests over ε.
    n_tests, n_shuffles, n_null : int
        Repeats of a test, shuffles in each, and repeats where both sets have one density.
    """

    n_points: int
    n_frequencies: tuple[int, ...]
    n_trials: int
    bandwidths: tuple[float, ...]
    n_spread: int
    sizes: tuple[int, ...]
    dims: tuple[int, ...]
    size_of_dims: int
    frequencies_of_dims: int
    power_frequencies: tuple[int, ...]
    power_ratio: float
    ratios: tuple[float, ...]
    frequencies_of_ratios: int
    n_tests: int
    n_shuffles: int
    n_null: int


SETTINGS = {
    "small": Settings(
        1000, (16, 64, 256, 1024), 60, (0.1, 1.0, 10.0), 60, (1000, 4000, 16_000),
        (8, 64), 2000, 512, (4, 256), 8.0, (8.0,), 256, 25, 200, 100,
    ),
    "paper": Settings(
        1000, tuple(2**k for k in range(4, 14)), 300,
        tuple((10 ** (np.arange(-5, 11) / 5)).round(6).tolist()), 400,
        (1000, 3162, 10_000, 31_623, 100_000), (8, 32, 128, 512, 1024), 10_000, 8192,
        (1, 4, 16, 64, 256, 1024), 4.0, (1.5, 2.0, 3.0, 4.0, 6.0, 8.0), 256, 100, 300, 200,
    ),
}  # fmt: skip


def _time_point(over: str, n_points: int, d: int, n_frequencies: int) -> Point:
    """A point of `FastMMD` that measures times."""
    params = {"measure": "time", "over": over, "n_points": n_points, "d": d, "L": n_frequencies}
    return Point(f"time N {n_points} d {d}", params)


class FastMMD(Experiment[Settings]):
    """See the module."""

    name = "fastmmd"
    title = "Maximum mean discrepancy from random features"
    source = "002, §4"
    scales = SETTINGS

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"Errors: {s.n_points:,} points a set, {s.n_trials} draws of frequencies (the paper: "
            f"1,000 and 1,000). Times: N from {s.sizes[0]:,} to {s.sizes[-1]:,} with d = 16 (the "
            f"paper: 1,000 to 100,000), d from {s.dims[0]} to {s.dims[-1]:,} with "
            f"{s.size_of_dims:,} points (8 to 1,024, 10,000). Tests: {s.n_tests} data sets, "
            f"{s.n_shuffles} shuffles (100 and 1,000), ε up to {max(s.ratios):g} (3). The "
            "photographs of §4.4 are not to be had."
        )

    def points(self) -> list[Point]:
        s = self.settings
        errors = [
            Point(
                f"error L {n}",
                {"measure": "error", "L": n, "n_points": s.n_points, "n_trials": s.n_trials},
            )
            for n in s.n_frequencies
        ]
        spreads = [
            Point(f"spread sigma {b:g}", {"measure": "spread", "sigma": b, "n_trials": s.n_spread})
            for b in s.bandwidths
        ]
        times = [
            *(_time_point("points", n, 16, 128) for n in s.sizes),
            *(_time_point("dims", s.size_of_dims, d, s.frequencies_of_dims) for d in s.dims),
        ]
        tests = {
            "measure": "test", "n_points": s.n_points, "n_shuffles": s.n_shuffles,
            "n_tests": s.n_tests,
        }  # fmt: skip
        power = [
            Point(f"power L {n}", {**tests, "measure": "power", "L": n, "ratio": s.power_ratio})
            for n in s.power_frequencies
        ]
        null = {"ratio": 1.0, "L": s.frequencies_of_ratios, "n_tests": s.n_null}
        ratios = [
            Point("test ratio 1", {**tests, **null}),
            *(
                Point(f"test ratio {r:g}", {**tests, "L": s.frequencies_of_ratios, "ratio": r})
                for r in s.ratios
            ),
        ]
        return [*errors, *spreads, *times, *power, *ratios]

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        params = point.params
        measures = {
            "error": self._errors, "spread": self._spread, "time": self._times,
            "power": self._power, "test": self._tests,
        }  # fmt: skip
        with one_thread():
            return measures[params["measure"]](params, progress)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [
            error_table(results),
            spread_table(results),
            *time_tables(results),
            *rejection_tables(results),
        ]

    def draw(self, results: Sequence[Result]) -> list[Path]:
        return [
            draw_errors(self.out_dir / "errors.png", results),
            draw_spreads(self.out_dir / "spreads.png", results),
            draw_times(self.out_dir / "times.png", results),
            draw_tests(self.out_dir / "tests.png", results),
        ]

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *key])

    def _errors(self, params: Any, progress: Callback) -> dict[str, Any]:
        """Relative differences from the exact MMD² of one pair of sets."""
        rng = self._rng(0)
        X, Y = (blobs(rng, params["n_points"], ratio) for ratio in (1.0, RATIO))
        exact = np.array(exact_mmd(X, Y, SIGMA, "float64"))
        seeds = self._rng(2, params["L"]).integers(2**32, size=params["n_trials"])
        found = []
        for done, seed in enumerate(seeds.tolist(), 1):
            found.append(random_feature_mmd(X, Y, SIGMA, params["L"], seed))
            progress(done, len(seeds))
        relative = np.abs(np.array(found) - exact) / exact
        return {
            "biased": relative[:, 0].mean(),
            "unbiased": relative[:, 1].mean(),
            "exact_biased": exact[0],
            "exact_unbiased": exact[1],
        }

    def _spread(self, params: Any, progress: Callback) -> dict[str, Any]:
        """Means and standard deviations of unbiased MMD², over frequencies and over orders."""
        rng, n_trials, sigma = self._rng(3), params["n_trials"], params["sigma"]
        X, Y = ring(rng, 200)
        found: dict[str, list[float]] = {"random features": [], "linear": [], "B-test": []}
        for done in range(1, n_trials + 1):
            P, Q = rng.permutation(X), rng.permutation(Y)
            seed = int(rng.integers(2**32))
            found["random features"].append(random_feature_mmd(X, Y, sigma, 1024, seed)[1])
            found["linear"].append(float(pair_mmds(P, Q, sigma).mean()))
            found["B-test"].append(float(block_mmds(P, Q, sigma, 14).mean()))
            progress(done, n_trials)
        return {
            "exact": exact_mmd(X, Y, sigma, "float64")[1],
            **{name: [np.mean(v), np.std(v, ddof=1)] for name, v in found.items()},
        }

    def _times(self, params: Any, progress: Callback) -> dict[str, Any]:
        """Seconds of an MMD², on one thread."""
        n, d, n_frequencies = params["n_points"], params["d"], params["L"]
        X, Y = uniform(self._rng(4), n, d)
        box = [(0.0, 1.0)] * d
        embedding = MeanMapEmbedding(n_features=2 * n_frequencies, bandwidth=SIGMA, box=box)
        calls: dict[str, Callable[[], Any]] = {
            "random features": lambda: random_feature_mmd(X, Y, SIGMA, n_frequencies, 0),
            "linear": lambda: pair_mmds(X, Y, SIGMA),
            "B-test": lambda: block_mmds(X, Y, SIGMA, int(n**0.5)),
        }
        if params["over"] == "points":
            calls["mean map"] = lambda: embedding.fit_transform([X, Y])
        seconds = timed_in_turn(calls, 5 if n * d * n_frequencies < 2**32 else 1)
        progress(1, 2)
        exact = {"exact": lambda: exact_mmd(X, Y, SIGMA)}
        if n**2 * SECONDS_A_PAIR * max(2, d / 16) < ONCE:
            seconds |= timed_in_turn(exact, 3)
        else:
            seconds |= timed_once(exact)
        if params["over"] == "points" and n <= 10_000:
            seconds |= timed_once(
                {"exact, double": lambda: divergence_matrix([X], [Y], "mmd", bandwidth=SIGMA)}
            )
        progress(2, 2)
        return seconds

    def _power(self, params: Any, progress: Callback) -> dict[str, Any]:
        """Rejections of the test by random features alone."""
        return self._rejections(params, progress, ("random features",))

    def _tests(self, params: Any, progress: Callback) -> dict[str, Any]:
        """Rejections of all tests."""
        return self._rejections(params, progress, ("random features", "exact", "B-test", "linear"))

    def _rejections(
        self, params: Any, progress: Callback, methods: Sequence[str]
    ) -> dict[str, Any]:
        """How often each test finds a difference, over data sets; all see the same ones."""
        n, ratio, n_tests = params["n_points"], params["ratio"], params["n_tests"]
        shuffles = splits(n, params["n_shuffles"], self.seed)
        counts = dict.fromkeys(methods, 0)
        for done in range(n_tests):
            rng = self._rng(5, done, round(100 * ratio))
            X, Y = blobs(rng, n, 1.0), blobs(rng, n, ratio)
            tests = _tests_of(X, Y, params["L"], int(rng.integers(2**32)), shuffles)
            for method in methods:
                counts[method] += tests[method]()
            progress(done + 1, n_tests)
        return {method: count / n_tests for method, count in counts.items()}


def _tests_of(
    X: Floats, Y: Floats, n_frequencies: int, seed: int, shuffles: NDArray[np.float32]
) -> dict[str, Callable[[], bool]]:
    """Whether each test finds a difference of two sets, when it is asked."""
    block = int(len(X) ** 0.5)
    return {
        "random features": lambda: random_feature_rejects(
            X, Y, SIGMA, n_frequencies, seed, shuffles
        ),
        "exact": lambda: exact_rejects(X, Y, SIGMA, shuffles),
        "B-test": lambda: mean_test_rejects(block_mmds(X, Y, SIGMA, block)),
        "linear": lambda: mean_test_rejects(pair_mmds(X, Y, SIGMA)),
    }
