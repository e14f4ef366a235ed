"""A row per bag of a store, as lazy arrays: features for other libraries, and predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core import Instance, None_, Text, checked
from ...core.errors import ParameterError
from ...data.bags.bags import Bags
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.store.plan import Range
from ...data.store.store import BagStore
from ...embeddings.base import Embedding
from ...embeddings.random_features.base import RandomFeatures
from ...execution.computations import watch_computations
from ...execution.costs import Cost, plan_blocks
from ...execution.passes import lazy_pass, rows_of
from ..fitting.feature_map import FeatureMap, in_embedded_order, resolve_features
from .outside import counting_outside, warn_at_end

LazyArray = Any
"""A dask.array, which only `execution` may name."""

OfBags = Callable[[Bags], NDArray[Any]]
"""Makes an array with a row per bag; it travels to workers."""


@checked(
    store=Instance("BagStore"),
    embedding=Instance("Embedding"),
    random_features=Instance("RandomFeatures") | None_,
    dtype=Text,
)
def features(
    store: BagStore,
    embedding: Embedding,
    random_features: RandomFeatures | None = None,
    dtype: str = "float32",
) -> LazyArray:
    """Return features of every bag, a dask.array of shape (n_bags, s or D), chunked by bags.

    Parameters
    ----------
    store : BagStore
    embedding : embedding, fitted or not
        An unfitted one takes the store's box, and "auto" is chosen on a sample of its bags.
    random_features : RandomFourierFeatures or NystroemFeatures, fitted or not, optional
        None gives the embeddings A themselves.
    dtype : {"float32", "float64"}
    """
    if dtype not in ("float32", "float64"):
        raise ParameterError(f"dtype is {dtype!r}; expected 'float32' or 'float64'")
    bags = in_embedded_order(LabelledBags(store), embedding)
    whole = resolve_features(bags, embedding, random_features)
    ranges = prediction_ranges(store, whole.cost, whole.n_features * np.dtype(dtype).itemsize)
    rows = rows_of("features", partial(_features_of, whole, dtype), whole.cost)
    return lazy_pass(bags, rows, ranges, (whole.n_features,), dtype)


def lazy_predictions(
    of_bags: OfBags, cost: Cost, store: BagStore, tail: tuple[int, ...], dtype: DTypeLike
) -> LazyArray:
    """Return what ``of_bags`` makes of a store's bags: a dask.array of rows of shape ``tail``.

    ``cost`` is what it takes.
    """
    watch_computations()
    ranges = prediction_ranges(store, cost, 8 * int(np.prod(tail)))
    rows = rows_of("predict", partial(_predict, of_bags, store), cost)
    return lazy_pass(LabelledBags(store), rows, ranges, tail, dtype)


def prediction_ranges(store: BagStore, cost: Cost, row_bytes: int = 8) -> list[Range]:
    """Cut a store into ranges of a few seconds of work, and at most 64 MiB of rows, each."""
    return plan_blocks(store.n_bags, store.meta.n_points, row_bytes, cost)


def _features_of(features: FeatureMap, dtype: str, batch: Batch) -> NDArray[Any]:
    out = np.empty((len(batch), features.n_features), dtype=dtype)
    for first, block, _ in features.blocks(batch.bags, dtype):
        out[first : first + len(block)] = block
    return out


def _predict(of_bags: OfBags, store: BagStore, batch: Batch) -> NDArray[Any]:
    with counting_outside(batch.index) as counted:
        rows = of_bags(batch.bags)
    warn_at_end(counted, store)
    return rows
