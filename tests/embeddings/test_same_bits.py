"""What NumPy computes before a kernel is worth compiling has the kernel's bits.

The values of the kernels are compared with their oracles in tests/oracles/test_table.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import ExtremesEmbedding, MomentsEmbedding, SlicedWassersteinEmbedding, as_bags
from bagbasis.embeddings.kernels.same_bits import are_few_points, are_few_values
from bagbasis.models.ridge.gram_products import GramProducts, add_upper, unpack_products
from tests.early import never_compiled
from tests.passes import compiling_at_once

EMBEDDINGS = {
    "moments": MomentsEmbedding(),
    "means": MomentsEmbedding(covariance=False),
    "sliced": SlicedWassersteinEmbedding(n_directions=7, n_quantiles=5),
    "one quantile": SlicedWassersteinEmbedding(n_directions=1, n_quantiles=1),
    "extremes": ExtremesEmbedding(n_directions=7),
    "extremes along 20": ExtremesEmbedding(n_directions=20),
    "extremes along axes": ExtremesEmbedding(n_directions=3),
}


@pytest.mark.parametrize("out_of_box", ["clip", "drop", "without edges"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(name, d, dtype, out_of_box):
    rng = np.random.default_rng(d)
    bags = as_bags([rng.normal(0.5, 0.4, (n, d)).astype(dtype) for n in (2, 7, 9, 300, 33, 1, 16)])
    how = "drop" if out_of_box == "drop" else "clip"
    spec = EMBEDDINGS[name].set_params(box=[(-0.2, 1.3)] * d, out_of_box=how).fit(bags).spec_
    if out_of_box == "without edges":
        spec = spec.with_margin()
    rows, result = np.empty((2, len(bags), spec.n_features), dtype)
    outside, beyond = np.zeros((2, len(bags)), np.int64)
    with compiling_at_once():
        spec.fill(bags, rows, outside)
    with never_compiled():
        spec.fill(bags, result, beyond)
    assert outside.any()
    np.testing.assert_array_equal(result, rows)
    assert beyond.tolist() == outside.tolist()


def test_dropped_bags():
    """Bags of which no point is left are NaN."""
    bags = as_bags([np.full((3, 2), 2.0), np.full((3, 2), 0.5)])
    for embedding in EMBEDDINGS.values():
        spec = embedding.set_params(box=[(0, 1)] * 2, out_of_box="drop").fit(bags).spec_
        rows = np.empty((2, spec.n_features))
        with never_compiled():
            spec.fill(bags, rows, np.zeros(2, np.int64))
        assert np.isnan(rows).all(axis=1).tolist() == [True, False]


@pytest.mark.parametrize("n_features", [1, 70, 1500])
def test_sums(n_features):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, n_features)).astype(np.float32)
    square, start = rng.normal(size=(n_features,) * 2), rng.normal(size=n_features)

    before = rng.normal(size=n_features * (n_features + 1) // 2)

    def sums():
        packed = before.copy()
        GramProducts(n_features, 64, np.float32).add(packed, z)
        add_upper(packed, square)
        return packed, np.triu(unpack_products(packed, start, 50.0, 0.3))

    with compiling_at_once():
        expected = sums()
    with never_compiled():
        computed = sums()
    for actual, truth in zip(computed, expected, strict=True):
        np.testing.assert_array_equal(actual, truth)


@pytest.mark.parametrize(
    ("n_points", "n_directions", "few"),
    [(4096, 32, (True, True)), (4097, 32, (True, False)), (2**16 + 1, 1, (False, False))],
)
def test_large_bags(n_points, n_directions, few):
    """NumPy takes no more memory than a core has cache, for points and for their projections."""
    points, offsets = np.empty((n_points, 2)), np.array([0, n_points])
    directions = np.empty((2, n_directions))
    shares, out, n_outside = np.empty(0), (np.empty((0, 5 * n_directions)),) * 2, np.zeros(1, int)
    how = None, None, None, False, 0.0, directions, 5, shares, out, n_outside
    arguments = 0, 1, points, offsets, *how
    assert (are_few_points(*arguments), are_few_values(*arguments)) == few
