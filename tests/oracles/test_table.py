"""Every implementation in the table against its slow twin."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numba.core.dispatcher import Dispatcher

import bagbasis
from bagbasis.core.compiling import EarlyKernel
from bagbasis.embeddings.kernels.by_arrays import by_arrays
from tests.passes import compiling_at_once

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
    """What benchmarks time to compare with the package computes the same numbers."""
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


def all_kernels():
    home = Path(bagbasis.__file__).parent  # a walk of its packages would import networks
    files = [file.relative_to(home).with_suffix("") for file in home.rglob("*_kernels.py")]
    modules = [importlib.import_module(".".join(("bagbasis", *file.parts))) for file in files]
    values = [value for module in modules for value in vars(module).values()]
    early = {value.compiled for value in values if isinstance(value, EarlyKernel)}
    assert len(early) >= 5
    return {value for value in values if isinstance(value, Dispatcher)} | early


def test_every_kernel_is_kept():
    """What one process has compiled no other one compiles again: jobs and workers are many."""
    kernels = all_kernels()
    assert len(kernels) > 50
    assert [k.py_func for k in kernels if not k.stats.cache_path] == []


def run_compiled(names):
    with compiling_at_once():
        for name in names:
            entry = IMPLEMENTATIONS[name]
            entry.implementation(*entry.make(np.random.default_rng(0), entry.n))


FRESH = """
import sys
from tests.oracles.test_table import all_kernels, run_compiled

run_compiled(sys.argv[1:])
n_missed = sum(sum(k.stats.cache_misses.values()) for k in all_kernels())
n_loaded = sum(sum(k.stats.cache_hits.values()) for k in all_kernels())
print(n_missed, n_loaded, "numba.np.linalg" in sys.modules)
"""


@pytest.mark.long
def test_kept_kernels_are_loaded_without_the_compiler():
    """A process that finds all kernels kept runs them, and imports nothing that compiles others."""
    names = [entry.name for entries in FEATURES for entry in entries()]
    names += [name for name in IMPLEMENTATIONS if name.startswith("linear predictions")]
    run_compiled(names)  # what no test has called so far, too
    command = [sys.executable, "-c", FRESH, *names]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    n_missed, n_loaded, compiles = run.stdout.split()
    assert (n_missed, compiles) == ("0", "False")
    assert int(n_loaded) > 10
