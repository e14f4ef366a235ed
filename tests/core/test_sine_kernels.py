"""Sines and cosines of kernels, as Python runs them: errors are those of float32."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.core.sine_kernels import half_turn, sine_cosine_of


def test_half_turns():
    """Polynomials have 5e-8, and Python rounds each product, which kernels contract."""
    r = np.linspace(-0.5, 0.5, 2001, dtype=np.float32)
    angles = np.pi * r.astype(np.float64)
    for values, exact in zip(half_turn.py_func(r), (np.sin(angles), np.cos(angles)), strict=True):
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, exact, rtol=0, atol=2e-7)


@pytest.mark.parametrize("most", [4.0, 8192.0])
def test_sines_of_any_angle(most):
    """In each quadrant, with the amplitude; also where the argument has many turns."""
    angles = np.linspace(-most, most, 501, dtype=np.float32)
    values = np.array([sine_cosine_of.py_func(x, np.float32(2)) for x in angles])
    exact = 2 * np.column_stack([np.sin(angles.astype(float)), np.cos(angles.astype(float))])
    np.testing.assert_allclose(values, exact, rtol=0, atol=1e-6)
