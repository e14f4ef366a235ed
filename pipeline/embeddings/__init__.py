"""First bases: from a bag to a vector in R^s.

The room imports random_features and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

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
    "ExtremesEmbedding",
    "ExtremesSpec",
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
    "SeriesEmbedding",
    "SeriesShape",
    "ShrunkEmbedding",
    "ShrunkSpec",
    "SlicedWassersteinEmbedding",
    "SlicedWassersteinSpec",
    "UnionSpec",
    "bags_of_series",
    "mmd_squared",
    "spec_from_dict",
    "spec_to_dict",
]
