"""The fused float32 sine and cosine: accurate for any phase a float32 can be."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.embeddings.random_features.kernels.fourier_kernels import sine_cosine

pytestmark = pytest.mark.portable

ACCURACY = 2e-7


def both(phases, amplitude=1.0):
    """(sine, cosine) of a list of phases, as the kernel makes them in place."""
    row = np.asarray(phases, dtype=np.float32).reshape(1, -1)
    out = np.hstack([row, np.full_like(row, np.nan)])
    sine_cosine(0, 1, out, np.float32(amplitude))
    half = row.shape[1]
    return out[0, :half], out[0, half:]


def check(phases):
    exact = np.asarray(phases, dtype=np.float32).astype(np.float64)
    sine, cosine = both(phases)
    np.testing.assert_allclose(sine, np.sin(exact), rtol=0, atol=ACCURACY)
    np.testing.assert_allclose(cosine, np.cos(exact), rtol=0, atol=ACCURACY)


@pytest.mark.parametrize("reach", [1e-30, 1e-3, 1.0, 10.0, 1e3, 8192.0, 1e5, 1e7, 1e9])
def test_random_phases(reach):
    """Within 2e-7 of the exact value for phases up to 1e9, negative ones included."""
    check(np.random.default_rng(0).uniform(-reach, reach, 20_000))


@pytest.mark.parametrize(("divisor", "step"), [(2, 1), (4, 2)])
def test_multiples_of_parts_of_pi(divisor, step):
    """Around those of π/2 the reduced phase changes its quadrant; at odd ones of π/4 polynomials
    are farthest from their middle."""
    k = np.concatenate([np.arange(-6001, 6002, step), 10.0 ** np.arange(4, 9)])
    near = (k * np.pi / divisor).astype(np.float32)
    for phases in (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, -near)):
        check(phases)


def test_where_the_reduction_changes():
    """On both sides of the largest phase that the float32 reduction takes, and mixed in a row."""
    edge = np.float32(8192)
    check([edge, np.nextafter(edge, np.float32(0)), np.nextafter(edge, np.float32(9e9)), -edge, 1])
    check(np.concatenate([np.linspace(8000, 8400, 999), [0.1]]))


def test_zero_and_tiny():
    """Zero of either sign gives 0 and 1; a tiny phase is its own sine."""
    sine, cosine = both([0.0, -0.0, 1e-20, -1e-38, 1e-45])
    np.testing.assert_array_equal(cosine, 1)
    np.testing.assert_allclose(sine, np.float32([0, 0, 1e-20, -1e-38, 1e-45]), rtol=1e-6, atol=0)


@pytest.mark.parametrize("phase", [np.nan, np.inf, -np.inf])
def test_not_a_phase(phase):
    """NaN and infinite phases become NaN, and leave the row's others alone."""
    sine, cosine = both([phase, 1.0])
    assert np.isnan([sine[0], cosine[0]]).all()
    np.testing.assert_allclose([sine[1], cosine[1]], [np.sin(1), np.cos(1)], atol=ACCURACY)


@pytest.mark.parametrize("n_columns", [1, 2, 7, 8, 9, 31, 64, 65])
def test_odd_widths(n_columns):
    """Rows that do not fill a vector register are computed to their end and not beyond."""
    phases = np.random.default_rng(n_columns).normal(0, 9, (5, n_columns)).astype(np.float32)
    out = np.full((7, 2 * n_columns), 7, dtype=np.float32)
    out[1:6, :n_columns] = phases
    sine_cosine(0, 5, out[1:6], np.float32(1))
    np.testing.assert_allclose(out[1:6], np.hstack([np.sin(phases), np.cos(phases)]), atol=3e-7)
    np.testing.assert_array_equal(out[[0, 6]], 7)
