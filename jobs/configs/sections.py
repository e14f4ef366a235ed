"""Sections of configs, made from the library's constructors.

A key of such a section is a parameter of the class that it configures: default, range and help text
are declared there. Everything registered in `bagbasis.embeddings.EMBEDDINGS` can be configured. A
name instead of the section ("js", "moments") is that embedding with its defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from bagbasis.core import Parameter, parameters_of
from bagbasis.core.errors import ConfigError, closest
from bagbasis.core.moved import without_gone
from bagbasis.embeddings import DEFAULT_FEATURES, EMBEDDINGS, RANDOM_FEATURES
from bagbasis.embeddings.composed.point_maps import (
    checked_steps,
    transformer_of,
    transformer_to_list,
)
from bagbasis.embeddings.kinds import INNER
from bagbasis.models.fitting.fit_parameters import AUTO

from .config import Section
from .types import type_of

_S = TypeVar("_S", bound=Section)

_Steps: Any = Annotated[list[dict[str, Any]], Field(min_length=1)]  # of a transformer of points
_LIST: Any = list  # what is made of values at run time is not a type to a checker

DEFAULT_EMBEDDING = "projection"  # the embedding of a section without a name
PARTS_KEY = "parts"  # key of the embeddings of a union
TRANSFORMER = "transformer"  # and of scikit-learn's transformers
NONE = "none"  # what false is among the kinds of a section
KEYS_WITHIN = "keys"  # in the schema of a key: names within it, which shells complete
NOT_CONFIGURED = ("dtype",)  # of what `transform` returns; a fit has its own precision


def with_parameters(
    owner: Callable[..., Any] | Mapping[str, Parameter],
    only: Collection[str] = (),
    leave_out: Collection[str] = (),
    examples: Mapping[str, Any] | None = None,
) -> Callable[[type[_S]], type[_S]]:
    """Return a decorator that gives a section the parameters of a class, a function or a mapping.

    ``examples`` are values that people see where a key has no default.
    """
    parameters = owner if isinstance(owner, Mapping) else parameters_of(owner)
    chosen = {k: p for k, p in parameters.items() if k not in leave_out and (not only or k in only)}

    def decorate(section: type[_S]) -> type[_S]:
        return create_model(
            section.__name__,
            __base__=section,
            __module__=section.__module__,
            __doc__=section.__doc__,
            **_fields(chosen, examples or {}),
        )

    return decorate


def parameter_of(
    owner: Callable[..., Any], name: str, text: str | None = None, **changes: object
) -> Parameter:
    """Return a parameter of a class or a function, with what a config says of it otherwise."""
    declared = parameters_of(owner)[name]
    return replace(declared, text=declared.summary if text is None else text, **changes)  # type: ignore[arg-type]


def parameters_field(what: str, kinds: Mapping[str, type[Any]], **options: Any) -> Any:  # noqa: ANN401 - a key
    """Return the key for the parameters of a component; help and shells list those of each kind."""
    names = {name: [*parameters_of(kind)] for name, kind in kinds.items()}
    listed = "; ".join(f"{name}: {', '.join(each)}" for name, each in names.items() if each)
    keys: dict[str, Any] = {KEYS_WITHIN: sorted({key for each in names.values() for key in each})}
    return Field(
        default={},
        description=f"parameters of the {what}; {listed}",
        json_schema_extra=keys,
        **options,
    )


def check_keys(key: str, values: Iterable[str], name: str, kind: type[Any]) -> None:
    """Raise ConfigError for a key of a component's parameters that the component does not have."""
    known = [*parameters_of(kind)]
    for unknown in values:
        if unknown not in known:
            has = f"has {', '.join(known)}" if known else "has no parameters"
            raise ConfigError(
                f"unknown key '{key}.{unknown}'{closest(unknown, known)}; {name} {has}"
            )


def _fields(
    parameters: Mapping[str, Parameter], examples: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        key: (
            type_of(parameter.accepts),
            Field(
                _written(parameter.default),
                description=parameter.summary,
                examples=[examples[key]] if examples and key in examples else None,
            ),
        )
        for key, parameter in parameters.items()
    }


def _written(default: object) -> object:
    """Return a default as YAML has it."""
    return list(default) if isinstance(default, tuple) else default


def named_section(
    name: str,
    parameters: Mapping[str, Parameter],
    what: str,
    types: Mapping[str, Any] | None = None,
) -> type[Section]:
    """Make the section of an embedding or of random features, whose ``name`` is fixed."""
    chosen = {key: parameter for key, parameter in parameters.items() if key not in NOT_CONFIGURED}
    keys = _fields(chosen)
    for key in keys.keys() & (types or {}).keys():
        keys[key] = ((types or {})[key], keys[key][1])
    kind: Any = (Literal[name], Field(name, description=f"the kind of {what}"))
    title = f"{name.title().replace('_', '')}Section"
    return create_model(title, __base__=Section, name=kind, **keys)


def union_of(sections: Mapping[str, object], default: str) -> object:
    """Make the type of a section of several kinds, or false; ``name`` says which one it is."""

    def name_of(value: object) -> object:
        if isinstance(value, Mapping):
            return value.get("name", default)
        return NONE if value is False else getattr(value, "name", "")

    tagged = [Annotated[section, Tag(name)] for name, section in sections.items()]
    return Annotated[Union[tuple(tagged)], Discriminator(name_of)]  # noqa: UP007


def _expand(value: object) -> object:
    if isinstance(value, Mapping):
        return without_gone_keys(value)
    if not isinstance(value, str):
        return value
    if value not in NAMED:
        hint = closest(value, [*NAMED])
        raise ValueError(f"{value!r} is not an embedding{hint}; expected one of {', '.join(NAMED)}")
    return NAMED[value]


def _expand_or_auto(value: object) -> object:
    """Expand a name; "auto" with keys, which it does not have, is the projection that has them.

    So ``--set model.embedding.n_per_dim=8`` needs no name.
    """
    return _expand(_auto_or_keys(value, DEFAULT_EMBEDDING))


def _auto_or_keys(value: object, default: str) -> object:
    """Return the section of "auto", or that of the default kind if it has keys."""
    if isinstance(value, str) and value == AUTO:
        return {"name": AUTO}
    if isinstance(value, Mapping) and value.get("name") == AUTO and len(value) > 1:
        return {**value, "name": default}
    return value


def _expand_features(value: object) -> object:
    value = _auto_or_keys(value, DEFAULT_FEATURES)
    if isinstance(value, (Mapping, Section)) or value is False:
        return value
    if isinstance(value, str) and value in FEATURES:
        return {"name": value}
    kinds = ", ".join([AUTO, *FEATURES])
    raise ValueError(f"{value!r} is neither false nor one of {kinds}")


def without_gone_keys(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out keys of older versions; a best.yaml of `bags tune` may have them."""
    name = value.get("name")
    kind = EMBEDDINGS.get(name) if isinstance(name, str) else None
    return value if kind is None else without_gone(kind.__name__, value)


def _section_of(name: str) -> type[Section]:
    """Make the section of an embedding; one that contains others has sections of these."""
    kind = EMBEDDINGS[name]
    below = {n: section for n, section in _SECTIONS.items() if EMBEDDINGS[n].nesting < kind.nesting}
    inner: Any = (
        Annotated[union_of(below, DEFAULT_EMBEDDING), BeforeValidator(_expand)] if below else None
    )
    types = {
        INNER: inner | None if below else None,
        PARTS_KEY: Annotated[_LIST[inner], Field(min_length=1)] | None,
        TRANSFORMER: Annotated[_Steps, BeforeValidator(checked_steps)] | None,
    }
    return named_section(name, parameters_of(kind), "embedding", types)


_SECTIONS: dict[str, type[Section]] = {}
for _name, _kind in sorted(EMBEDDINGS.items(), key=lambda item: item[1].nesting):
    # each level may contain those before
    _SECTIONS[_name] = _section_of(_name)
_AUTOMATIC = named_section(AUTO, {}, "embedding")  # it has no keys
_AUTOMATIC_FEATURES = named_section(AUTO, {}, "random features")
FEATURES: dict[str, Any] = {
    name: named_section(name, parameters_of(kind), "random features")
    for name, kind in RANDOM_FEATURES.items()
}
# Short names of embeddings: of each registered kind, and of each distance of HDD.
NAMED: dict[str, dict[str, str]] = {
    **{name: {"name": name} for name in EMBEDDINGS},
    **{short: {"name": name, **values} for short, (name, values) in EMBEDDINGS.short_names.items()},
}

if TYPE_CHECKING:
    from bagbasis.embeddings import Embedding, RandomFeatures

    EmbeddingSection = Section
    EmbeddingName = str
    EmbeddingOption = str | None
    ResponseSection = Section

    class _FeaturesSection(Section):
        """What is read here of both kinds."""

        n_features: int
        scale: float | str

    FeaturesSection = _FeaturesSection | Literal[False]
else:
    FeaturesSection = Annotated[
        union_of({**FEATURES, AUTO: _AUTOMATIC_FEATURES, NONE: Literal[False]}, DEFAULT_FEATURES),
        BeforeValidator(_expand_features),
    ]
    EmbeddingSection = Annotated[
        union_of({**_SECTIONS, AUTO: _AUTOMATIC}, DEFAULT_EMBEDDING),
        BeforeValidator(_expand_or_auto),
    ]
    EmbeddingName = Literal[(*NAMED, AUTO)]
    EmbeddingOption = Annotated[
        EmbeddingName | None,
        Field(
            description="a name, instead of the section model.embedding; null: as model.embedding "
            "says"
        ),
    ]
    ResponseSection = _SECTIONS[DEFAULT_EMBEDDING]


def automatic_features() -> Any:  # noqa: ANN401 - a kind of `FeaturesSection` without keys
    """Return the section of the random features that a fit chooses."""
    return _AUTOMATIC_FEATURES()


@lru_cache
def embedding_section(name: str) -> Section:
    """Return the section of an embedding with its defaults; see `NAMED`."""
    if name == AUTO:
        return _AUTOMATIC()
    values = dict(NAMED[name])
    return _SECTIONS[values["name"]](**values)


def is_automatic(section: Section) -> bool:
    """Return whether an embedding's section stands for the one that a fit chooses."""
    name: str = section.model_dump()["name"]
    return name == AUTO


def build_or_auto(section: Section) -> Embedding | Literal["auto"]:
    """Make the embedding of a section, or return "auto", which a fit decides."""
    return "auto" if is_automatic(section) else build(section)


def build(section: Section) -> Embedding:
    """Make the embedding of a section; parts of a union have the names of `name_parts`."""
    from bagbasis.embeddings.composed.union import name_parts

    values = section.model_dump()
    kind = EMBEDDINGS[values.pop("name")]
    if values.get("parts") is not None:
        parts: list[Section] = getattr(section, "parts")  # noqa: B009 - the union's section alone
        values["parts"] = name_parts([build(part) for part in parts])
    if values.get(INNER) is not None:
        values[INNER] = build(getattr(section, INNER))
    if values.get(TRANSFORMER) is not None:
        values[TRANSFORMER] = transformer_of(values[TRANSFORMER])
    return kind(**values)


def section_of(embedding: Embedding[Any]) -> Section:
    """Return the section that `build` makes the embedding of."""
    name = embedding.kind_name
    values = embedding.get_params(deep=False)
    if values.get("parts") is not None:
        values["parts"] = [section_of(part) for _, part in values["parts"]]
    if values.get(INNER) is not None:
        values[INNER] = section_of(values[INNER])
    if values.get(TRANSFORMER) is not None:
        values[TRANSFORMER] = transformer_to_list(values[TRANSFORMER])
    return _SECTIONS[name](**{k: v for k, v in values.items() if k not in NOT_CONFIGURED})


def title_of(values: Mapping[str, Any]) -> str:
    """Return the most telling name of an embedding's section: "js" rather than "hdd"."""
    fitting = [name for name, fixed in NAMED.items() if fixed.items() <= values.items()]
    return max(fitting, key=lambda name: len(NAMED[name]))


def section_of_features(random_features: RandomFeatures | Literal[False]) -> FeaturesSection | bool:
    """Return the section that `build_features` makes these of."""
    if random_features is False:
        return False
    kind = FEATURES[random_features.kind_name]
    section: FeaturesSection = kind(**random_features.get_params())
    return section


def build_features(section: Section | Literal[False]) -> RandomFeatures | Literal[False] | None:
    """Make the random features that a section stands for; False: none, None: those of a fit."""
    from bagbasis.embeddings import RANDOM_FEATURES

    if section is False:
        return False
    if is_automatic(section):
        return None
    values = section.model_dump()
    return RANDOM_FEATURES[values.pop("name")](**values)
