"""The ``search`` section of a config, and the embeddings that it describes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal

from pydantic import Field, ValidationError

from bagbasis.core import Integer, constraints_of, parameters_of
from bagbasis.core.config_errors import accepted_by
from bagbasis.core.constraints import members_of
from bagbasis.core.errors import ConfigError, closest
from bagbasis.embeddings import EMBEDDINGS
from bagbasis.embeddings.kinds import INNER
from bagbasis.models import Search
from bagbasis.models.tuning.few_bags import TUNED_AT_ONCE

from .config import Section
from .sections import (
    DEFAULT_EMBEDDING,
    NAMED,
    embedding_section,
    is_automatic,
    section_of,
    title_of,
    with_parameters,
    without_gone_keys,
)
from .types import type_of

KEY = "search.embedding"
RUNGS = ("eta", "first_bags", "seed", "join", "heads")
_WIDTHS = parameters_of(Search)["scale_multipliers"]
MULTIPLIERS = list(_WIDTHS.default)
_COMPARED = [title_of(section_of(embedding).model_dump()) for embedding in Search.auto().embeddings]
WIDTH_FACTORS = (0.7, 1.0, 1.4)


class ScaleSearch(Section):
    """The widths of random features that a search compares."""

    scale_multiplier: type_of(_WIDTHS.accepts) | None = Field(  # type: ignore[valid-type]
        default=None,
        description="kernel widths, as multiples of the median; null: "
        f"{', '.join(f'{width:g}' for width in MULTIPLIERS)}; 1 where "
        "model.random_features.scale is a number",
    )


@with_parameters(Search, only=RUNGS)
class SearchSection(Section):
    """The embeddings and widths that a search compares, and on how many bags."""

    embedding: Literal["auto"] | dict[str, Any] | list[Any] | None = Field(
        default=None,
        description="{parameter: [values]} of model.embedding, or a list of embeddings (names, or "
        "sections with lists in them); auto: what a fit chooses by folds, of more than "
        f"{TUNED_AT_ONCE:,} bags also ridge on means, {', '.join(_COMPARED)}, and what joins them; "
        "null: auto where model.embedding is auto, else values about its main smoothness parameter",
    )
    random_features: ScaleSearch = Field(
        default=ScaleSearch(), description="what is searched of the random features"
    )

    def multipliers(self, scale: float | str) -> list[float]:
        """Return the multipliers of σ, for the ``scale`` of the model."""
        multipliers: list[float] | None = self.random_features.scale_multiplier
        if multipliers is not None:
            return multipliers
        return MULTIPLIERS if scale == "median" else [1.0]


def embeddings_of(candidates: dict[str, Any] | list[Any] | None, base: Section) -> list[Section]:
    """Return the embedding sections that a search compares.

    Parameters
    ----------
    candidates : what ``search.embedding`` holds
    base : the model's embedding section

    Raises
    ------
    ConfigError
        An unknown key, a wrong value, or an empty list; names the dotted key.
    """
    if candidates is None:
        return _variations(KEY, default_search(base), base)
    if isinstance(candidates, Mapping):
        return _variations(KEY, candidates, base)
    if not candidates:
        raise ConfigError(f"key {KEY!r} is empty; expected at least one embedding")
    sections = []
    for i, item in enumerate(candidates):
        key = f"{KEY}[{i}]"
        if isinstance(item, str):
            sections.append(_named(key, item))
        elif isinstance(item, Mapping):
            sections += _variations(key, item, base)
        else:
            raise ConfigError(
                f"key {key!r} is {item!r}; expected an embedding's name or its section"
            )
    return sections


def default_search(base: Section) -> dict[str, list[Any]]:
    """Return values around an embedding's main smoothness parameter; nothing if it has none."""
    if is_automatic(base):
        return {}
    kind = EMBEDDINGS[_kind(base)]
    for name, tried in kind.smoothness.items():
        value, accepts = getattr(base, name), constraints_of(kind)[name]
        counts = any(isinstance(member, Integer) for member in members_of(accepts))
        if value is None or (counts and isinstance(value, float)):
            continue  # 1.4 times a fraction of the variance may be none
        if isinstance(value, str):
            return {name: [value, *tried.get(value, ())]}
        if isinstance(value, int):
            return {name: sorted({max(1, round(factor * value)) for factor in WIDTH_FACTORS})}
        return {name: [round(factor * value, 6) for factor in WIDTH_FACTORS]}
    return {}


def labels_of(embeddings: Sequence[Section]) -> list[str]:
    """Name each section by its kind and by the parameters that tell it from others of its kind."""
    labels = []
    for section in embeddings:
        same = [
            other_section.model_dump()
            for other_section in embeddings
            if type(other_section) is type(section)
        ]
        values = section.model_dump()
        title = title_of(values)
        hidden = ("name", "parts", INNER, *NAMED[title])
        differing = [
            f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in values.items()
            if key not in hidden and any(other[key] != value for other in same)
        ]
        labels.append(", ".join([_label(values), *differing]))
    return labels


def _variations(key: str, values: Mapping[str, Any], base: Section) -> list[Section]:
    """Return every combination of the alternatives that a section with lists gives."""
    if "name" in values:  # then the others have their defaults, as in a model's section
        base = _named(f"{key}.name", values["name"])
    elif is_automatic(base):  # as in a model's section, whose keys without a name are of this kind
        base = embedding_section(DEFAULT_EMBEDDING)
    kind, fields = type(base), type(base).model_fields
    try:
        values = without_gone_keys({**values, "name": _kind(base)})
    except ValueError as error:
        raise ConfigError(f"key '{key}': {error}") from None
    alternatives = {}
    for parameter, value in values.items():
        if parameter == "name":
            continue
        if parameter not in fields:
            known = [field for field in fields if field != "name"]
            raise ConfigError(
                f"unknown key '{key}.{parameter}'{closest(str(parameter), known)}; the "
                f"{_kind(base)} embedding has {', '.join(known)}"
            )
        alternatives[parameter] = list(_alternatives(f"{key}.{parameter}", value, base))
    return [
        kind.model_validate({**base.model_dump(), **dict(zip(alternatives, chosen, strict=True))})
        for chosen in product(*alternatives.values())
    ]


def _alternatives(key: str, value: object, base: Section) -> Iterable[Any]:
    """Return the values of a list, unless the parameter itself is one (``box``)."""
    parameter = key.rpartition(".")[2]
    if not isinstance(value, list) or _accepts(base, parameter, value):
        return [_checked(key, value, base)]
    if not value:
        raise ConfigError(f"key {key!r} is empty; expected at least one value")
    return [_checked(key, item, base) for item in value]


def _checked(key: str, value: object, base: Section) -> object:
    parameter = key.rpartition(".")[2]
    if not _accepts(base, parameter, value):
        field = type(base).model_fields[parameter]
        expected = accepted_by(field.annotation)
        raise ConfigError(f"key {key!r} holds {value!r}; expected {expected}, or a list of them")
    return value


def _accepts(base: Section, parameter: str, value: object) -> bool:
    try:
        type(base).model_validate({"name": _kind(base), parameter: value})
    except ValidationError:
        return False
    return True


def _named(key: str, name: object) -> Section:
    if not isinstance(name, str) or name not in NAMED:
        raise ConfigError(
            f"key {key!r} is {name!r}; expected one of {', '.join(NAMED)}"
            f"{closest(str(name), list(NAMED))}"
        )
    return embedding_section(name)


def _kind(section: Section) -> str:
    return str(section.model_dump()["name"])


def _label(values: Mapping[str, Any]) -> str:
    """Name a section: a union by its parts and their join, components by their embedding."""
    if values.get(INNER):
        return f"{title_of(values)} of {_label(values[INNER])}"
    if not values.get("parts"):
        return title_of(values)
    sign = " + " if values["join"] == "sum" else " × "
    return sign.join(title_of(part) for part in values["parts"])
