"""`Sums`, the base class of quantities that add up over disjoint sets of bags or rows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, ClassVar, Self


class Sums:
    """Base of dataclasses whose fields are sums: they add, subtract and scale field by field.

    A field that is None in one of two is None in the result.

    Attributes
    ----------
    KEPT : tuple of str
        Fields that are no sums, and equal in what is added.
    """

    KEPT: ClassVar[tuple[str, ...]] = ()

    def __add__(self, other: Self) -> Self:
        """Return the sums over both sets."""
        return self.combined(other, operator.add)

    def __sub__(self, other: Self) -> Self:
        """Return the sums over what ``other`` does not have; it has nothing else."""
        return self.combined(other, operator.sub)

    def __mul__(self, factor: float) -> Self:
        """Return the sums of everything counted ``factor`` times."""
        values = {name: getattr(self, name) for name in self._summed()}
        found = {name: one if one is None else one * factor for name, one in values.items()}
        return replace(self, **found)  # type: ignore[type-var]  # a subclass is a dataclass

    def combined(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        """Return what ``combine`` makes of each field of both."""
        found: dict[str, Any] = {}
        for name in self._summed():
            ours, theirs = getattr(self, name), getattr(other, name)
            found[name] = None if ours is None or theirs is None else combine(ours, theirs)
        return replace(self, **found)  # type: ignore[type-var]  # a subclass is a dataclass

    def _summed(self) -> list[str]:
        names = [one.name for one in fields(self)]  # type: ignore[arg-type]  # likewise
        return [name for name in names if name not in self.KEPT]
