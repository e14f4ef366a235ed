"""First bases: from a bag to a vector in R^s."""

from .base import Embedding, EmbeddingSpec
from .coefficient_pca import CoefficientPCA, CoefficientPCASpec
from .description import Description, SeriesShape
from .hdd import HDDEmbedding
from .hdd_spec import HDDSpec
from .histogram import HistogramEmbedding, HistogramSpec
from .mean_map import MeanMapEmbedding, MeanMapSpec, mmd_squared
from .moments import MomentsEmbedding, MomentsSpec
from .point_transformer import PointTransformer, PointTransformerSpec
from .projection import ProjectionEmbedding, ProjectionSpec
from .registered import EMBEDDINGS, spec_from_dict, spec_to_dict
from .sliced import SlicedWassersteinEmbedding, SlicedWassersteinSpec
from .union import EmbeddingUnion, UnionSpec, name_parts
from .words import BagOfWordsEmbedding, BagOfWordsSpec

__all__ = [
    "EMBEDDINGS",
    "BagOfWordsEmbedding",
    "BagOfWordsSpec",
    "CoefficientPCA",
    "CoefficientPCASpec",
    "Description",
    "Embedding",
    "EmbeddingSpec",
    "EmbeddingUnion",
    "HDDEmbedding",
    "HDDSpec",
    "HistogramEmbedding",
    "HistogramSpec",
    "MeanMapEmbedding",
    "MeanMapSpec",
    "MomentsEmbedding",
    "MomentsSpec",
    "PointTransformer",
    "PointTransformerSpec",
    "ProjectionEmbedding",
    "ProjectionSpec",
    "SeriesShape",
    "SlicedWassersteinEmbedding",
    "SlicedWassersteinSpec",
    "UnionSpec",
    "mmd_squared",
    "name_parts",
    "spec_from_dict",
    "spec_to_dict",
]
