"""The embeddings of one kind by name; what several of them make is `EmbeddingUnion`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ModelError
from .base import EmbeddingSpec
from .hdd import HDDEmbedding
from .hdd_spec import HDDSpec
from .histogram import HistogramEmbedding, HistogramSpec
from .mean_map import MeanMapEmbedding, MeanMapSpec
from .moments import MomentsEmbedding, MomentsSpec
from .projection import ProjectionEmbedding, ProjectionSpec
from .sliced import SlicedWassersteinEmbedding, SlicedWassersteinSpec

Kinds = Mapping[str, tuple[Any, Any]]
"""name: (what people configure, what travels)."""

# A new embedding is its module and one line here.
PARTS: dict[str, tuple[Any, Any]] = {
    "projection": (ProjectionEmbedding, ProjectionSpec),
    "hdd": (HDDEmbedding, HDDSpec),
    "mean_map": (MeanMapEmbedding, MeanMapSpec),
    "histogram": (HistogramEmbedding, HistogramSpec),
    "moments": (MomentsEmbedding, MomentsSpec),
    "sliced_wasserstein": (SlicedWassersteinEmbedding, SlicedWassersteinSpec),
}


def with_name(spec: EmbeddingSpec, kinds: Kinds = PARTS) -> dict[str, Any]:
    """JSON-able, with the embedding's registered name."""
    name = next(name for name, (_, kind) in kinds.items() if type(spec) is kind)
    return {"name": name, **spec.to_dict()}


def from_name(values: Mapping[str, Any], kinds: Kinds = PARTS) -> EmbeddingSpec:
    """Return the inverse of `with_name`; ModelError for a name that is not there."""
    fields = dict(values)
    name = fields.pop("name", None)
    if name not in kinds:
        raise ModelError(f"unknown embedding {name!r}; this version knows {sorted(kinds)}")
    spec: EmbeddingSpec = kinds[name][1].from_dict(fields)
    return spec
