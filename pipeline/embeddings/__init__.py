"""First bases: from a bag to a vector in R^s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..params import checked
from .base import Description, Embedding, EmbeddingSpec, SeriesShape
from .coefficient_pca import REDUCED, CoefficientPCA, CoefficientPCASpec
from .hdd import HDDEmbedding
from .hdd_spec import HDDSpec
from .histogram import HistogramEmbedding, HistogramSpec
from .kinds import from_name, with_name
from .mean_map import MeanMapEmbedding, MeanMapSpec, mmd_squared
from .moments import MomentsEmbedding, MomentsSpec
from .point_transformer import PointTransformer, PointTransformerSpec
from .projection import ProjectionEmbedding, ProjectionSpec
from .sliced import SlicedWassersteinEmbedding, SlicedWassersteinSpec
from .union import EmbeddingUnion, UnionSpec, name_parts
from .words import BagOfWordsEmbedding, BagOfWordsSpec

# name: (what people configure, what travels). A new embedding is its module and a line of `PARTS`.
EMBEDDINGS: dict[str, tuple[Any, Any]] = {
    **REDUCED,
    "point_transformer": (PointTransformer, PointTransformerSpec),
}


@checked
def spec_to_dict(spec: EmbeddingSpec) -> dict[str, Any]:
    """JSON-able, with the embedding's registered name."""
    return with_name(spec, EMBEDDINGS)


@checked
def spec_from_dict(
    values: dict[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None
) -> EmbeddingSpec:
    """Return the inverse of `spec_to_dict` and of `EmbeddingSpec.arrays`.

    Raises
    ------
    ModelError
        A name that this version does not know.
    """
    return from_name(values, EMBEDDINGS, arrays)


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
