"""Timing alternatives in pairs: A B A B …, so that a machine's drift hits both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bagbasis.jobs.experiments.timing import in_turn


@dataclass(frozen=True)
class Row:
    """One comparison: the medians in seconds and the ratio pair by pair.

    The ratio is other / ours, or ours / other if ``is_of_first``.
    """

    name: str
    ours: float
    other: float
    ratio: float
    low: float
    high: float
    target: str
    is_of_first: bool = False


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
    rounds = in_turn({"ours": ours, "other": other}, repeats)
    result = rounds.compared("ours", "other")
    ratio, low, high = result["ratio"], result["low"], result["high"]
    if floor:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    return Row(name, result["ours"], result["peer"], ratio, low, high, target, floor)
