"""bagbasis: learning from bags (sample sets) at cluster scale."""

from . import threads  # noqa: F401 - before BLAS is loaded
from .bags import Bags, BagStore
from .embeddings import (
    HDDEmbedding,
    HistogramEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
)
from .execution import connect
from .features import features
from .models import load_model
from .random_features import RandomFourierFeatures
from .regression import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    TripleBasisRegressor,
)

__version__ = "0.1.0"

__all__ = [
    "BagStore",
    "Bags",
    "DoubleBasisClassifier",
    "DoubleBasisRegressor",
    "HDDEmbedding",
    "HistogramEmbedding",
    "KernelSmoother",
    "MeanMapEmbedding",
    "MomentsEmbedding",
    "ProjectionEmbedding",
    "RandomFourierFeatures",
    "TripleBasisRegressor",
    "connect",
    "features",
    "load_model",
]
