"""`Sums`, the base class of quantities that add up over disjoint sets of bags or rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np


class Sums:
    """Base of dataclasses whose fields are sums: they add, subtract and scale field by field.

    If a field is None in one of two operands, it is None in the result. Tuples are combined item by
    item.

    Attributes
    ----------
    KEPT : tuple of str
        Fields that are not sums, and that are equal in all operands.
    ROWS : tuple of str
        Arrays with one row per bag, which are concatenated. A class with such arrays supports only
        addition.
    """

    KEPT: ClassVar[tuple[str, ...]] = ()
    ROWS: ClassVar[tuple[str, ...]] = ()

    def __add__(self, other: Self) -> Self:
        """Return the sums over both sets."""
        return self.combined(other, operator.add)

    def __sub__(self, other: Self) -> Self:
        """Return the sums over the set without the subset of ``other``."""
        return self.combined(other, operator.sub)

    def __mul__(self, factor: float) -> Self:
        """Return the sums with everything counted ``factor`` times."""
        return self.combined(self, lambda value, _: value * factor)

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """Return the sums over all parts; rows are copied once."""
        without = [replace(part, **cls._stacked([part], 0)) for part in parts]  # type: ignore[type-var]
        return replace(reduce(operator.add, without), **cls._stacked(parts))  # type: ignore[type-var]

    @classmethod
    def _stacked(cls, parts: Sequence[Self], stop: int | None = None) -> dict[str, Any]:
        return {
            name: np.concatenate([getattr(part, name)[:stop] for part in parts])
            for name in cls.ROWS
        }

    def combined(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        """Apply ``combine`` to each field of both."""
        if self.ROWS and combine is not operator.add:
            raise TypeError(f"rows of {type(self).__name__} add up, and do nothing else")
        values = self._stacked([self, other])
        for item in fields(self):  # type: ignore[arg-type]  # a subclass is a dataclass
            if item.name not in (*self.KEPT, *self.ROWS):
                ours, theirs = getattr(self, item.name), getattr(other, item.name)
                values[item.name] = _combined(ours, theirs, combine)
        return replace(self, **values)  # type: ignore[type-var]  # likewise


def _combined(ours: Any, theirs: Any, combine: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401
    if ours is None or theirs is None:
        return None
    if isinstance(ours, tuple):
        return tuple(combine(a, b) for a, b in zip(ours, theirs, strict=True))
    return combine(ours, theirs)
