"""The planner: invariants over random bags, and comparison with a loop over bags."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from bagbasis import ParameterError
from bagbasis.data.store.plan import plan_partitions, ranges_of, sample_ranges, split_evenly
from tests.oracles.ragged import partitions_by_loop

SIZES = st.lists(st.one_of(st.integers(1, 4), st.integers(1, 60)), max_size=60)
ROWS = st.integers(1, 64)
CHUNKS = st.one_of(st.integers(1, 10), ROWS)


def chained(ranges, n_items):
    """Whether the ranges are consecutive, not empty, and cover 0:n_items."""
    ends = [0, *(stop for _, stop in ranges)]
    return ends[-1] == n_items and all(
        a == end and b > a for (a, b), end in zip(ranges, ends, strict=False)
    )


@pytest.mark.long
@given(SIZES, st.integers(0, 100), CHUNKS, ROWS)
@example([4] * 10, 0, 8, 12)  # ends on chunks, one bag short of the limit
@example([4, 1, 4], 0, 4, 8)  # the chunk boundary is in the second half by a hair
def test_partitions(sizes, first, chunk_rows, max_rows):
    """Ranges are those of a loop over bags, follow on each other and hold every bag once.

    Only a single bag may be larger than the limit. A range that could take one more bag ends at a
    chunk boundary in its second half.
    """
    offsets = first + np.append(0, np.cumsum(np.array(sizes, dtype=np.int64)))
    ranges = plan_partitions(offsets, chunk_rows, max_rows)
    assert ranges == partitions_by_loop(sizes, first, chunk_rows, max_rows)
    assert chained(ranges, len(sizes))
    for start, stop in ranges:
        assert offsets[stop] - offsets[start] <= max_rows or stop == start + 1
        if stop < len(sizes) and offsets[stop + 1] - offsets[start] <= max_rows:
            assert offsets[stop] % chunk_rows == 0
            assert 2 * (offsets[stop] - offsets[start]) >= max_rows - max(sizes) - 1


@pytest.mark.parametrize(("chunk_rows", "max_rows"), [(0, 1), (1, 0), (-1, 5)])
def test_limits_below_one_are_refused(chunk_rows, max_rows):
    """A limit that no bag can satisfy is a ParameterError, not an endless loop."""
    with pytest.raises(ParameterError, match="at least 1"):
        plan_partitions(np.array([0, 1]), chunk_rows, max_rows)


@given(st.integers(0, 500), st.integers(1, 50))
def test_split_evenly(n_items, n_parts):
    """Parts cover everything, as many as were asked for, and differ by one item at most."""
    ranges = split_evenly(n_items, n_parts)
    assert chained(ranges, n_items)
    assert len(ranges) == min(n_parts, n_items)
    lengths = [stop - start for start, stop in ranges]
    assert not lengths or max(lengths) - min(lengths) <= 1


@given(st.integers(0, 500), st.integers(1, 20), st.integers(1, 40))
def test_sample_ranges(n_items, n_runs, run_length):
    """The sample is everything, or n_runs disjoint runs from the first item to the last."""
    ranges = sample_ranges(n_items, n_runs, run_length)
    if n_items <= n_runs * run_length:
        assert ranges == ([(0, n_items)] if n_items else [])
        return
    assert len(ranges) == n_runs
    assert all(stop - start == run_length for start, stop in ranges)
    assert all(a[1] <= b[0] for a, b in pairwise(ranges))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_items or n_runs == 1


@pytest.mark.long
@given(st.sets(st.integers(0, 60)))
def test_ranges_of_positions(positions):
    """The fewest ranges that hold the positions, and nothing else."""
    ranges = ranges_of(np.array(sorted(positions), np.int64))
    assert [i for start, stop in ranges for i in range(start, stop)] == sorted(positions)
    assert all(a[1] < b[0] for a, b in pairwise(ranges))
