"""Embeddings by name, and conversion of specs to dictionaries and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from numpy.typing import NDArray

from ..core import Instance, MappingOf, NameIn, Open, Text, checked
from ..core.errors import ModelError
from ..core.saved import UnknownComponentError
from .base import Embedding, EmbeddingSpec
from .kinds import EMBEDDINGS, from_name, with_name
from .transforms import NO_ARRAYS


def named_embedding(name: str) -> Embedding[Any]:
    """Return the embedding of this name, or of this distance of HDD, with default parameters.

    Raises
    ------
    ParameterError
        If the name is not registered.
    """
    return EMBEDDINGS.make(NameIn(EMBEDDINGS).check("embedding", name))


@checked
def spec_to_dict(spec: Annotated[EmbeddingSpec, Instance()]) -> dict[str, Any]:
    """Return a fitted embedding as a dictionary that can be written as JSON.

    See Also
    --------
    spec_from_dict : Read a fitted embedding from a dictionary.
    bagbasis.models.save_model : Save a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.embeddings import spec_to_dict
    >>> spec_to_dict(MomentsEmbedding().fit(X).spec_)['name']
    'moments'
    """
    return with_name(spec)


@checked
def spec_from_dict(
    values: Annotated[dict[str, Any], MappingOf(Text, Open())],
    arrays: Annotated[Mapping[str, NDArray[Any]], MappingOf(Text, Open())] | None = None,
) -> EmbeddingSpec:
    """Return a fitted embedding from its dictionary and arrays.

    Raises
    ------
    ModelError
        If no embedding of this name is registered.

    See Also
    --------
    spec_to_dict : Write a fitted embedding as a dictionary.
    bagbasis.load_model : Load a saved model.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.embeddings import spec_from_dict, spec_to_dict
    >>> spec = MomentsEmbedding().fit(X).spec_
    >>> spec_from_dict(spec_to_dict(spec)) == spec
    True
    """
    try:
        return from_name(values, arrays or NO_ARRAYS)
    except UnknownComponentError as error:
        raise ModelError(str(error)) from error
