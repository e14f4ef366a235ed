"""Products of rows with one direction compared with numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bagbasis.execution.pool import run_kernel
from bagbasis.models.ridge.product_kernels import N_STRIPES, row_products
from tests.passes import use_cores

pytestmark = pytest.mark.portable


def products(z, weights, direction, shift):
    """What all stripes leave: zᵀu and Σu."""
    sums, totals = np.zeros((N_STRIPES, z.shape[1]), z.dtype), np.zeros(N_STRIPES)
    run_kernel(row_products, range(N_STRIPES + 1), z, weights, direction, shift, sums, totals)
    return sums, totals


@given(
    n=st.integers(0, 70),
    d=st.integers(1, 40),
    dtype=st.sampled_from(["float32", "float64"]),
    weighted=st.booleans(),
    seed=st.integers(0, 99),
)
def test_rows_of_any_number(n, d, dtype, weighted, seed):
    """Odd numbers of rows, fewer rows than stripes, none; with weights, some zero, and without."""
    rng = np.random.default_rng(seed)
    z, direction = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal(d).astype(dtype)
    weights = rng.integers(0, 3, n) * 0.7 if weighted else np.empty(0)
    u = z.astype(float) @ direction - 0.3
    if len(weights):
        u *= weights
    sums, totals = products(z, weights, direction, 0.3)
    bound = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(sums.sum(axis=0), z.T.astype(float) @ u, atol=bound)
    assert totals.sum() == pytest.approx(u.sum(), abs=bound)


def test_threads_change_nothing():
    """The same bits from one thread as from all: stripes are as many."""
    rng = np.random.default_rng(0)
    z, direction = (rng.standard_normal(s).astype(np.float32) for s in ((501, 300), 300))
    with use_cores(1):
        alone = products(z, np.empty(0), direction, 0.1)
    with use_cores(3):
        both = products(z, np.empty(0), direction, 0.1)
    assert all(np.array_equal(a, b) for a, b in zip(alone, both, strict=True))
