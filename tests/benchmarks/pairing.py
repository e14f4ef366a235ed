"""Timing alternatives in pairs: A B A B …, so that a machine's drift hits both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One comparison: the medians in seconds and the ratio pair by pair."""

    name: str
    ours: float
    other: float
    ratio: float
    low: float
    high: float
    target: str


def pair(
    name: str,
    ours: Callable[[], object],
    other: Callable[[], object],
    *,
    repeats: int = 5,
    target: str = "",
    floor: bool = False,
) -> Row:
    """Time both in turn after one warm-up each.

    The ratio is other / ours (how many times faster we are), or ours / other when ``other`` is
    a floor that we can only approach.
    """
    ours(), other()
    a, b = [], []
    for _ in range(repeats):
        a.append(seconds(ours))
        b.append(seconds(other))
    ratios = [x / y if floor else y / x for x, y in zip(a, b, strict=True)]
    return Row(
        name,
        statistics.median(a),
        statistics.median(b),
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        target,
    )


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
