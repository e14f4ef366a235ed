"""Every implementation in the table against its slow twin."""

from __future__ import annotations

import importlib
import pkgutil
import zlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

import bagbasis
from bagbasis.core.compiling import EarlyKernel, compiling_at_once
from bagbasis.embeddings.kernels.by_arrays import by_arrays

from .embedding_entries import embeddings
from .fourier_entries import random_features
from .hdd_entries import hdd_embeddings
from .implementation import Implementation
from .series_entries import projections
from .table import IMPLEMENTATIONS, TIMED

FEATURES = (projections, embeddings, hdd_embeddings, random_features)
BY_ARRAYS = ("project cosine", "MeanMap", "Moments", "SlicedW", "Extremes", "HDD")


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """Kernels are compared with oracles, and not what stands in for them at first."""
    with compiling_at_once():
        yield


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_implementation_equals_its_oracle(name):
    """The package computes what the textbook formula says, to the entry's tolerance."""
    entry = IMPLEMENTATIONS[name]
    assert_equals_oracle(entry, entry.implementation)


@pytest.mark.parametrize("name", TIMED)
def test_peer_equals_the_oracle(name):
    """What benchmarks time beside the package computes the same numbers."""
    entry = TIMED[name]
    assert entry.n_timed >= entry.n
    assert_equals_oracle(entry, entry.peer)


@pytest.mark.parametrize("entries", FEATURES)
@settings(max_examples=30)
@given(st.data(), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_drawn_bags(entries, data, seed, n):
    """Features of any first n of the ragged sizes, of any points."""
    # a median is of all bags together
    names = [entry.name for entry in entries() if entry.name != "median distance"]
    name = data.draw(st.sampled_from(names))
    entry = IMPLEMENTATIONS[name]
    assert_equals_oracle(entry, entry.implementation, np.random.default_rng(seed), n)


@pytest.mark.parametrize("entries", [projections, embeddings, hdd_embeddings])
def test_by_arrays(entries):
    """What embeds small samples without kernels computes the same."""
    with by_arrays(True):
        for entry in entries():
            if entry.name.startswith(BY_ARRAYS) and "float64" in entry.name:
                assert_equals_oracle(entry, entry.implementation, np.random.default_rng(3), 3)


def assert_equals_oracle(entry: Implementation, function, rng=None, n=None):
    rng = rng or np.random.default_rng(zlib.crc32(entry.name.encode()))
    inputs = entry.make(rng, n or entry.n)
    ours, truth = function(*inputs), entry.oracle(*inputs)
    if not isinstance(ours, tuple):
        ours, truth = (ours,), (truth,)
    assert len(ours) == len(truth)
    for value, expected in zip(ours, truth, strict=True):
        np.testing.assert_allclose(value, expected, atol=entry.atol, rtol=entry.rtol)


def test_every_kernel_is_kept():
    """What one process has compiled no other one compiles again: jobs and workers are many."""
    packages = pkgutil.walk_packages(bagbasis.__path__, "bagbasis.")
    modules = [importlib.import_module(m.name) for m in packages if m.name.endswith("_kernels")]
    values = [value for module in modules for value in vars(module).values()]
    early = {value.compiled for value in values if isinstance(value, EarlyKernel)}
    kernels = {value for value in values if isinstance(value, Dispatcher)} | early
    assert len(early) >= 5
    assert len(kernels) > 50
    assert [k.py_func for k in kernels if isinstance(k._cache, NullCache)] == []
