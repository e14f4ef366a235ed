"""Times that can be compared on a shared machine: calls in turn, and their medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from bagbasis.execution.worker_threads import use_cores


@dataclass(frozen=True)
class Rounds:
    """Calls that were made in turn: seconds of each round by their names, and the last results."""

    seconds: Mapping[str, list[float]]
    last: Mapping[str, Any]

    def compared(self, ours: str, peer: str) -> dict[str, float]:
        """Return medians of both, and of peer / ours of a round, which other work slows alike."""
        pairs = zip(self.seconds[ours], self.seconds[peer], strict=True)
        ratios = [theirs / our for our, theirs in pairs]
        return {
            "ours": statistics.median(self.seconds[ours]),
            "peer": statistics.median(self.seconds[peer]),
            "ratio": statistics.median(ratios),
            "low": min(ratios),
            "high": max(ratios),
        }


def timed(call: Callable[..., Any], *args: object) -> tuple[Any, float]:
    """Return what a call returns, and its seconds."""
    begun = time.perf_counter()
    return call(*args), time.perf_counter() - begun


def in_turn(calls: Mapping[str, Callable[[], Any]], n_rounds: int) -> Rounds:
    """Make each call once per round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    last: dict[str, Any] = {}
    for _ in range(n_rounds):
        for name, call in calls.items():
            last.pop(name, None)  # not in memory together with the next one
            last[name], took = timed(call)
            seconds[name].append(took)
    return Rounds(seconds, last)


def timed_in_turn(calls: Mapping[str, Callable[[], Any]], n_rounds: int) -> dict[str, float]:
    """Return median seconds of each call over rounds, after one that does not count."""
    for call in calls.values():
        call()
    seconds = in_turn(calls, n_rounds).seconds
    return {name: statistics.median(values) for name, values in seconds.items()}


def least_in_turn(calls: Mapping[str, Callable[[], Any]], n_rounds: int) -> dict[str, float]:
    """Return the least time of each call over rounds; in each it is made twice and timed once.

    Calls of microseconds on all cores take many times as long when others want the cores.
    """
    rounds = [timed_in_turn(calls, 1) for _ in range(n_rounds)]
    return {name: min(each[name] for each in rounds) for name in calls}


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and kernels to one thread, so that work is timed and not thread sharing."""
    with threadpool_limits(1), use_cores(1):
        yield


def timed_once(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Return seconds of each call, made once, because it takes long and its start hardly counts."""
    return {name: once for name, [once] in in_turn(calls, 1).seconds.items()}
