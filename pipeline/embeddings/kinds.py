"""`EMBEDDINGS`: the registry of embeddings, and the decorator that adds to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar, dataclass_transform

from ..core import ComponentRegistry, check_parameters
from ..core.errors import ModelError, ParameterError, shown
from .base import Embedding, EmbeddingSpec
from .transforms import NO_ARRAYS, Arrays, register_estimator

_E = TypeVar("_E", bound=Embedding[Any])

INNER = "embedding"  # the field that holds the inner embedding of another one

EMBEDDINGS: ComponentRegistry[Embedding[Any]] = ComponentRegistry(
    "embedding", "bagbasis.embeddings", __package__
)
"""The embeddings by name."""


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def embedding(
    name: str,
    spec: type[EmbeddingSpec],
    *,
    nesting: int = 0,
    short_names: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[type[_E]], type[_E]]:
    """Return a decorator that registers an `Embedding` and makes its constructor from its fields.

    Parameters
    ----------
    name
        Name in configs, saved models and messages.
    spec
        Class of what `Embedding.decide` returns.
    nesting
        Level of the embedding, which may contain embeddings of lower levels only. Embeddings that
        contain no other embedding have level 0.
    short_names
        Further names, and the parameters that each of them stands for.
    """
    register: Callable[[type[_E]], type[_E]] = register_estimator(
        EMBEDDINGS, name, spec, short_names
    )

    def register_level(cls: type[_E]) -> type[_E]:
        cls.nesting = spec.nesting = nesting
        return register(cls)

    return register_level


def is_below(kind: type[Embedding[Any] | EmbeddingSpec], nesting: int) -> bool:
    """Return whether a class is registered and its level is lower than ``nesting``."""
    return "kind_name" in vars(kind) and kind.nesting < nesting


def with_name(spec: EmbeddingSpec) -> dict[str, Any]:
    """Return the description of a spec for JSON, with the registered name of the embedding."""
    return {"name": spec.kind_name, **spec.to_dict()}


def from_name(
    values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS, nesting: int | None = None
) -> EmbeddingSpec:
    """Return the spec that `with_name` and `EmbeddingSpec.arrays` described.

    Raises
    ------
    UnknownComponentError
        If the name is not registered.
    ModelError
        If the embedding of this name cannot be inside an embedding of level ``nesting``.
    """
    fields = dict(values)
    name = fields.pop("name", None)
    embedding_kind = EMBEDDINGS.saved(name)
    if nesting is not None and embedding_kind.nesting >= nesting:
        raise ModelError(f"{name!r} cannot be the inner embedding of another one")
    kind = embedding_kind.spec_kind
    if isinstance(fields.get(INNER), Mapping):
        fields[INNER] = from_name(fields[INNER], arrays, kind.nesting)
    return kind.from_dict(fields, arrays)


def names_of_arrays(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the `EmbeddingSpec.arrays` for a description by `with_name`."""
    name = values["name"]
    own = EMBEDDINGS[name].spec_kind.array_names if name in EMBEDDINGS else ()
    return own + (names_of_arrays(values[INNER]) if INNER in values else ())


def check_inner(inner: Embedding[Any] | None, owner: Embedding[Any]) -> Embedding[Any]:
    """Return the embedding inside another embedding; ProjectionEmbedding() for None.

    Raises
    ------
    ParameterError
        If ``inner`` cannot be inside ``owner``, or has its own box or ``out_of_box``.
    """
    if inner is None:
        return EMBEDDINGS["projection"]()
    if not is_below(type(inner), owner.nesting):
        kinds = sorted(EMBEDDINGS.values(), key=lambda kind: kind.nesting)
        names = ", ".join(kind.__name__ for kind in kinds if kind.nesting < owner.nesting)
        raise ParameterError(f"{INNER} is {shown(inner)}; expected one of {names}, or None")
    if inner.box is not None or inner.out_of_box != "clip":
        raise ParameterError(f"{INNER} has a box or out_of_box: give the {type(owner).__name__}'s")
    check_parameters(inner)
    return inner


def from_params(values: Mapping[str, Any] | None) -> Embedding[Any] | None:
    """Return the embedding of {name, params} from a saved model; None for None."""
    return (
        None if values is None else EMBEDDINGS.saved(values["name"]).from_params(values["params"])
    )
