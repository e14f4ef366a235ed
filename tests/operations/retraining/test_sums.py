"""Sums of a window that slides: what they cost, how they drift, and that corruption is found."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from bagbasis.operations.retraining.sums import (
    ROUNDING_BOUNDS,
    ModelSequence,
    gaps_of_sums,
    recount_and_compare,
    slide_window,
    sum_window,
)
from tests.operations.retraining.problems import HOLDOUT, create, difference, estimator, grow

WIDTH, STEP, ROUNDS = 120, 20, 50
N = WIDTH + STEP * ROUNDS


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return grow(create(tmp_path_factory.mktemp("sums") / "bags.zarr"), N)


def sequence_of(store, **params):
    return ModelSequence.begin(estimator(**params), store, (0, WIDTH), "y", HOLDOUT)


class Counter:
    """Statistics of ranges, and which were asked for."""

    def __init__(self, sequence, store):
        self.sequence, self.store, self.ranges = sequence, store, []

    def __call__(self, bags):
        self.ranges.append(bags)
        return self.sequence.statistics(self.store, bags)


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.1, "gcv", "validation"])
def test_fifty_rounds_of_a_sliding_window(store, alpha):
    """After 50 additions and subtractions the model is that of a full fit of the window; the sums
    are far inside the bound of the periodic check."""
    sequence = sequence_of(store, alpha=alpha)
    count = Counter(sequence, store)
    window = (0, WIDTH)
    sums = count(window)
    for _ in range(ROUNDS):
        before, window = window, (window[0] + STEP, window[1] + STEP)
        sums = slide_window(before, sums, window, count).statistics
    again = count(window)
    drifted, right = (sequence.model(item, store, window) for item in (sums, again))
    assert difference(drifted, right) < 1e-6
    result = gaps_of_sums(sums, again)
    assert result["counts"] == 0
    assert max(result.values()) < ROUNDING_BOUNDS["float64"] / 100


def test_float32_stays_inside_its_bound(store):
    """Single-precision blocks that are cut anew differ by less than the check complains about."""
    count = Counter(sequence_of(store, precision="float32"), store)
    whole = count((0, N))
    parts = count((0, 333)) + count((333, 700)) + count((700, N))
    assert max(gaps_of_sums(parts, whole).values()) < ROUNDING_BOUNDS["float32"] / 10


@pytest.mark.parametrize(
    ("window", "asked", "passes", "why"),
    [
        ((0, 120), [(100, 120)], {"new": 20}, None),
        ((30, 120), [(100, 120), (0, 30)], {"new": 20, "leaving": 30}, None),
        ((50, 120), [(100, 120), (0, 50)], {"new": 20, "leaving": 50}, None),
        ((60, 120), [(100, 120), (60, 100)], {"new": 20, "recomputation": 40}, "fewer bags stay"),
        ((100, 120), [(100, 120)], {"new": 20}, "no bag of the window before stays"),
        ((110, 120), [(110, 120)], {"new": 10}, "no bag of the window before stays"),
    ],
)
def test_sliding_counts_each_bag_once_at_most(store, window, asked, passes, why):
    """Bags that come and, of those that leave and those that stay, the fewer; the sums are those
    of the window."""
    count = Counter(sequence_of(store), store)
    before = count((0, 100))
    count.ranges.clear()
    result = slide_window((0, 100), before, window, count)
    assert count.ranges == asked
    assert result.passes == passes
    assert (why is None) if result.why is None else result.why.startswith(why)
    assert max(gaps_of_sums(result.statistics, count(window)).values()) < 1e-12


@pytest.mark.parametrize("window", [(0, 120), (30, 120), (90, 120), (100, 120), (110, 120)])
def test_check_of_sound_sums(store, window):
    """The check reads every bag once, passes, and leaves the sums of the window."""
    count = Counter(sequence_of(store), store)
    before = count((0, 100))
    count.ranges.clear()
    result = recount_and_compare((0, 100), before, window, count, ROUNDING_BOUNDS["float64"])
    assert result.check.passed
    ranges = sorted(count.ranges)
    assert all(a[1] <= b[0] for a, b in pairwise(ranges))
    assert sum(result.passes.values()) == sum(b - a for a, b in ranges)
    assert max(gaps_of_sums(result.statistics, count(window)).values()) < 1e-12


@pytest.mark.long
@pytest.mark.parametrize("array", ["sum_z", "gram", "sum_y", "cross", "sum_yy", "n"])
@pytest.mark.parametrize("window", [(0, 120), (30, 120), (110, 120)])
def test_check_finds_corruption(store, array, window):
    """One changed number in any array is found, and is not in the sums that are used."""
    count = Counter(sequence_of(store), store)
    before = count((0, 100))
    value = getattr(before.train, array)
    if array == "n":
        value += 1
    else:
        value = value.copy()
        value.flat[-1] += 1e-6 * abs(value).max()
    corrupt = replace(before, train=replace(before.train, **{array: value}))
    result = recount_and_compare((0, 100), corrupt, window, count, ROUNDING_BOUNDS["float64"])
    assert not result.check.passed
    worst = max(result.check.differences, key=result.check.differences.get)
    assert worst == ("counts" if array == "n" else array)
    assert max(gaps_of_sums(result.statistics, count(window)).values()) < 1e-12


def test_a_window_from_scratch(store):
    """A window from scratch."""
    count = Counter(sequence_of(store), store)
    result = sum_window((20, 100), count, "recomputation", "because")
    assert (result.passes, result.why) == ({"recomputation": 80}, "because")
    assert count.ranges == [(20, 100)]
