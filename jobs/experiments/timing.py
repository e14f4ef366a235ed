"""Times that can be compared on a machine that is not alone: in turn, and their medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls


def timed_in_turn(calls: Mapping[str, Callable[[], Any]], n_rounds: int) -> dict[str, float]:
    """Median seconds of each call, over rounds in which each is made once, after one unmeasured."""
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(n_rounds):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in seconds.items()}


def exponent(sizes: NDArray[np.float64], seconds: NDArray[np.float64]) -> float:
    """b of the power law c · size^b that fits best, in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def linear_growth(sizes: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[float, float]:
    """(a, b) of the line a + b · size, a, b ≥ 0, of least relative error."""
    rows = np.column_stack([1 / seconds, sizes / seconds])
    (a, b), _ = nnls(rows, np.ones(len(sizes)))
    return float(a), float(b)


def timed_once(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of each call, made once: where it takes so long that beginnings do not matter."""
    seconds = {}
    for name, call in calls.items():
        begun = time.perf_counter()
        call()
        seconds[name] = time.perf_counter() - begun
    return seconds
