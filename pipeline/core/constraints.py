"""Constraints of parameters as data: `Integer(ge=1) | None_`.

A class or a function declares one constraint per parameter. Checks, the sections of configs, their
help and the values that tests try are derived from these constraints. This module does not import
NumPy, so that a wrong config is refused before NumPy is loaded.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from math import inf, isfinite
from numbers import Integral, Real as RealNumber
from typing import Any, Generic, Literal, TypeVar

from typing_extensions import override

from .errors import ParameterError, closest, shown

_T = TypeVar("_T", covariant=True)
U = TypeVar("U")

SHOWN_CHARACTERS = 80  # length of a refused value in a message: what is expected comes after it
SEEDS = 2**64  # the counter-based generators take keys of unsigned 64-bit integers


class UnfitError(ValueError):
    """A value that a constraint does not accept; `Constraint.check` raises ParameterError."""


class Constraint(ABC, Generic[_T]):
    """The values that a parameter accepts; ``a | b`` accepts the values of both constraints.

    Examples
    --------
    >>> from bagbasis.core import Integer, OneOf
    >>> constraint = Integer(ge=1) | OneOf('auto')
    >>> constraint.check('n_features', 'auto')
    'auto'
    """

    @abstractmethod
    def take(self, value: object) -> _T:
        """Return the value as a plain one, such as an int for a NumPy integer; else UnfitError."""

    @abstractmethod
    def words(self, name: str) -> str:
        """Return words for the accepted values of this parameter: "a number, 0 < alpha < 1"."""

    def check(self, name: str, value: object) -> _T:
        """Return the value as `take` does.

        Raises
        ------
        ParameterError
            If the value is not accepted. The message names the parameter, the beginning of the
            value, and the accepted values.
        """
        try:
            return self.take(value)
        except UnfitError:
            text = f"{name} is {brief(value)}{self.nearest(value)}; expected {self.words(name)}"
            raise ParameterError(text) from None

    def choices_of_text(self) -> Iterable[str]:
        """Return the accepted texts, if they are a list."""
        return ()

    def nearest(self, value: object) -> str:
        """Return the accepted text most similar to a refused one, as a question."""
        if not isinstance(value, str) or len(value) > SHOWN_CHARACTERS:
            return ""
        return closest(
            value, [text for member in members_of(self) for text in member.choices_of_text()]
        )

    def accepts(self, value: object) -> bool:
        """Return whether the value is accepted."""
        try:
            self.take(value)
        except UnfitError:
            return False
        return True

    def __or__(self, other: Constraint[U]) -> Either[_T | U]:
        members = (part for constraint in (self, other) for part in members_of(constraint))
        return Either(tuple(members))


def members_of(constraint: Constraint[Any]) -> tuple[Constraint[Any], ...]:
    """Return the alternatives of a constraint: itself, if it is not a union."""
    return constraint.members if isinstance(constraint, Either) else (constraint,)


def brief(value: object) -> str:
    """Return the beginning and end of a value, for messages."""
    text = shown(value)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    tail = SHOWN_CHARACTERS // 4
    return f"{text[: SHOWN_CHARACTERS - tail - 3]} … {text[-tail:]}"


@dataclass(frozen=True)
class Either(Constraint[_T]):
    """A value that one of several constraints accepts; the first that accepts it is used."""

    members: tuple[Constraint[Any], ...]

    @override
    def take(self, value: object) -> _T:
        for member in self.members:
            if member.accepts(value):
                taken: _T = member.take(value)
                return taken
        raise UnfitError

    @override
    def words(self, name: str) -> str:
        return " or ".join(member.words(name) for member in self.members)

    @override
    def nearest(self, value: object) -> str:
        hints = (member.nearest(value) for member in self.members)
        return super().nearest(value) or next(filter(None, hints), "")


@dataclass(frozen=True)
class Integer(Constraint[int]):
    """Integers of Python and NumPy from ``ge`` to ``le``; True and False are not integers.

    Examples
    --------
    >>> from bagbasis.core import Integer
    >>> Integer(ge=1, le=10).check('n', 3)
    3
    """

    ge: int | None = None
    le: int | None = None
    _: KW_ONLY
    even: bool = False

    @override
    def take(self, value: object) -> int:
        if not isinstance(value, Integral) or _is_no_number(value):
            raise UnfitError
        number = int(value)
        below = self.ge is not None and number < self.ge
        above = self.le is not None and number > self.le
        if below or above or (self.even and number % 2):
            raise UnfitError
        return number

    @override
    def nearest(self, value: object) -> str:
        """Return the number of folds of scikit-learn's splitters, as a question."""
        n_folds = getattr(value, "n_splits", None)
        if n_folds is None or not self.accepts(n_folds):
            return super().nearest(value)
        return f" (did you mean {n_folds}? scikit-learn's cross_val_score takes splitters)"

    @override
    def words(self, name: str) -> str:
        kind = "an even integer" if self.even else "an integer"
        if self.le is None:
            return kind if self.ge is None else f"{kind} ≥ {self.ge}"
        if self.le == SEEDS - 1:
            return f"{kind} ≥ {self.ge} and below 2^64"
        return f"{kind} ≤ {self.le}" if self.ge is None else f"{kind} from {self.ge} to {self.le}"


@dataclass(frozen=True)
class Real(Constraint[float]):
    """Finite real numbers within bounds; ``kind`` is their name in messages.

    Examples
    --------
    >>> from bagbasis.core import Real
    >>> Real(ge=0).check('alpha', 2)
    2.0
    """

    ge: float | None = None
    le: float | None = None
    _: KW_ONLY
    gt: float | None = None
    lt: float | None = None
    kind: str = "number"

    @override
    def take(self, value: object) -> float:
        number = _as_float(value)
        if not (-inf < number < inf) or not self._is_within(number):
            raise UnfitError
        return number

    @override
    def nearest(self, value: object) -> str:
        """Return the number that a text holds, or the fraction of a percentage, as a question."""
        number, is_percent = _as_float(value), False
        if isinstance(value, str):
            text, is_percent = value.strip().removesuffix("%"), value.strip().endswith("%")
            with suppress(ValueError):
                number = float(text)
        if isinstance(value, str) and not is_percent and self._is_within(number):
            return f" (did you mean {number:g}?)" if isfinite(number) else ""
        percent = number / 100
        is_fraction = self.kind == "fraction" or is_percent
        means_percent = is_fraction and 0.01 < percent <= 1 and self._is_within(percent)
        return f" (did you mean {percent:g}?)" if means_percent else ""

    def _is_within(self, number: float) -> bool:
        return (
            (self.ge is None or number >= self.ge)
            and (self.gt is None or number > self.gt)
            and (self.le is None or number <= self.le)
            and (self.lt is None or number < self.lt)
        )

    @override
    def words(self, name: str) -> str:
        least = "" if self.ge is None else f"{self.ge:g} ≤" if self.gt is None else ""
        lower = least or ("" if self.gt is None else f"{self.gt:g} <")
        upper = "" if self.lt is None else f"< {self.lt:g}"
        upper = upper or ("" if self.le is None else f"≤ {self.le:g}")
        if lower and upper:
            return f"a {self.kind}, {lower} {name} {upper}"
        if lower:
            bound = f" ≥ {self.ge:g}" if self.ge is not None else f" > {self.gt:g}"
            return f"a {self.kind}{bound}"
        return f"a {self.kind} {upper}".rstrip()


@dataclass(frozen=True)
class OneOf(Constraint[Any]):
    """One of some texts or integers; True and 1.0 are not accepted for 1.

    Examples
    --------
    >>> from bagbasis import ParameterError
    >>> from bagbasis.core import OneOf
    >>> try:
    ...     OneOf('clip', 'drop').check('out_of_box', 'clipp')
    ... except ParameterError as error:
    ...     print(error)
    out_of_box is 'clipp' (did you mean 'clip'?); expected one of ['clip', 'drop']
    """

    choices: tuple[str | int, ...]

    def __init__(self, *choices: str | int) -> None:
        object.__setattr__(self, "choices", choices)

    @override
    def take(self, value: object) -> str | int:
        is_integer = isinstance(value, Integral) and not isinstance(value, bool)
        if (isinstance(value, str) or is_integer) and value in self.choices:
            return self.choices[self.choices.index(value)]
        raise UnfitError

    @override
    def nearest(self, value: object) -> str:
        """Return the most similar text; for a number, the text of which YAML makes this number."""
        texts = self.choices_of_text()
        if isinstance(value, Integral) and not isinstance(value, bool):
            text = next((text for text in texts if text.isdecimal() and int(text) == value), None)
            return "" if text is None else f" (did you mean {text!r}, in YAML with the quotes?)"
        return super().nearest(value)

    @override
    def choices_of_text(self) -> Iterable[str]:
        return [choice for choice in self.choices if isinstance(choice, str)]

    @override
    def words(self, name: str) -> str:
        listed = list(self.choices)
        return repr(listed[0]) if len(listed) == 1 else f"one of {listed}"


@dataclass(frozen=True)
class _None(Constraint[None]):
    def take(self, value: object) -> None:
        if value is not None:
            raise UnfitError

    def words(self, name: str) -> str:
        return "None"


@dataclass(frozen=True)
class _False(Constraint[Literal[False]]):
    def take(self, value: object) -> Literal[False]:
        if value is False or (_is_numpy(value, "bool") and not value):
            return False
        raise UnfitError

    def words(self, name: str) -> str:
        return "False"


@dataclass(frozen=True)
class _Boolean(Constraint[bool]):
    def take(self, value: object) -> bool:
        if isinstance(value, bool) or _is_numpy(value, "bool"):
            return bool(value)
        raise UnfitError

    def words(self, name: str) -> str:
        return "True or False"


@dataclass(frozen=True)
class _Text(Constraint[str]):
    def take(self, value: object) -> str:
        if isinstance(value, str):
            return str.__str__(value)  # of numpy's texts a plain one
        raise UnfitError

    def words(self, name: str) -> str:
        return "a string"


@dataclass(frozen=True)
class _Address(_Text):
    def take(self, value: object) -> str:
        text = super().take(value)
        if not text:
            raise UnfitError
        return text

    def words(self, name: str) -> str:
        return "a URL"


@dataclass(frozen=True)
class _Path(Constraint["os.PathLike[str]"]):
    def take(self, value: object) -> os.PathLike[str]:
        if isinstance(value, os.PathLike):
            return value
        raise UnfitError

    def words(self, name: str) -> str:
        return "a path"


@dataclass(frozen=True)
class _Function(Constraint[Callable[..., Any]]):
    def take(self, value: object) -> Callable[..., Any]:
        if callable(value):
            return value
        raise UnfitError

    def words(self, name: str) -> str:
        return "a function"


@dataclass(frozen=True)
class _Items(Constraint[Iterable[Any]]):
    def take(self, value: object) -> Iterable[Any]:
        if isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0:
            return value
        raise UnfitError

    def words(self, name: str) -> str:
        return "something to iterate over"


None_ = _None()
False_ = _False()
Boolean = _Boolean()
"""True or False, of Python or NumPy; 1 and 0 are not accepted."""
Text = _Text()
Address = _Address()
Url: Either[str | os.PathLike[str]] = Address | _Path()
"""A URL or a path; not the empty text, which could be taken for the working folder."""
Function = _Function()
Items = _Items()
"""An iterable; an array without axes is not accepted."""
Subset = OneOf("all", "holdout", "train")
"""Bags of a fitted model's store: all bags, the held-out bags, or the training bags."""
Seed = Integer(0, SEEDS - 1)
Fraction = Real(gt=0, lt=1, kind="fraction")
FractionOrZero = Real(ge=0, lt=1, kind="fraction")


@dataclass(frozen=True)
class Instance(Constraint[Any]):
    """An instance of a class of bagbasis, which is given by name and need not be imported.

    In an annotation, the name is by default that of the annotated class. ``example`` is an instance
    that messages show.

    Examples
    --------
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.core import Instance
    >>> type(Instance('MomentsEmbedding').check('embedding', MomentsEmbedding())).__name__
    'MomentsEmbedding'
    """

    name: str = ""
    example: str = ""

    @override
    def take(self, value: object) -> object:
        if any(_is_ours(kind) and kind.__name__ == self.name for kind in type(value).__mro__):
            return value
        raise UnfitError

    @override
    def nearest(self, value: object) -> str:
        """Return how to make an instance of a class that was passed instead, as a question."""
        if isinstance(value, type) and any(kind.__name__ == self.name for kind in value.__mro__):
            return f" (did you mean {value.__name__}()?)"
        return ""

    @override
    def words(self, name: str) -> str:
        such = f" such as {self.example}" if self.example else ""
        return f"{'an' if self.name[0] in 'AEIOU' else 'a'} {self.name}{such}"


@dataclass(frozen=True)
class Open(Constraint[Any]):
    """Any value, such as an array or a box, which is checked where it is read.

    ``written`` is a constraint of the values in a config.

    Examples
    --------
    >>> from bagbasis.core import Open
    >>> Open('an array').check('box', [(0, 1)])
    [(0, 1)]
    """

    meaning: str = "anything"
    written: Constraint[Any] | None = None

    @override
    def take(self, value: object) -> object:
        return value

    @override
    def words(self, name: str) -> str:
        return self.meaning


def _as_float(value: object) -> float:
    """Return a real number as a float; for anything else NaN, which no bound admits."""
    if type(value) is float:  # most values of long lists
        return value
    if isinstance(value, RealNumber) and not _is_no_number(value):
        try:
            return float(value)
        except OverflowError:  # an integer of more than 308 digits
            return inf
    return float("nan")


def _is_no_number(value: object) -> bool:
    """Return whether a value that counts as an integer is a boolean or a time span."""
    return isinstance(value, bool) or _is_numpy(value, "timedelta64")


def _is_numpy(value: object, name: str) -> bool:
    numpy = sys.modules.get("numpy")  # without the import there are no values of NumPy
    return numpy is not None and isinstance(value, getattr(numpy, name))


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __package__.partition(".")[0]
