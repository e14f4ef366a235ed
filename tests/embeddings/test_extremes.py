"""`ExtremesEmbedding`: minima, maxima and quantiles near them, and the bags that they are for."""

from __future__ import annotations

import tracemalloc

import numpy as np

from bagbasis import ExtremesEmbedding, as_bags
from tests.passes import compiling_at_once

RNG = np.random.default_rng(0)
BAGS = [RNG.random((size, 3)) for size in (1, 30, 257, 1000)]


def fitted(n_directions, bags=BAGS, **params):
    box = [(0, 1)] * bags[0].shape[1]
    return ExtremesEmbedding(n_directions=n_directions, box=box, dtype="float64", **params).fit(
        bags
    )


def test_coordinates_come_first():
    """With as many directions as coordinates these are minima, maxima and two quantiles."""
    embedding = fitted(3, tail=0.05)
    rows = embedding.transform(BAGS).reshape(len(BAGS), 3, 4) * np.sqrt(12)
    for bag, row in zip(BAGS, rows, strict=True):
        for j, share in enumerate((0, 0.05, 0.95, 1)):
            expected = np.quantile(bag, share, axis=0, method="inverted_cdf")
            np.testing.assert_allclose(row[:, j], expected, rtol=1e-12)
    names = embedding.get_feature_names_out(["a", "b", "c"]).tolist()
    assert names[:5] == ["q0(a)", "q0.05(a)", "q0.95(a)", "q1(a)", "q0(b)"]


def test_more_directions_keep_the_coordinates():
    """They are unit vectors; with fewer directions than coordinates all are random."""
    more = fitted(8).spec_.directions()
    np.testing.assert_array_equal(more[:3], np.eye(3))
    np.testing.assert_allclose(np.linalg.norm(more, axis=1), 1, rtol=1e-12)
    assert np.abs(fitted(2).spec_.directions()).min() > 0
    assert fitted(32, [RNG.random((4, 1))]).spec_.n_features == 4


def test_axes_take_no_matrix():
    """Extremes of many coordinates take no products with all axes, and no memory for them."""
    rng, d = np.random.default_rng(1), 3000
    bags = as_bags([rng.random((size, d)) for size in (2, 5)])
    spec = ExtremesEmbedding(n_directions=d, box=[(0, 1)] * d).fit(bags).spec_
    rows = np.empty((2, spec.n_features), np.float32)
    with compiling_at_once():
        spec.fill(bags, rows, np.zeros(2, np.int64))  # compiles the kernel
    tracemalloc.start()
    with compiling_at_once():
        spec.fill(bags, rows, np.zeros(2, np.int64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < d * d
    expected = np.stack([bag.min(axis=0) for bag in bags]) / np.sqrt(spec.n_features)
    np.testing.assert_allclose(rows[:, ::4], expected, rtol=1e-6)
