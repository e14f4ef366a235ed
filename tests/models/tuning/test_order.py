"""The order of the bags and the rungs: pure functions, checked by their invariants."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bagbasis import ParameterError
from bagbasis.models.tuning.order import (
    FIRST_RUNG_BAGS,
    RunOrder,
    first_rung,
    plan_rungs,
    run_order,
)


@given(st.integers(1, 3000), st.integers(1, 200), st.integers(0, 2**64 - 1))
def test_runs_hold_every_bag_once(n_bags, run_length, seed):
    """All blocks together are all bags, and a block holds the rows that its place says."""
    order = RunOrder(n_bags, min(run_length, n_bags), seed)
    seen = []
    for block in range(order.n_blocks):
        bags = [bag for start, stop in order.runs(block) for bag in range(start, stop)]
        assert len(bags) == order.bags_before(block + 1) - order.bags_before(block)
        seen += bags
    assert sorted(seen) == list(range(n_bags))


def test_a_prefix_is_spread_over_the_store():
    """The first tenth of the blocks has bags of every tenth of the store, in runs."""
    order = RunOrder(100_000, 50, 0)
    runs = [run for block in range(order.n_blocks // 10) for run in order.runs(block)]
    assert all(stop - start == 50 for start, stop in runs)
    counts = np.bincount([start // 10_000 for start, _ in runs], minlength=10)
    assert counts.min() > 5
    other = RunOrder(100_000, 50, 1)
    assert other.runs(0) != order.runs(0)


def test_the_order_is_the_same_for_ever():
    """Caches and records of a killed tune are found again by any process and version."""
    assert [start for start, _ in RunOrder(800, 8, 0).runs(0)] == [528, 0, 432, 344]


@given(st.integers(1, 10**7), st.integers(1, 100), st.integers(2, 5), st.integers(0, 10**4))
def test_rungs_grow_and_end_with_one(n_bags, n_candidates, eta, first_bags):
    """Rungs are nested prefixes, each keeps at least a share 1/eta, and one candidate is left."""
    first = first_rung(n_bags, n_candidates, eta, min(n_bags, first_bags) or None)
    order = run_order(n_bags, first, 400, 0)
    rungs = plan_rungs(order, first, n_candidates, eta)
    assert rungs[0].n_candidates == n_candidates
    assert rungs[-1].n_kept == 1
    assert rungs[0].n_bags >= first
    for before, after in pairwise(rungs):
        assert after.n_candidates == before.n_kept
        assert before.n_bags < after.n_bags <= n_bags
        assert before.n_kept * eta >= before.n_candidates
        assert after.n_bags == n_bags or after.n_bags >= eta * first


def test_default_first_rung_leaves_one_for_all_bags():
    """15 candidates of a million bags: 1/27, 1/9 and 1/3 of the bags, then the last fit."""
    first = first_rung(10**6, 15, 3, None)
    rungs = plan_rungs(run_order(10**6, first, 400, 0), first, 15, 3)
    assert [(rung.n_candidates, rung.n_kept) for rung in rungs] == [(15, 5), (5, 2), (2, 1)]
    assert 0.33e6 < rungs[-1].n_bags < 0.36e6  # whole blocks
    assert first_rung(10**4, 15, 3, None) == FIRST_RUNG_BAGS
    assert first_rung(700, 15, 3, None) == 700


def test_first_rung_beyond_the_store_is_refused():
    """The refusal has both numbers."""
    with pytest.raises(ParameterError, match="first_bags is 500; there are 300 bags"):
        first_rung(300, 5, 3, 500)
