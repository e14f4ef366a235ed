"""The pointwise kernels: √w · p^{½+iλ} in both precisions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracles.hdd_direct_kernels import powers as powers_kernel

pytestmark = pytest.mark.portable

RATES = np.array([0.0, 0.16, 1.3, 9.6, 90.0]).astype(np.float32).astype(np.float64)
WEIGHTS = np.array([0.5, 1.0, 2.0, 0.125, 0.03125])


def powers(density, dtype, floor=1e-6, exponent=0.5):
    density = np.atleast_2d(density).astype(dtype)
    out = np.full((len(density), 9, density.shape[1]), np.nan, dtype)
    rates, weights = RATES.astype(dtype), WEIGHTS.astype(dtype)
    powers_kernel(0, len(density), density, dtype(floor), dtype(exponent), rates, weights, out)
    return out


def truth(density, floor=1e-6, exponent=0.5):
    p = np.maximum(np.atleast_2d(density).astype(np.float64), floor).astype(complex)
    parts = []
    for rate, weight in zip(RATES, WEIGHTS, strict=True):
        value = weight * p ** (exponent + 1j * rate)
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


@pytest.mark.parametrize("exponent", [0.25, 0.75, 1.0, 1.5])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 6e-5), (np.float64, 1e-12)])
def test_exponents(exponent, dtype, rtol):
    """Half of another order than one instead of the square root."""
    p = densities().astype(dtype)
    values, exact = powers(p, dtype, exponent=exponent), truth(p, exponent=exponent)
    amplitude = np.repeat(WEIGHTS, [1, 2, 2, 2, 2])[:, None] * p.astype(float) ** exponent
    assert (np.abs(values - exact)[0] < rtol * 5 * amplitude).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_floor(dtype):
    """A linear embedding takes densities as they are, negative ones and zero too."""
    p = np.array([[-3.0, 0.0, 1e-9, 2.0]], dtype=dtype)
    out = np.empty((1, 1, 4), dtype)
    single = np.ones(1, dtype)
    powers_kernel(0, 1, p, dtype(-np.inf), dtype(1), 0 * single, single, out)
    np.testing.assert_array_equal(out[:, 0], p)
