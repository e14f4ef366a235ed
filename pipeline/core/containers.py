"""Constraints of lists, pairs and mappings, and of their items."""

from __future__ import annotations

import re
from collections.abc import Collection, KeysView, Mapping, Set
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from .constraints import Constraint, Items, Open, UnfitError, members_of


@dataclass(frozen=True)
class ListOf(Constraint[Any]):
    """At least ``least`` ordered items: a list, a tuple, an array or the keys of a mapping.

    With ``or_one``, an item without a list stands for a list of it.

    Examples
    --------
    >>> from bagbasis.core import ListOf, Real
    >>> ListOf(Real(gt=0)).check('scales', [0.5, 2])
    [0.5, 2.0]
    """

    item: Constraint[Any]
    least: int = 0
    or_one: bool = False

    @override
    def take(self, value: object) -> Any:
        if self.or_one and self.item.accepts(value):
            return [self.item.take(value)]
        items = _listed(value)
        if len(items) < self.least:
            raise UnfitError
        taken = [self.item.take(item) for item in items]
        return tuple(taken) if isinstance(value, tuple) else taken

    @override
    def words(self, name: str) -> str:
        each = " or ".join(_many(member.words(name)) for member in members_of(self.item))
        least = f" ({self.least} or more)" if self.least else ""
        alone = f"{self.item.words(name)} or " if self.or_one else ""
        return f"{alone}a list of {each}{least}"

    @override
    def nearest(self, value: object) -> str:
        if not isinstance(value, (list, tuple)):
            return self.item.nearest(value) if self.or_one else super().nearest(value)
        hints = (self.item.nearest(item) for item in value if not self.item.accepts(item))
        return next(filter(None, hints), "")


@dataclass(frozen=True)
class Pair(Constraint[Any]):
    """Two ordered values, such as (lo, hi).

    Examples
    --------
    >>> from bagbasis.core import Pair, Real
    >>> Pair(Real(), Real()).check('interval', (0, 1))
    (0.0, 1.0)
    """

    first: Constraint[Any]
    second: Constraint[Any]

    @override
    def take(self, value: object) -> Any:
        items = _listed(value)
        if len(items) != 2:
            raise UnfitError
        taken = self.first.take(items[0]), self.second.take(items[1])
        return taken if isinstance(value, tuple) else list(taken)

    @override
    def words(self, name: str) -> str:
        return f"a pair ({self.first.words(name)}, {self.second.words(name)})"


@dataclass(frozen=True)
class MappingOf(Constraint[Any]):
    """A mapping whose keys and values are constrained.

    Examples
    --------
    >>> from bagbasis.core import MappingOf, Real, Text
    >>> MappingOf(Text, Real()).check('weights', {'a': 0.5})
    {'a': 0.5}
    """

    key: Constraint[Any]
    value: Constraint[Any]

    @override
    def take(self, value: object) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise UnfitError
        return {self.key.take(k): self.value.take(v) for k, v in value.items()}

    @override
    def words(self, name: str) -> str:
        key, value = _many(self.key.words(name)), _many(self.value.words(name))
        keys = "" if isinstance(self.key, Open) else f" from {key}"
        values = "" if isinstance(self.value, Open) else f" to {value}"
        return f"a mapping{keys}{values}"


def is_iterable(value: object) -> bool:
    """Return whether a value can be iterated over; False for an array without axes.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.core import is_iterable
    >>> is_iterable([1]), is_iterable(np.array(1))
    (True, False)
    """
    return Items.accepts(value)


def has_columns(value: object) -> bool:
    """Return whether a value is a table, whose items are the names of its columns."""
    return hasattr(value, "columns")


def _listed(value: object) -> list[Any]:
    """Return ordered items as a list: of lists, arrays, pandas indexes, the keys of a dict."""
    is_ordered = isinstance(value, KeysView) or not isinstance(value, (Set, Mapping, str, bytes))
    is_ordered = is_ordered and not has_columns(value)
    if isinstance(value, Collection) and is_iterable(value) and is_ordered:
        return list(value)
    raise UnfitError


def _many(words: str) -> str:
    """Return the plural of words: "even integers ≥ 2" for "an even integer ≥ 2"."""
    return re.sub(r"^an? ((?:even )?\w+)", r"\1s", words)
