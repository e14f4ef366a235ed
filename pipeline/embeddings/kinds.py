"""The embeddings of one kind by name; what several of them make is `EmbeddingUnion`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..errors import ModelError, ParameterError, shown
from ..parameters import check_parameters
from .base import Embedding, EmbeddingSpec
from .extremes import ExtremesEmbedding, ExtremesSpec
from .hdd import HDDEmbedding
from .hdd_spec import HDDSpec
from .histogram import HistogramEmbedding, HistogramSpec
from .mean_map import MeanMapEmbedding, MeanMapSpec
from .moments import MomentsEmbedding, MomentsSpec
from .projection import ProjectionEmbedding, ProjectionSpec
from .sliced import SlicedWassersteinEmbedding, SlicedWassersteinSpec
from .words import BagOfWordsEmbedding, BagOfWordsSpec

Kinds = Mapping[str, tuple[Any, Any]]
"""name: (what people configure, what travels)."""
Arrays = Mapping[str, NDArray[Any]]

INNER = "embedding"  # the field that holds the inner embedding of another one

# A new embedding is its module and one line here.
PARTS: dict[str, tuple[Any, Any]] = {
    "projection": (ProjectionEmbedding, ProjectionSpec),
    "hdd": (HDDEmbedding, HDDSpec),
    "mean_map": (MeanMapEmbedding, MeanMapSpec),
    "histogram": (HistogramEmbedding, HistogramSpec),
    "moments": (MomentsEmbedding, MomentsSpec),
    "sliced_wasserstein": (SlicedWassersteinEmbedding, SlicedWassersteinSpec),
    "extremes": (ExtremesEmbedding, ExtremesSpec),
    "bag_of_words": (BagOfWordsEmbedding, BagOfWordsSpec),
}


def with_name(spec: EmbeddingSpec, kinds: Kinds = PARTS) -> dict[str, Any]:
    """JSON-able, with the embedding's registered name."""
    name = next(name for name, (_, kind) in kinds.items() if type(spec) is kind)
    return {"name": name, **spec.to_dict()}


def from_name(
    values: Mapping[str, Any], kinds: Kinds = PARTS, arrays: Arrays | None = None
) -> EmbeddingSpec:
    """Return the inverse of `with_name` and of `EmbeddingSpec.arrays`.

    Raises
    ------
    ModelError
        A name that is not there.
    """
    fields = dict(values)
    name = fields.pop("name", None)
    if name not in kinds:
        raise ModelError(f"unknown embedding {name!r}; this version knows {sorted(kinds)}")
    spec_kind: type[EmbeddingSpec] = kinds[name][1]
    fields |= {key: (arrays or {}).get(key) for key in spec_kind.array_names}
    if isinstance(fields.get(INNER), Mapping):
        fields[INNER] = from_name(fields[INNER], kinds, arrays)
    return spec_kind.from_dict(fields)


def names_of_arrays(values: Mapping[str, Any], kinds: Kinds) -> tuple[str, ...]:
    """Return the names of the `EmbeddingSpec.arrays` of what `with_name` described."""
    own: tuple[str, ...] = kinds[values["name"]][1].array_names if values["name"] in kinds else ()
    return own + (names_of_arrays(values[INNER], kinds) if INNER in values else ())


def check_inner(given: Embedding[Any] | None, kinds: Kinds, owner: str) -> Embedding[Any]:
    """Return the inner embedding of another one; ProjectionEmbedding() for None.

    Raises
    ------
    ParameterError
        None of these kinds, or one with a box of its own.
    """
    if given is None:
        return ProjectionEmbedding()
    if type(given) not in [kind for kind, _ in kinds.values()]:
        names = ", ".join(kind.__name__ for kind, _ in kinds.values())
        raise ParameterError(f"{INNER} is {shown(given)}; expected one of {names}, or None")
    if given.box is not None or given.out_of_box != "clip":
        raise ParameterError(f"{INNER} has a box or out_of_box: give the {owner}'s")
    check_parameters(given)
    return given


def from_params(values: Mapping[str, Any] | None, kinds: Kinds) -> Embedding[Any] | None:
    """Return the embedding of {name, params}, as a saved model has them."""
    if values is None:
        return None
    made: Embedding[Any] = kinds[values["name"]][0].from_params(values["params"])
    return made
