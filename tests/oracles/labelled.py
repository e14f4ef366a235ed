"""Small labelled bags, and the features of a fitted model the slow way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import BagStore
from bagbasis.data.labelled.labelled import LabelledBags
from bagbasis.data.labelled.labels import Targets

from . import fourier, series

__all__ = [
    "Labelled",
    "LabelledBags",
    "Targets",
    "features_by_loop",
    "labelled",
    "labelled_bags",
    "stored",
]

Labelled = tuple[list[NDArray[Any]], NDArray[np.float64]]


def labelled_bags(
    n: int, n_dims: int = 2, seed: int = 0, most: int = 40, dtype: Any = np.float64
) -> Labelled:
    """Bags of 1 to ``most`` Beta(a, 2) points in the unit cube, and a smooth function of a."""
    rng = np.random.default_rng(seed)
    shape = rng.uniform(1, 4, n)
    sizes = rng.integers(1, most + 1, n)
    bags = [
        rng.beta(a, 2, (size, n_dims)).astype(dtype) for a, size in zip(shape, sizes, strict=True)
    ]
    return bags, np.sin(2 * shape) + 0.05 * rng.standard_normal(n)


def stored(
    url: Any,
    bags: Sequence[NDArray[Any]],
    targets: NDArray[np.float64] | None,
    names: Sequence[str] = ("y",),
    *,
    ids: Sequence[Any] | None = None,
    **options: Any,
) -> BagStore:
    """A store of double-precision bags."""
    n_dims = bags[0].shape[1]
    store = BagStore.create(url, n_dims, target_names=names, **{"dtype": np.float64, **options})
    return store.append(bags, targets, ids=ids)


def labelled(
    data: Any,
    y: Any = None,
    names: Sequence[str] = ("y",),
    *,
    kind: type[LabelledBags] = LabelledBags,
    **options: Any,
) -> LabelledBags:
    """Bags in memory with targets, or those of a store with the targets of these names."""
    if y is None:
        return kind(data, Targets(tuple(names)), **options)
    y = np.asarray(y)  # of no bags, too
    return kind(data, Targets((), y if y.ndim == 2 else y[:, None]), **options)


def features_by_loop(model: Any, bags: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """z(A(X)) of a fitted estimator's two bases, by the oracles of both."""
    first, second = model.features_.embedding, model.features_.second
    size = first.marginals or first.n_dims
    embeddings, _ = series.project_by_loop(
        bags,
        series.index_set_by_loop(size, first.n_per_dim, first.max_norm, first.basis),
        first.basis,
        first.box.lo,
        first.box.hi,
        marginals=first.marginals,
        mode=first.out_of_box,
    )
    return fourier.features(embeddings, second.frequencies())
