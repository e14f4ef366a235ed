"""The automatic bandwidth, against the naive leave-one-out loop."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, Box, DataError
from bagbasis.embeddings.bases.smoothness import BAGS_PER_PART, BANDWIDTHS, choose_bandwidth
from tests.embeddings.bases.test_index_set_choice import bumps
from tests.oracles.hdd import leave_one_out_bandwidth_score


def naive(bags, candidates):
    scores = [sum(leave_one_out_bandwidth_score(bag, h) for bag in bags) for h in candidates]
    return candidates[int(np.argmin(scores))]


@pytest.mark.parametrize(("n_dims", "k"), [(1, 256), pytest.param(2, 48, marks=pytest.mark.long)])
@pytest.mark.parametrize("width", [0.05, 0.15])
def test_against_the_naive_loop(n_dims, k, width):
    """The choice is the candidate of least score; bags of one point have no say."""
    bags = bumps(0, width, (12, 20, 15), n_dims)
    group = np.arange(n_dims)[None]
    lone = [np.full((1, n_dims), 0.5)] * 3
    chosen = choose_bandwidth([Bags.from_list(bags + lone)], group, Box.unit(n_dims), k)
    near = BANDWIDTHS[np.abs(np.log(BANDWIDTHS / chosen)) < 0.45]
    assert len(near) > 6
    assert chosen == naive(bags, near)


@pytest.mark.long
def test_marginals_share_one_bandwidth():
    """Over several marginals the scores are summed."""
    rng = np.random.default_rng(1)
    bag = np.column_stack([0.5 + 0.02 * rng.standard_normal(60), rng.random(60)])
    chosen = choose_bandwidth([Bags.from_list([bag])], np.array([[0], [1]]), Box.unit(2), 256)
    scores = [
        leave_one_out_bandwidth_score(bag[:, :1], h) + leave_one_out_bandwidth_score(bag[:, 1:], h)
        for h in BANDWIDTHS
    ]
    assert chosen == BANDWIDTHS[int(np.argmin(scores))]


def test_dropped_points_have_no_say():
    """With drop the choice is that of the points inside the box; a bag left with one point, or
    none, is passed over."""
    bags = bumps(0, 0.1, (20, 25))
    beyond = [np.concatenate([bag, np.full((30, 2), 1.5)]) for bag in bags]
    lost = [np.full((4, 2), 2.0), np.array([[0.5, 0.5], [3.0, 3.0]])]
    group = np.arange(2)[None]
    clean = choose_bandwidth([Bags.from_list(bags)], group, Box.unit(2), 48)
    part = Bags.from_list(beyond + lost)
    assert choose_bandwidth([part], group, Box.unit(2), 48, drop=True) == clean
    assert choose_bandwidth([part], group, Box.unit(2), 48) < clean


def test_only_resolved_bandwidths():
    """A density of few coefficients cannot be less smooth than they resolve."""
    bags = Bags.from_list([np.full((50, 2), 0.3)])
    assert np.pi * 24 * choose_bandwidth([bags], np.arange(2)[None], Box.unit(2), 24) >= 2


def test_a_large_sample_is_thinned():
    """Where there are many bags, an evenly spread sample is read."""
    bags = Bags.from_list(bumps(0, 0.1, (6,) * (3 * BAGS_PER_PART), 1))
    group = np.zeros((1, 1), dtype=np.int64)
    every_third = choose_bandwidth([bags[::3]], group, Box.unit(1), 64)
    assert choose_bandwidth([bags], group, Box.unit(1), 64) == every_third


def test_enough_points_end_the_reading():
    """No part is read after there are points enough."""

    def parts():
        yield Bags.from_list([[[0.5]]])
        yield Bags.from_list(bumps(0, 0.1, (20, 30), 1))
        raise AssertionError("read on")

    group = np.zeros((1, 1), dtype=np.int64)
    assert choose_bandwidth(parts(), group, Box.unit(1), 64, max_work=1) > 0


def test_no_bag_of_two_points():
    """Bags of one point alone are refused."""
    with pytest.raises(DataError, match="two points"):
        choose_bandwidth([Bags.from_list([[[0.5]]])], np.zeros((1, 1), int), Box.unit(1), 64)
