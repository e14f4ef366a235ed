"""First bases: from a bag to a vector in R^s."""

from __future__ import annotations

from typing import Any

from ..errors import ModelError
from ..params import checked
from .base import Description, Embedding, EmbeddingSpec, Sample, SeriesShape
from .hdd import HDDEmbedding
from .hdd_spec import HDDSpec
from .histogram import HistogramEmbedding, HistogramSpec
from .mean_map import MeanMapEmbedding, MeanMapSpec, mmd_squared
from .moments import MomentsEmbedding, MomentsSpec
from .projection import ProjectionEmbedding, ProjectionSpec
from .sliced import SlicedWassersteinEmbedding, SlicedWassersteinSpec

# name: (what people configure, what travels). A new embedding is its module and one line here.
EMBEDDINGS: dict[str, tuple[Any, Any]] = {
    "projection": (ProjectionEmbedding, ProjectionSpec),
    "hdd": (HDDEmbedding, HDDSpec),
    "mean_map": (MeanMapEmbedding, MeanMapSpec),
    "histogram": (HistogramEmbedding, HistogramSpec),
    "moments": (MomentsEmbedding, MomentsSpec),
    "sliced_wasserstein": (SlicedWassersteinEmbedding, SlicedWassersteinSpec),
}


@checked
def spec_to_dict(spec: EmbeddingSpec) -> dict[str, Any]:
    """JSON-able, with the embedding's registered name."""
    name = next(name for name, (_, kind) in EMBEDDINGS.items() if type(spec) is kind)
    return {"name": name, **spec.to_dict()}


@checked
def spec_from_dict(values: dict[str, Any]) -> EmbeddingSpec:
    """Return the inverse of `spec_to_dict`; ModelError for a name this version does not know."""
    fields = dict(values)
    name = fields.pop("name", None)
    if name not in EMBEDDINGS:
        raise ModelError(f"unknown embedding {name!r}; this version knows {sorted(EMBEDDINGS)}")
    spec: EmbeddingSpec = EMBEDDINGS[name][1].from_dict(fields)
    return spec


__all__ = [
    "EMBEDDINGS",
    "Description",
    "Embedding",
    "EmbeddingSpec",
    "HDDEmbedding",
    "HDDSpec",
    "HistogramEmbedding",
    "HistogramSpec",
    "MeanMapEmbedding",
    "MeanMapSpec",
    "MomentsEmbedding",
    "MomentsSpec",
    "ProjectionEmbedding",
    "ProjectionSpec",
    "Sample",
    "SeriesShape",
    "SlicedWassersteinEmbedding",
    "SlicedWassersteinSpec",
    "mmd_squared",
    "spec_from_dict",
    "spec_to_dict",
]
