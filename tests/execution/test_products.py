"""Products by fixed parts: those of numpy, and the same bits on any number of cores."""

import numpy as np
import pytest

from bagbasis.execution.products import (
    GRAM_COLUMNS,
    STEP,
    gram_matrix,
    multiply,
    multiply_by_triangle,
)
from tests.passes import use_cores

pytestmark = pytest.mark.portable

SHAPES = [
    (1, 5, 1),
    (STEP + 1, 100, 200),
    (130, 300, 2 * STEP + 7),
    (3, 4000, 3 * STEP),
    (5000, 900, 1),
]


def on_cores(call):
    """What a call returns on one, two and three cores, which is the same."""
    values = []
    for cores in (1, 2, 3):
        with use_cores(cores):
            values.append(call())
    for other in values[1:]:
        assert np.array_equal(values[0], other)
    return values[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_multiply(shape, dtype):
    """Into a new array, and into a part of one; of arrays in either order."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    expected = np.asarray(a, float) @ np.asarray(b, float)
    # each of k products is rounded once, and so is each of k sums
    bound = 2 * k * np.finfo(dtype).eps * (np.abs(a).astype(float) @ np.abs(b)) + 1e-30
    product = on_cores(lambda: multiply(a, b))
    assert product.dtype == dtype
    assert (np.abs(product - expected) <= bound).all()
    wide = np.full((m, 2 * n), 7, dtype)
    multiply(np.asfortranarray(a), np.asfortranarray(b), wide[:, :n])
    assert (np.abs(wide[:, :n] - expected) <= bound).all()
    assert (wide[:, n:] == 7).all()


@pytest.mark.parametrize("n", [1, 7, GRAM_COLUMNS, 2 * GRAM_COLUMNS + 5])
def test_gram_matrix(n):
    """The lower triangle, and zeros above it."""
    rows = np.random.default_rng(n).standard_normal((n, 33))
    gram = on_cores(lambda: gram_matrix(rows))
    assert gram.flags.f_contiguous
    np.testing.assert_allclose(np.tril(gram), np.tril(rows @ rows.T), atol=1e-12)
    wide = np.zeros((n, 40))
    wide[:, :33] = rows
    np.testing.assert_allclose(gram_matrix(wide[:, :33]), gram, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multiply_by_triangle(dtype):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((STEP + 3, 40)).astype(dtype)
    upper = np.triu(rng.standard_normal((40, 40))).astype(dtype)

    def product():
        out = rows.copy()
        multiply_by_triangle(out, upper)
        return out

    expected = rows.astype(float) @ upper
    np.testing.assert_allclose(on_cores(product), expected, atol=1e-4)
