"""Every embedding by its name, and specs as dictionaries that carry the name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..parameters import Instance, MappingOf, None_, Open, Text, checked
from ..parameters.embeddings import NAMES
from .base import Embedding, EmbeddingSpec
from .composed.point_transformer import PointTransformer, PointTransformerSpec
from .composed.shrunk import SHRUNK
from .hdd import HDDEmbedding
from .kinds import from_name, with_name

# name: (what people configure, what travels). A new embedding is its module and a line of `PARTS`.
EMBEDDINGS: dict[str, tuple[Any, Any]] = {
    **SHRUNK,
    "point_transformer": (PointTransformer, PointTransformerSpec),
}


def named_embedding(name: str) -> Embedding[Any]:
    """Return the embedding of a registered name, or of a distance of HDD, with its defaults.

    Raises
    ------
    ParameterError
        Another name.
    """
    NAMES.check("embedding", name)
    made: Embedding[Any]
    made = EMBEDDINGS[name][0]() if name in EMBEDDINGS else HDDEmbedding(name)
    return made


@checked(spec=Instance("EmbeddingSpec"))
def spec_to_dict(spec: EmbeddingSpec) -> dict[str, Any]:
    """JSON-able, with the embedding's registered name."""
    return with_name(spec, EMBEDDINGS)


@checked(values=MappingOf(Text, Open()), arrays=MappingOf(Text, Open()) | None_)
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
