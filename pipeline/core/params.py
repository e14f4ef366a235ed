"""Checks of parameters: each returns the value, or raises ParameterError.

The message names the parameter, its value and what is expected of it. Types that an annotation
says in full are checked by `checked`, bounds by the functions below, arrays by `as_array`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    Set,
)
from functools import cache, wraps
from math import inf
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .containers import is_iterable, is_table
from .errors import DataError, ParameterError, shown

NO_NUMBERS = (bool, np.timedelta64)  # which count as integers

P = ParamSpec("P")
R = TypeVar("R")
Other = TypeVar("Other")
"""A value that is accepted beside the numbers, such as None or "auto"."""


def check_integer(
    name: str,
    value: object,
    least: int = 1,
    most: int | None = None,
    *,
    even: bool = False,
    other: tuple[Other, ...] = (),
) -> int | Other:
    """Return ``value`` as an int from ``least`` to ``most``, or one of ``other`` as it is.

    Python's and numpy's integers are accepted; True and False are not.

    Raises
    ------
    ParameterError
        Anything else.
    """
    if _is_one_of(value, other):
        return value  # type: ignore[return-value]  # it equals one of `other`
    if isinstance(value, Integral) and not isinstance(value, NO_NUMBERS):
        number = int(value)
        if least <= number <= (number if most is None else most) and not (even and number % 2):
            return number
    bounds = f" ≥ {least}" if most is None else f" from {least} to {most}"
    kind = "even integer" if even else "integer"
    raise ParameterError(f"{name} is {shown(value)}; expected an {kind}{bounds}{_or_one_of(other)}")


def check_number(
    name: str,
    value: object,
    least: float | None = None,
    most: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
    other: tuple[Other, ...] = (),
    kind: str = "number",
) -> float | Other:
    """Return ``value`` as a float within the bounds, or one of ``other`` as it is.

    Finite real numbers are accepted; True and False are not. ``least`` and ``most`` are
    accepted themselves, ``above`` and ``below`` are not. ``kind`` is what the message asks for.

    Raises
    ------
    ParameterError
        Anything else.
    """
    if _is_one_of(value, other):
        return value  # type: ignore[return-value]  # it equals one of `other`
    number = _as_float(value)
    within = (
        (least is None or number >= least)
        and (above is None or number > above)
        and (most is None or number <= most)
        and (below is None or number < below)
    )
    if -inf < number < inf and within:
        return number
    lower = f"{least:g} ≤" if least is not None else f"{above:g} <" if above is not None else ""
    upper = f"≤ {most:g}" if most is not None else f"< {below:g}" if below is not None else ""
    if lower and upper:
        bounds = f", {lower} {name} {upper}"
    elif lower:
        bounds = f" ≥ {least:g}" if least is not None else f" > {above:g}"
    else:
        bounds = f" {upper}".rstrip()
    raise ParameterError(f"{name} is {shown(value)}; expected a {kind}{bounds}{_or_one_of(other)}")


def check_choice(name: str, value: object, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Raises
    ------
    ParameterError
        Anything else; the message lists the choices in their order.
    """
    if isinstance(value, str) and value in choices:
        return value
    raise ParameterError(f"{name} is {shown(value)}; expected one of {list(choices)}")


def check_dtype(name: str, value: object, *more: DTypeLike) -> np.dtype[Any]:
    """Return the dtype if it is float32, float64 or one ``more``.

    Raises
    ------
    ParameterError
        Anything else.
    """
    try:
        dtype = np.dtype(value) if value is not None else None  # type: ignore[call-overload]
        if hasattr(value, "dtype") and not isinstance(value, type):
            dtype = None  # values, whose dtype numpy takes
    except (TypeError, ValueError):
        dtype = None
    names = [np.dtype(kind).name for kind in (np.float32, np.float64, *more)]
    if dtype is not None and dtype.isnative and dtype.name in names:
        return dtype
    expected = f"{', '.join(names[:-1])} or {names[-1]}"
    raise ParameterError(f"{name} is {shown(value)}; expected {expected}")


def as_array(name: str, value: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return ``value`` as numpy has it, without a copy where it is an array already.

    Raises
    ------
    DataError
        Lists of different lengths, masked values, or values that are none of ``dtype``.
    """
    refuse_masked(name, value)
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise DataError(f"{name} is a sparse matrix; pass its .toarray()")
    try:
        array = np.asarray(value)
        if dtype is None:
            return array
        if array.dtype.kind in "USTcmM":
            raise TypeError(f"it holds {array.dtype}")
        return array.astype(dtype, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        kind = "" if dtype is None else f" of {np.dtype(dtype)}"
        raise DataError(f"{name} is not an array{kind} ({error})") from error


def refuse_masked(name: str, value: object) -> None:
    """Raise DataError for masked values: numpy drops the mask and uses the hidden values as data.

    Those of pandas' arrays, which have a mask too, become NaN or NA.
    """
    if np.ma.is_masked(value) and not hasattr(value, "isna"):
        raise DataError(f"{name}: {np.ma.count_masked(value)} values are masked; leave them out")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses arguments of other types than its annotations say.

    Checked are annotations of numbers, flags, texts, paths, functions, our classes, and lists and
    mappings of these: True is no number, a text no list, and NaN and infinity are no numbers. What
    numpy's types describe is left to the function.

    Raises
    ------
    ParameterError
        The function that is returned raises it, and it names the parameter.
    """
    signature, inner = inspect.signature(function), inspect.unwrap(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        _check_types(inner, signature.bind(*args, **kwargs).arguments)
        return function(*args, **kwargs)

    return call


def check_fields(instance: object) -> None:
    """Refuse fields of a dataclass as `checked` does arguments; for its ``__post_init__``."""
    for kind in type(instance).__mro__[:-1]:
        _check_types(kind, vars(instance))


def _check_types(owner: Any, values: Mapping[str, object]) -> None:  # noqa: ANN401
    for name, (annotation, words) in _plain_annotations(owner).items():
        if name in values and not _fits(values[name], annotation):
            raise ParameterError(f"{name} is {shown(values[name])}; expected {words}")


_WORDS = {
    NoneType: "None",
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a text",
    os.PathLike: "a path",
    Callable: "a function",
    Mapping: "a mapping",
    dict: "a dictionary",
    Iterable: "something to iterate over",
}


@cache
def _plain_annotations(owner: Any) -> dict[str, tuple[Any, str]]:  # noqa: ANN401
    """Return each annotation that can be checked, and what it accepts in words."""
    space = vars(inspect.getmodule(owner))
    found = {}
    for name, annotation in inspect.get_annotations(owner).items():
        try:
            kind = annotation
            if isinstance(annotation, str):
                kind = eval(annotation, dict(space))  # noqa: S307 - of our own source
        except (NameError, TypeError):  # of imports for type checkers alone
            continue
        words = list(dict.fromkeys(_words_of(kind)))
        if name != "return" and "" not in words:
            found[name] = kind, " or ".join(words)
    return found


def _words_of(annotation: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield what each member of an annotation accepts; "" for one that cannot be checked."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        for member in inner:
            yield from _words_of(member)
    elif origin in (Sequence, tuple):
        is_nested = get_origin(inner[0]) in (Sequence, Mapping, tuple)
        kinds = [""] if is_nested else list(_words_of(inner[0]))
        named = " or ".join(words.partition(" ")[2] + "s" for words in kinds)
        yield "" if "" in kinds else f"a list of {named}"
    elif annotation is None or (origin or annotation) in _WORDS:
        yield _WORDS[origin or annotation or NoneType]
    else:
        kind = origin or annotation
        is_ours = (
            inspect.isclass(kind)
            and kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        )
        is_checked = is_ours and not getattr(kind, "_is_protocol", False)
        article = "an" if is_ours and kind.__name__[0] in "AEIOU" else "a"
        yield f"{article} {kind.__name__}" if is_checked else ""


def _fits(value: Any, annotation: Any) -> bool:  # noqa: ANN401
    if "" in _words_of(annotation):
        return True
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return any(_fits(value, member) for member in inner)
    if origin in (Sequence, tuple):
        return _is_listed(value) and all(_fits(item, inner[0]) for item in value)
    if origin in (Mapping, dict):
        is_mapping = isinstance(value, origin)
        return is_mapping and all(
            _fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items()
        )
    if annotation is int:
        return isinstance(value, Integral) and not isinstance(value, NO_NUMBERS)
    if annotation is float:
        return -inf < _as_float(value) < inf
    if annotation is bool:
        return isinstance(value, (bool, np.bool_))
    if origin is Iterable:
        return is_iterable(value)
    return isinstance(value, NoneType if annotation is None else (origin or annotation))


def _is_listed(value: object) -> bool:
    """Return whether items are in an order: lists, arrays, pandas' indexes, the keys of a dict."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Collection):
        return False
    if not is_iterable(value) or is_table(value):
        return False
    return isinstance(value, KeysView) or not isinstance(value, Set)


def _as_float(value: object) -> float:
    """Return a real number as a float; NaN, which no bound admits, for anything else."""
    if isinstance(value, Real) and not isinstance(value, NO_NUMBERS):
        try:
            return float(value)
        except OverflowError:  # an integer of more than 308 digits
            return inf
    return float("nan")


def _is_one_of(value: object, other: tuple[object, ...]) -> bool:
    # `value in other` would compare an array with each of them element by element
    return (value is None and None in other) or (isinstance(value, str) and value in other)


def _or_one_of(other: tuple[object, ...]) -> str:
    return "".join(f" or {one!r}" for one in other)
