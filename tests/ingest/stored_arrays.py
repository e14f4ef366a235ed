"""Bags as arrays, and stores that hold them."""

from __future__ import annotations

import numpy as np

from bagbasis import Box
from tests.oracles.ragged import assert_same_responses

SIZES = [1, 2, 255, 256, 257, 3, 40, 1]


def assert_holds(store, arrays, ids=None):
    store.verify()
    bags = store.read()
    assert len(bags) == len(arrays)
    for bag, array in zip(bags, arrays, strict=True):
        np.testing.assert_array_equal(bag, array.astype(store.dtype))
    expected = list(range(len(arrays))) if ids is None else list(ids)
    assert store.ids().tolist() == expected


def assert_holds_responses(store, responses):
    """The store's responses are the arrays, and their box is that of all their points."""
    expected = [None if r is None else r.astype(store.dtype) for r in responses]
    assert_same_responses(store.responses(), expected)
    points = np.concatenate([r for r in responses if r is not None])
    np.testing.assert_allclose(
        store.response_box.bounds,
        Box.around(points.min(axis=0), points.max(axis=0)).bounds,
        rtol=1e-12,
    )
