"""Index sets: exactly the indices they should hold, in an order the kernel can walk."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bagbasis import ParameterError
from bagbasis.embeddings import BASES, index_set
from bagbasis.embeddings.bases.functions import MAX_FUNCTIONS
from bagbasis.embeddings.bases.index_sets import prefix_runs
from tests.oracles.series import index_set_by_loop

LIMITS = st.one_of(
    st.tuples(st.integers(1, 6), st.none()),
    st.tuples(st.none(), st.floats(0, 4)),
    st.tuples(st.integers(1, 6), st.floats(0, 4)),
    st.tuples(st.none(), st.integers(0, 20).map(np.sqrt)),
)


@settings(max_examples=100)
@given(n_dims=st.integers(1, 3), limits=LIMITS, basis=st.sampled_from(BASES))
def test_equals_brute_force(n_dims, limits, basis):
    """Tensor sets, balls and their intersection hold what a loop over a cube finds, in order;
    a radius that is the square root of a whole number takes its sphere in."""
    indices = index_set(n_dims, limits[0], max_norm=limits[1], basis=basis)
    assert list(map(tuple, indices.tolist())) == index_set_by_loop(n_dims, *limits, basis)


@settings(max_examples=60)
@given(n_dims=st.integers(1, 4), limits=LIMITS, basis=st.sampled_from(BASES))
def test_prefix_runs_spell_the_set(n_dims, limits, basis):
    """Prefixes, run lengths and first changes say what the set says, index by index."""
    indices = index_set(n_dims, limits[0], max_norm=limits[1], basis=basis)
    runs = prefix_runs(indices)
    spelled = [
        (*(prefix if n_dims > 1 else []), last)
        for prefix, count in zip(runs.prefixes.tolist(), runs.counts.tolist(), strict=True)
        for last in range(count)
    ]
    assert spelled == list(map(tuple, indices.tolist()))
    for (a, b), changed in zip(
        itertools.pairwise(runs.prefixes.tolist()), runs.changed.tolist()[1:], strict=True
    ):
        assert a[:changed] == b[:changed]
        assert a[changed] != b[changed]


@pytest.mark.parametrize(
    "limits",
    [
        {"n_dims": 6, "n_per_dim": 9},
        {"n_dims": 2, "n_per_dim": MAX_FUNCTIONS},
        {"n_dims": 1, "n_per_dim": 10**12},
        {"n_dims": 2, "max_norm": 600.0},
        {"n_dims": 1, "max_norm": 1e15},
        {"n_dims": 20, "n_per_dim": 2},
    ],
)
def test_too_many_functions(limits):
    """More functions than an embedding can have is an error that says what helps, at once and
    without first making room for them."""
    with pytest.raises(ParameterError, match=r"more than 200000 functions; .* marginals"):
        index_set(**limits)


def test_no_limit():
    """A set without any limit is refused as one too large is."""
    with pytest.raises(ParameterError, match="needs n_per_dim or max_norm"):
        index_set(2)


def test_most_functions():
    """The limit itself is allowed."""
    assert len(index_set(1, MAX_FUNCTIONS)) == MAX_FUNCTIONS


def test_read_only():
    """Sets are cached and shared, so nobody can change one."""
    with pytest.raises(ValueError, match="read-only"):
        index_set(2, 3)[0, 0] = 1
