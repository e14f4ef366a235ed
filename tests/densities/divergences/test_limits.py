"""Parameters out of range, and matrices that would not fit in memory."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bagbasis import Bags, DataError, ParameterError, as_bags
from bagbasis.densities import (
    DivergenceKernel,
    PrecomputedNystroem,
    PSDRepair,
    divergence_matrix,
    kernel_matrix,
    median_scale,
)
from bagbasis.densities.divergences import matrix, resources
from bagbasis.densities.divergences.neighbour_estimates import (
    BY_KERNEL,
    BY_NEIGHBOURS,
    DivergenceSpec,
)
from bagbasis.densities.divergences.resources import bag_blocks, for_each
from tests.oracles.ragged import random_bags
from tests.traced import peak_of

X = random_bags(np.random.default_rng(0), (9, 9), 2)


@pytest.mark.parametrize(
    ("divergence", "params", "message"),
    [
        ("l2", {"k": 1}, "k of 'l2' is 1; expected an integer ≥ 2"),
        ("renyi", {"alpha": 1}, "alpha is 1, where Rényi's divergence is 'kl'"),
        ("hellinger", {"alpha": 0.5}, "alpha is 0.5, which 'hellinger' does not have"),
        ("js", {"bandwidth": 1.0}, "bandwidth is 1.0, which 'js' does not have"),
        ("mmd", {"k": 3}, "k is 3, which 'mmd' does not have"),
    ],
)
def test_parameters_refused(divergence, params, message):
    """The parameter, its value, and what is expected; by the function and by the kernel."""
    with pytest.raises(ParameterError, match=message):
        divergence_matrix(X, None, divergence=divergence, **params)
    with pytest.raises(ParameterError, match=message):
        DivergenceKernel(divergence, **params).fit(X)


class TestMemory:
    def test_number_of_bags_that_does_not_fit(self):
        """A hundred thousand bags: refused before anything is computed, with N and the bytes."""
        n = 100_000
        bags = Bags.trusted(np.zeros((4 * n, 1)), 4 * np.arange(n + 1))
        with pytest.raises(DataError, match=r"100,000 × 100,000 bags needs 80,\d{3},\d{3},\d{3} b"):
            divergence_matrix(bags, None, divergence="kl", max_bytes=2**34)
        with pytest.raises(DataError, match=r"needs 16\d,\d{3},\d{3},\d{3} bytes .* anchors"):
            divergence_matrix(bags, None, divergence="js", max_bytes=2**34)

    @pytest.mark.parametrize("name", BY_NEIGHBOURS + BY_KERNEL)
    def test_limit(self, name):
        """The declared bytes are enough, and one less is refused with both numbers."""
        bags = as_bags(X)
        needed = matrix.needed_bytes(bags, None, DivergenceSpec(name))
        divergence_matrix(X, None, divergence=name, max_bytes=needed)
        with pytest.raises(DataError, match=f"{needed:,} bytes .* {needed - 1:,} bytes .*allowed"):
            divergence_matrix(X, None, divergence=name, max_bytes=needed - 1)

    @pytest.mark.long
    @pytest.mark.parametrize("sizes", [(4,) * 500, (3000, 200, 9000, 500)])
    @pytest.mark.parametrize("name", ["kl", "l2", "js", "mmd"])
    def test_peak_is_declared(self, name, sizes):
        """What numpy allocates at its peak stays below the declared bytes."""
        if name == "mmd":
            sizes = sizes[:150] if len(sizes) > 4 else (3000, 200, 500)
        bags = as_bags(random_bags(np.random.default_rng(0), sizes, 2))
        peak = peak_of(lambda: divergence_matrix(bags, None, divergence=name), n_times=1)
        assert peak <= matrix.needed_bytes(bags, None, DivergenceSpec(name)) + 2**22

    def test_what_follows_a_matrix(self, monkeypatch):
        """Kernel, median, repair and features refuse N that leaves no room to work."""
        K = np.eye(50)
        monkeypatch.setattr(resources, "available_memory", lambda: 10_000)
        for work in (
            lambda: kernel_matrix(K, 1.0),
            lambda: median_scale(K),
            lambda: PSDRepair().fit(K),
            lambda: PrecomputedNystroem().fit(K),
            lambda: DivergenceKernel().fit(X),
        ):
            with pytest.raises(DataError, match=r"needs [\d,]+ bytes .* 10,000 bytes .*available"):
                work()


@pytest.mark.parametrize("fails_in", ["task", "done"])
def test_first_failure_cancels_the_rest(fails_in):
    """An exception, of the work or of who watches it, comes out before all is done."""
    begun = []

    def task(i):
        begun.append(i)
        time.sleep(0.01)
        if fails_in == "task":
            raise KeyError(i)

    def done():
        raise KeyError

    with pytest.raises(KeyError):
        for_each(task, 200, done)
    assert 0 < len(begun) < 200


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 25), st.booleans())
def test_blocks(sizes, max_points, same_size):
    """Blocks cover the bags in order, hold at most so many points or one bag, and are as long as
    these rules let them."""
    ranges = list(bag_blocks(np.array(sizes, dtype=np.int64), max_points, same_size))
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(len(sizes)))
    for start, stop in ranges:
        assert sum(sizes[start:stop]) <= max_points or stop == start + 1
        assert not same_size or len(set(sizes[start:stop])) == 1
    for (start, stop), _ in itertools.pairwise(ranges):
        other = same_size and sizes[stop] != sizes[start]
        assert other or sum(sizes[start : stop + 1]) > max_points
