"""The pointwise kernels: √w · p^{½+iλ} in both precisions."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.embeddings.hdd_kernels import powers_float32, powers_float64

RATES = np.array([0.0, 0.16, 1.3, 9.6, 90.0]).astype(np.float32).astype(np.float64)
WEIGHTS = np.array([0.5, 1.0, 2.0, 0.125, 0.03125])


def powers(density, dtype, floor=1e-6):
    density = np.atleast_2d(density).astype(dtype)
    out = np.full((len(density), 9, density.shape[1]), np.nan, dtype)
    kernel = powers_float32 if dtype == np.float32 else powers_float64
    kernel(density, dtype(floor), RATES.astype(dtype), WEIGHTS.astype(dtype), out)
    return out


def truth(density, floor=1e-6):
    p = np.maximum(np.atleast_2d(density).astype(np.float64), floor).astype(complex)
    parts = []
    for rate, weight in zip(RATES, WEIGHTS, strict=True):
        value = weight * p ** (0.5 + 1j * rate)
        parts += [value.real] if rate == 0 else [value.real, value.imag]
    return np.stack(parts, axis=1)


def densities():
    rng = np.random.default_rng(0)
    return np.concatenate([10 ** rng.uniform(-6, 4, 4000), [1.0, 2.0, 0.5, 1e-6, 1e4]])


def test_float64():
    """Double precision is the formula."""
    p = densities()
    np.testing.assert_allclose(powers(p, np.float64), truth(p), atol=1e-12 * 1e4)


def test_float32_to_its_rounding():
    """Single precision is right to 2e-7 of the amplitude and two roundings of λ log p: the
    argument is reduced without loss, for the λ ≈ 90 of TV too."""
    p = densities().astype(np.float32)
    values, exact = powers(p, np.float32).astype(np.float64), truth(p)
    log, amplitude = np.log(p.astype(np.float64)), np.sqrt(p.astype(np.float64))
    rates = np.repeat(RATES, [1, 2, 2, 2, 2])[:, None]
    weights = np.repeat(WEIGHTS, [1, 2, 2, 2, 2])[:, None]
    bound = weights * amplitude * (2e-7 + 2.5e-7 * rates * np.abs(log))
    assert (np.abs(values - exact)[0] < bound).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floor_and_nan(dtype):
    """Negative, zero and tiny densities count as the floor; NaN stays NaN and stays alone."""
    values = powers([-3.0, 0.0, 1e-9, -np.inf, np.nan, 1.0], dtype, 1e-3)[0]
    floor = powers([1e-3], dtype, 1e-3)[0]
    for column in range(4):
        np.testing.assert_array_equal(values[:, column], floor[:, 0])
    assert np.isnan(values[:, 4]).all()
    assert np.isfinite(values[:, 5]).all()
