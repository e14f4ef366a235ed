"""Partition planning: pure functions from offsets, chunk length and a limit to bag ranges."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...core.arrays import Integers
from ...core.errors import ParameterError

Range = tuple[int, int]


def plan_partitions(
    offsets: Integers, chunk_rows: int, max_rows: int, cost: Integers | None = None
) -> list[Range]:
    """Cut bags into consecutive ranges of whole bags, of at most ``max_rows`` points each.

    The plan is greedy: each range is as long as the limit allows. If the second half of a range has
    a bag boundary that is also a chunk boundary, the range ends at the last such boundary, so that
    no chunk is read twice there. A bag larger than the limit is a range of its own.

    Parameters
    ----------
    offsets : int64, shape (n_bags + 1,)
        Strictly increasing rows in the stored points; need not start at 0.
    chunk_rows : int
        Rows of a stored chunk, > 0.
    max_rows : int
        Largest number of points of a range, > 0. With ``cost``, the largest cost of a range.
    cost : int64, shape (n_bags + 1,), optional
        Cost of all bags before each boundary, such as the number of points of bags and responses.
        It is strictly increasing. Default: ``offsets``.

    Returns
    -------
    list of (start, stop)
        Bag ranges, relative to ``offsets``; consecutive, none empty, covering all bags.
    """
    if chunk_rows < 1 or max_rows < 1:
        raise ParameterError("chunk_rows and max_rows must be at least 1")
    n_bags = len(offsets) - 1
    cost = offsets if cost is None else cost
    aligned = np.flatnonzero(offsets % chunk_rows == 0)
    ranges: list[Range] = []
    start = 0
    while start < n_bags:
        stop = int(np.searchsorted(cost, cost[start] + max_rows, side="right")) - 1
        stop = min(max(stop, start + 1), n_bags)
        if stop < n_bags:
            stop = _aligned_stop(cost, aligned, start, stop)
        ranges.append((start, stop))
        start = stop
    return ranges


def split_evenly(n_items: int, n_parts: int) -> list[Range]:
    """Return at most ``n_parts`` consecutive ranges, whose lengths differ by at most one."""
    n_parts = max(1, min(n_parts, n_items))
    ends = [n_items * i // n_parts for i in range(n_parts + 1)]
    return [(a, b) for a, b in pairwise(ends) if b > a]


def ranges_of(index: Integers) -> list[Range]:
    """Return ascending positions as ranges of consecutive positions."""
    parts = np.split(index, np.flatnonzero(np.diff(index) != 1) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


def sample_ranges(n_items: int, n_runs: int, run_length: int) -> list[Range]:
    """Return up to ``n_runs`` evenly spread, disjoint runs; everything if it is no larger.

    A sample of runs touches few chunks; a sample of single bags would touch one chunk per bag.
    """
    if n_items <= n_runs * run_length:
        return [(0, n_items)] if n_items else []
    starts = [(n_items - run_length) * i // max(1, n_runs - 1) for i in range(n_runs)]
    return [(start, start + run_length) for start in starts]


def _aligned_stop(cost: Integers, aligned: Integers, start: int, stop: int) -> int:
    """Find the last aligned boundary in the second half of the cost of ``start:stop``.

    If there is none, the end stays where it is.
    """
    last = int(np.searchsorted(aligned, stop, side="right")) - 1
    if last < 0 or aligned[last] <= start:
        return stop
    candidate = int(aligned[last])
    half = (cost[start] + cost[stop]) // 2
    return candidate if cost[candidate] >= half else stop
