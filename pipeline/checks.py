"""Whether what a user gave is a number of the right kind."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real
from typing import Any


def is_integer(value: Any, least: int) -> bool:
    """An integer, Python's or numpy's, of at least ``least``; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_number(value: Any, least: float) -> bool:
    """A finite real number of at least ``least``; True and False are none."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and least <= float(value) < inf
