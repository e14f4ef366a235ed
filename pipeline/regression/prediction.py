"""Predicting ranges of a store: what a lazy array or a job runs, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, BagStore
from ..bags.plan import Range
from ..bags.reading import iter_bags
from .feature_map import FeatureMap, naming

BLOCK_SECONDS = 2.0
BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class PredictedRows:
    """``model.method`` of a range of a store's bags; a pure function of the range."""

    model: Any
    store: BagStore
    method: str
    arguments: tuple[Any, ...] = ()

    def __call__(self, start: int, stop: int) -> NDArray[Any]:
        parts = []
        for (a, b), bags in iter_bags(self.store, start, stop):
            with naming(self.store.url, range(a, b)):
                parts.append(getattr(self.model, self.method)(bags, *self.arguments))
        return np.concatenate(parts)


@dataclass(frozen=True)
class FeatureRows:
    """Features of a range of a store's bags, shape (n, D) in ``dtype``."""

    features: FeatureMap
    store: BagStore
    dtype: str

    def __call__(self, start: int, stop: int) -> NDArray[Any]:
        out = np.empty((stop - start, self.features.n_features), dtype=self.dtype)
        for (a, b), bags in iter_bags(self.store, start, stop):
            with naming(self.store.url, range(a, b)):
                self._fill(bags, out[a - start : b - start])
        return out

    def _fill(self, bags: Bags, out: NDArray[Any]) -> None:
        for first, block, _ in self.features.blocks(bags, self.dtype):
            out[first : first + len(block)] = block


def prediction_ranges(store: BagStore, features: FeatureMap, row_bytes: int = 8) -> list[Range]:
    """Ranges of equally many bags: a few seconds of work, and at most 64 MiB of rows, each."""
    n_bags = store.n_bags
    embedding = features.embedding.cost.seconds(n_bags, store.n_points) / max(1, n_bags)
    products = features.n_features * features.embedding.n_features
    seconds = embedding + 5e-9 * features.n_features + 2e-11 * products
    step = max(1, int(min(BLOCK_SECONDS / seconds, BLOCK_BYTES / row_bytes)))
    return [(start, min(n_bags, start + step)) for start in range(0, n_bags, step)]
