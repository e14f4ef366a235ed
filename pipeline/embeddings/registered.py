"""Embeddings by name, and specs as dictionaries that carry the name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from numpy.typing import NDArray

from ..core import Instance, MappingOf, NameIn, Open, Text, checked
from .base import Embedding, EmbeddingSpec
from .kinds import EMBEDDINGS, from_name, with_name


def named_embedding(name: str) -> Embedding[Any]:
    """Return the embedding of a registered name, or of a distance of HDD, with its defaults.

    Raises
    ------
    ParameterError
        Another name.
    """
    return EMBEDDINGS.make(NameIn(EMBEDDINGS).check("embedding", name))


@checked()
def spec_to_dict(spec: Annotated[EmbeddingSpec, Instance("EmbeddingSpec")]) -> dict[str, Any]:
    """JSON-able, with the embedding's registered name."""
    return with_name(spec)


@checked()
def spec_from_dict(
    values: Annotated[dict[str, Any], MappingOf(Text, Open())],
    arrays: Annotated[Mapping[str, NDArray[Any]], MappingOf(Text, Open())] | None = None,
) -> EmbeddingSpec:
    """Return the inverse of `spec_to_dict` and of `EmbeddingSpec.arrays`.

    Raises
    ------
    ModelError
        A name that this version does not know.
    """
    return from_name(values, arrays)
