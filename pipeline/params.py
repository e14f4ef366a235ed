"""Checks of parameters: each returns the value, or raises ParameterError.

The message names the parameter, its value and what is expected of it.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from numbers import Integral, Real
from typing import TypeVar

from .errors import ParameterError

Other = TypeVar("Other")
"""A value that is accepted beside the numbers, such as None or "auto"."""

SEEDS = 2**64  # the counter-based generators take keys of unsigned 64-bit integers


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
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if least <= number <= (number if most is None else most) and not (even and number % 2):
            return number
    bounds = f" ≥ {least}" if most is None else f" from {least} to {most}"
    kind = "even integer" if even else "integer"
    raise ParameterError(f"{name} is {value!r}; expected an {kind}{bounds}{_or_one_of(other)}")


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
    raise ParameterError(f"{name} is {value!r}; expected a {kind}{bounds}{_or_one_of(other)}")


def check_share(name: str, value: object, *, zero: bool = False) -> float:
    """Return ``value`` as a float between 0 and 1; 0 itself only with ``zero``, 1 never.

    Raises
    ------
    ParameterError
        Anything else.
    """
    number = _as_float(value)
    if 0 < number < 1 or (zero and number == 0):
        return number
    lower = "0 ≤" if zero else "0 <"
    raise ParameterError(f"{name} is {value!r}; expected a share, {lower} {name} < 1")


def check_seed(name: str, value: object) -> int:
    """Return ``value`` as an int from 0 to 2^64 − 1.

    Raises
    ------
    ParameterError
        Anything else.
    """
    try:
        return check_integer(name, value, 0, SEEDS - 1)
    except ParameterError:
        expected = "expected an integer ≥ 0 and below 2^64"
        raise ParameterError(f"{name} is {value!r}; {expected}") from None


def check_choice(name: str, value: object, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Raises
    ------
    ParameterError
        Anything else; the message lists the choices in their order.
    """
    if isinstance(value, str) and value in choices:
        return value
    raise ParameterError(f"{name} is {value!r}; expected one of {list(choices)}")


def _as_float(value: object) -> float:
    """Return a real number as a float; NaN, which no bound admits, for anything else."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    return float("nan")


def _is_one_of(value: object, other: tuple[object, ...]) -> bool:
    # `value in other` would compare an array with each of them element by element
    return (value is None and None in other) or (isinstance(value, str) and value in other)


def _or_one_of(other: tuple[object, ...]) -> str:
    return "".join(f" or {one!r}" for one in other)
