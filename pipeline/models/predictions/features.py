"""Lazy arrays with a row per bag of a store: features for other libraries, and predictions."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core import Instance, checked
from ...core.errors import ParameterError
from ...data.bags.bags import Bags
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.store.plan import Range
from ...data.store.store import BagStore
from ...embeddings.base import Embedding
from ...embeddings.random_features.base import RandomFeatures
from ...execution.computations import watch_computations
from ...execution.costs import Cost, plan_blocks
from ...execution.lazy_dask import LazyArray
from ...execution.passes import lazy_features, lazy_pass, rows_of
from ..fitting.feature_map import FeatureMap, in_embedded_order, resolve_features
from .outside import counting_outside, hear_of_outside, topic_of, warn_at_end

OfBags = Callable[[Bags], NDArray[Any]]
"""A function that computes an array with a row per bag; it is sent to workers."""


@checked
def features(
    store: Annotated[BagStore, Instance()],
    embedding: Annotated[Embedding, Instance()],
    random_features: Annotated[RandomFeatures, Instance()] | None = None,
    *,
    dtype: str = "float32",
) -> LazyArray:
    """Return the features of every bag of a store as a lazy dask.array, chunked by bags.

    Parameters
    ----------
    store : BagStore
    embedding : embedding, fitted or not
        Embedding of the bags. If it is not fitted, it uses the box of the store, and parameters
        that are "auto" are chosen on a sample of the bags.
    random_features : RandomFourierFeatures or NystroemFeatures, fitted or not, optional
        Random features of the embeddings. Default: the embeddings themselves are returned.
    dtype : {"float32", "float64"}
        Precision of the features.

    See Also
    --------
    connect : Run on all cores or on a cluster.
    DoubleBasisRegressor : Predict numbers from bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, ProjectionEmbedding, features
    >>> store = BagStore.create('bags.zarr', n_dims=2).append(X)
    >>> features(store, ProjectionEmbedding(n_per_dim=4)).shape
    (80, 16)
    """
    if dtype not in ("float32", "float64"):
        raise ParameterError(f"dtype is {dtype!r}; expected 'float32' or 'float64'")
    bags = in_embedded_order(LabelledBags(store), embedding)
    whole = resolve_features(bags, embedding, random_features)
    of_batch = partial(_features_of, whole, dtype)
    return lazy_features(bags, of_batch, whole.cost, whole.n_features, dtype)


def lazy_predictions(
    of_bags: OfBags,
    cost: Cost,
    store: BagStore,
    tail: tuple[int, ...],
    dtype: DTypeLike,
    are_parts_alike: bool = False,
) -> LazyArray:
    """Return the rows that ``of_bags`` computes for a store: a dask.array of shape (n, *tail).

    ``cost`` is the cost of ``of_bags``. With ``are_parts_alike``, parts of the array that are
    computed one after the other warn once of bags outside the box.
    """
    watch_computations()
    hear_of_outside(store)
    ranges = prediction_ranges(store, cost, 8 * int(np.prod(tail)))
    call = uuid.uuid4().hex if are_parts_alike else ""
    rows = rows_of("predict", _RowsOfStore(of_bags, store, topic_of(store), call), cost)
    return lazy_pass(LabelledBags(store), rows, ranges, tail, dtype)


def prediction_ranges(store: BagStore, cost: Cost, row_bytes: int = 8) -> list[Range]:
    """Divide a store into ranges, each with a few seconds of work and at most 64 MiB of rows."""
    return plan_blocks(store.n_bags, store.meta.n_points, row_bytes, cost)


def _features_of(features: FeatureMap, dtype: str, batch: Batch) -> NDArray[Any]:
    out = np.empty((len(batch), features.n_features), dtype=dtype)
    for first, block, _ in features.blocks(batch.bags, dtype):
        out[first : first + len(block)] = block
    return out


@dataclass(frozen=True)
class _RowsOfStore:
    """Computes the rows of each batch of a store, and reports bags outside the box."""

    of_bags: OfBags
    store: BagStore
    topic: str
    call: str = ""

    def __call__(self, batch: Batch) -> NDArray[Any]:
        with counting_outside(batch.index) as counted:
            rows = self.of_bags(batch.bags)
        warn_at_end(counted, self.store, self.topic, self.call)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for workers; this process listens to their reports from now on."""
        hear_of_outside(self.store)
        return vars(self)

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Return the fields on which the rows depend: all but topic and call."""
        return type(self).__name__, self.of_bags, self.store
