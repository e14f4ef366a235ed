"""The ``embedding`` section of a config: one section a registered embedding.

Keys, types and defaults are those of the embedding's constructor, descriptions those of its
docstring: what is registered in `bagbasis.embeddings.EMBEDDINGS` can be configured. A name in
place of the section ("js", "moments") is that embedding with its defaults.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_type_hints

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from bagbasis.embeddings import EMBEDDINGS
from bagbasis.embeddings.hdd_measures import DISTANCES

from .config import Section

DEFAULT = "projection"
NOT_CONFIGURED = ("dtype",)  # of what `transform` returns; a fit has its own precision
NAMED: dict[str, dict[str, str]] = {
    **{name: {"name": name} for name in EMBEDDINGS},
    **{distance: {"name": "hdd", "distance": distance} for distance in DISTANCES},
}


@lru_cache
def section_of(name: str, embedding: type) -> type[Section]:
    """The config section of one embedding."""
    hints = get_type_hints(embedding.__init__)  # type: ignore[misc]
    texts = parameter_texts(inspect.getdoc(embedding) or "")
    fields: dict[str, Any] = {
        "name": (Literal[name], Field(name, description="the kind of embedding"))
    }
    for key, parameter in inspect.signature(embedding).parameters.items():
        if key not in NOT_CONFIGURED:
            description = texts.get(key, "")
            fields[key] = (hints[key], Field(parameter.default, description=description))
    return create_model(f"{embedding.__name__}Section", __base__=Section, **fields)


def parameter_texts(docstring: str) -> dict[str, str]:
    """First sentences of a numpydoc Parameters section, by parameter."""
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", docstring, re.DOTALL)
    entries = re.findall(
        r"^(\w+) :[^\n]*\n((?:[ ]{4}[^\n]*\n?)+)", section.group(1) if section else "", re.MULTILINE
    )
    return {name: " ".join(text.split()).split(". ")[0].rstrip(".") for name, text in entries}


def union_of(embeddings: Mapping[str, Any]) -> Any:
    """The type of an embedding section: which one it is, its ``name`` says."""
    sections = [section_of(name, embedding) for name, (embedding, _) in embeddings.items()]
    if len(sections) == 1:
        return sections[0]
    tagged = [
        Annotated[section, Tag(name)] for name, section in zip(embeddings, sections, strict=True)
    ]
    return Annotated[Union[tuple(tagged)], Discriminator(_name)]  # noqa: UP007


def build(section: Section) -> Any:
    """The embedding that a section stands for."""
    values = section.model_dump()
    embedding, _ = EMBEDDINGS[values.pop("name")]
    return embedding(**values)


def _name(value: Any) -> Any:
    return value.get("name", DEFAULT) if isinstance(value, Mapping) else value.name


def _expanded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in NAMED:
        raise ValueError(f"{value!r} is no embedding; expected one of {', '.join(NAMED)}")
    return NAMED[value]


if TYPE_CHECKING:
    EmbeddingSection = Section
    EmbeddingName = str
    ResponseSection = Section
else:
    EmbeddingSection = Annotated[union_of(EMBEDDINGS), BeforeValidator(_expanded)]
    EmbeddingName = Literal[tuple(NAMED)]
    ResponseSection = section_of(DEFAULT, EMBEDDINGS[DEFAULT][0])


def default_embedding(**params: Any) -> Section:
    """The default embedding's section."""
    return section_of(DEFAULT, EMBEDDINGS[DEFAULT][0])(**params)


def named_embedding(name: str) -> Section:
    """The section of an embedding with its defaults; see `NAMED`."""
    values = dict(NAMED[name])
    kind = values.pop("name")
    return section_of(kind, EMBEDDINGS[kind][0])(**values)
