"""`EMBEDDINGS`: the embeddings by name, and how one registers itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar, dataclass_transform

from ..core import ComponentRegistry, check_parameters
from ..core.errors import ModelError, ParameterError, shown
from .base import Embedding, EmbeddingSpec
from .transforms import NO_ARRAYS, Arrays, register_estimator

E = TypeVar("E", bound=Embedding[Any])

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
) -> Callable[[type[E]], type[E]]:
    """Return a decorator that registers an `Embedding` and makes its constructor from its fields.

    Parameters
    ----------
    name
        Name in configs, saved models and messages.
    spec
        Class of what `Embedding.decide` returns.
    nesting
        Level of the embedding: it may contain embeddings of lower levels only. Embeddings that
        contain no others have level 0.
    short_names
        Further names, and the parameters that each of them stands for.
    """
    register: Callable[[type[E]], type[E]] = register_estimator(EMBEDDINGS, name, spec, short_names)

    def register_level(cls: type[E]) -> type[E]:
        cls.nesting = spec.nesting = nesting
        return register(cls)

    return register_level


def is_below(kind: type[Embedding[Any] | EmbeddingSpec], nesting: int) -> bool:
    """Return whether embeddings of a class are registered, and may be inside one of a level."""
    return "kind_name" in vars(kind) and kind.nesting < nesting


def with_name(spec: EmbeddingSpec) -> dict[str, Any]:
    """JSON-able, with the embedding's registered name."""
    return {"name": spec.kind_name, **spec.to_dict()}


def from_name(
    values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS, nesting: int | None = None
) -> EmbeddingSpec:
    """Return the inverse of `with_name` and of `EmbeddingSpec.arrays`.

    Raises
    ------
    ModelError
        A name that is not registered, or is of an embedding that cannot be inside one of this
        level.
    """
    fields = dict(values)
    name = fields.pop("name", None)
    known = name in EMBEDDINGS and (nesting is None or EMBEDDINGS[name].nesting < nesting)
    if not known:
        raise ModelError(f"unknown embedding {name!r}; this version knows {list(EMBEDDINGS)}")
    kind = EMBEDDINGS[name].spec_kind
    if isinstance(fields.get(INNER), Mapping):
        fields[INNER] = from_name(fields[INNER], arrays, kind.nesting)
    return kind.from_dict(fields, arrays)


def names_of_arrays(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the `EmbeddingSpec.arrays` of what `with_name` described."""
    name = values["name"]
    own = EMBEDDINGS[name].spec_kind.array_names if name in EMBEDDINGS else ()
    return own + (names_of_arrays(values[INNER]) if INNER in values else ())


def check_inner(inner: Embedding[Any] | None, owner: Embedding[Any]) -> Embedding[Any]:
    """Return the inner embedding of another one; ProjectionEmbedding() for None.

    Raises
    ------
    ParameterError
        No embedding that may be inside the other one, or one with a box of its own.
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
    """Return the embedding of {name, params}, as a saved model has them."""
    return None if values is None else EMBEDDINGS[values["name"]].from_params(values["params"])
