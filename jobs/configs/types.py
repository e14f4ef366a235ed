"""The types of config keys, as pydantic takes them, made from the library's constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from bagbasis.core import (
    Boolean,
    ChoiceOf,
    Constraint,
    False_,
    Integer,
    ListOf,
    MappingOf,
    NameIn,
    None_,
    OneOf,
    Open,
    Pair,
    Real,
    Text,
)
from bagbasis.core.constraints import Address, members_of

_LITERAL: Any = Literal  # what is made of values at run time is not a type to a checker
_LIST: Any = list
_DICT: Any = dict

_PLAIN: dict[Constraint[Any], Any] = {
    Boolean: bool,
    Text: str,
    Address: str,
    None_: None,
    False_: Literal[False],
}


def type_of(constraint: Constraint[Any] | None) -> Any:  # noqa: ANN401 - a type that pydantic reads
    """Return the type of a key with this constraint; Any for what no config can write.

    An object of the library is such: where configs have a section in its place, the section's
    type is taken instead.
    """
    if constraint is None:
        return Any
    known = [_member(member_of) for member_of in members_of(constraint)]
    members = [member for member in known if member is not _NOT_WRITTEN]
    if all(member is None for member in members):
        return Any
    members.sort(key=lambda member: member is None)  # messages then end with "or null"
    return reduce(or_, members)


class _NotWritten:
    """Stands for a member of a union that no config can write."""


_NOT_WRITTEN = _NotWritten


def _member(constraint: Constraint[Any]) -> Any:  # noqa: ANN401 - a type that pydantic reads
    if constraint in _PLAIN:
        return _PLAIN[constraint]
    if isinstance(constraint, NameIn):  # a section stands for it
        return _NOT_WRITTEN
    make = _MAKERS.get(type(constraint))
    return _NOT_WRITTEN if make is None else make(constraint)


def _integer(constraint: Integer) -> object:
    bounds = {
        "ge": constraint.ge,
        "le": constraint.le,
        "multiple_of": 2 if constraint.even else None,
    }
    return _bounded(int, bounds)


def _real(constraint: Real) -> object:
    return _bounded(float, {name: getattr(constraint, name) for name in ("ge", "le", "gt", "lt")})


def _bounded(kind: type, bounds: Mapping[str, float | None]) -> object:
    limits: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[kind, Field(**limits)] if limits else kind


def _one_of(constraint: OneOf | ChoiceOf) -> object:
    listed = _LITERAL[constraint.choices]
    if all(isinstance(choice, str) for choice in constraint.choices):
        return listed
    return Annotated[listed, BeforeValidator(_refuse_equals)]


def _refuse_equals(value: object) -> object:
    """Refuse True and 1.0 for 1, which `Literal` takes for equal."""
    if isinstance(value, (bool, float)):
        raise PydanticCustomError("literal_error", "expected an integer")
    return value


def _list(constraint: ListOf) -> object:
    inner = type_of(constraint.item)
    kind = _LIST[inner]
    if constraint.least:
        kind = Annotated[kind, Field(min_length=constraint.least)]
    return Annotated[inner | kind, AfterValidator(_in_list)] if constraint.or_one else kind


def _in_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _pair(constraint: Pair) -> object:
    inner = type_of(constraint.first)
    return Annotated[_LIST[inner], Field(min_length=2, max_length=2)]


def _mapping(constraint: MappingOf) -> object:
    key, value = type_of(constraint.key), type_of(constraint.value)
    return _DICT[key, value]


def _open(constraint: Open) -> object:
    return _NOT_WRITTEN if constraint.written is None else type_of(constraint.written)


_MAKERS: dict[type, Callable[[Any], object]] = {
    Integer: _integer,
    Real: _real,
    OneOf: _one_of,
    ChoiceOf: _one_of,
    ListOf: _list,
    Pair: _pair,
    MappingOf: _mapping,
    Open: _open,
}
