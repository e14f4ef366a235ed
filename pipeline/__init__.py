"""bagbasis: learning from bags (sample sets) at cluster scale."""

from . import threads  # noqa: F401 - before BLAS is loaded
from .bags import Bags, BagStore
from .embeddings import HDDEmbedding, ProjectionEmbedding
from .execution import connect
from .features import features
from .models import load_model
from .random_features import RandomFourierFeatures
from .regression import DoubleBasisClassifier, DoubleBasisRegressor

__version__ = "0.1.0"

__all__ = [
    "BagStore",
    "Bags",
    "DoubleBasisClassifier",
    "DoubleBasisRegressor",
    "HDDEmbedding",
    "ProjectionEmbedding",
    "RandomFourierFeatures",
    "connect",
    "features",
    "load_model",
]
