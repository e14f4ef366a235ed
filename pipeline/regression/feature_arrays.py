"""`features`: a store's features as a lazy array, for any other library."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bags import BagStore
from ..errors import ParameterError
from ..execution import lane, lazy_rows
from .feature_map import resolve_features
from .prediction import FeatureRows, prediction_ranges
from .source import StoreSource


def features(
    store: BagStore, embedding: Any, random_features: Any = None, dtype: str = "float32"
) -> Any:
    """Features of every bag, shape (n_bags, s or D), as a dask.array chunked by ranges of bags.

    Parameters
    ----------
    store : BagStore
    embedding : embedding, fitted or not
        An unfitted one takes the store's box, and "auto" is chosen on a sample of its bags.
    random_features : RandomFourierFeatures, fitted or not, optional
        None gives the embeddings A themselves.
    dtype : {"float32", "float64"}
    """
    if dtype not in ("float32", "float64"):
        raise ParameterError(f"dtype is {dtype!r}; expected 'float32' or 'float64'")
    with lane():
        whole = resolve_features(StoreSource(store, ()), embedding, random_features)
    ranges = prediction_ranges(store, whole, whole.n_features * np.dtype(dtype).itemsize)
    return lazy_rows(FeatureRows(whole, store, dtype), ranges, (whole.n_features,), dtype)
