"""bagbasis: learning from bags (sample sets) at cluster scale.

A public name is imported when it is first used, so that ``bags --help`` or a refused config does
not wait for Dask, Numba and scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import threads  # noqa: F401 - before BLAS is loaded

if TYPE_CHECKING:
    from .bags import Bags, BagStore
    from .clusters import connect
    from .embeddings import (
        BagOfWordsEmbedding,
        CoefficientPCA,
        EmbeddingUnion,
        HDDEmbedding,
        HistogramEmbedding,
        MeanMapEmbedding,
        MomentsEmbedding,
        PointTransformer,
        ProjectionEmbedding,
        SlicedWassersteinEmbedding,
    )
    from .evaluation import cross_val_score, evaluate
    from .random_features import (
        LearnedFourierFeatures,
        NystroemFeatures,
        RandomFourierFeatures,
    )
    from .regression import (
        DoubleBasisClassifier,
        DoubleBasisRegressor,
        KernelSmoother,
        TripleBasisRegressor,
        features,
        load_model,
    )

__version__ = "0.1.0"

__all__ = [
    "BagOfWordsEmbedding",
    "BagStore",
    "Bags",
    "CoefficientPCA",
    "DoubleBasisClassifier",
    "DoubleBasisRegressor",
    "EmbeddingUnion",
    "HDDEmbedding",
    "HistogramEmbedding",
    "KernelSmoother",
    "LearnedFourierFeatures",
    "MeanMapEmbedding",
    "MomentsEmbedding",
    "NystroemFeatures",
    "PointTransformer",
    "ProjectionEmbedding",
    "RandomFourierFeatures",
    "SlicedWassersteinEmbedding",
    "TripleBasisRegressor",
    "connect",
    "cross_val_score",
    "evaluate",
    "features",
    "load_model",
]

# The room of each public name: what `__all__` lists and the block for type checkers imports.
_ROOMS = {
    "bags": ("BagStore", "Bags"),
    "clusters": ("connect",),
    "embeddings": (
        "BagOfWordsEmbedding",
        "CoefficientPCA",
        "EmbeddingUnion",
        "HDDEmbedding",
        "HistogramEmbedding",
        "MeanMapEmbedding",
        "MomentsEmbedding",
        "PointTransformer",
        "ProjectionEmbedding",
        "SlicedWassersteinEmbedding",
    ),
    "evaluation": ("cross_val_score", "evaluate"),
    "random_features": ("LearnedFourierFeatures", "NystroemFeatures", "RandomFourierFeatures"),
    "regression": (
        "DoubleBasisClassifier",
        "DoubleBasisRegressor",
        "KernelSmoother",
        "TripleBasisRegressor",
        "features",
        "load_model",
    ),
}


if not TYPE_CHECKING:  # a checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        for room, names in _ROOMS.items():
            if name in names:
                value = getattr(import_module(f".{room}", __name__), name)
                globals()[name] = value  # the next look-up does not come here
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
