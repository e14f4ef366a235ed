"""What a row of the table of implementations is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Inputs = tuple[Any, ...]
DTYPES = (np.float32, np.float64)


@dataclass(frozen=True)
class Implementation:
    """One function of the package and its slow twin.

    Attributes
    ----------
    name : str
    implementation, oracle : callable
        Take what ``make`` gives; return an array or a tuple of arrays.
    make : callable (generator, n) → inputs
        n is the number of bags, or of rows.
    n : int
        For the tests.
    atol, rtol : float
        How far the two may be apart.
    """

    name: str
    implementation: Callable[..., Any]
    oracle: Callable[..., Any]
    make: Callable[[np.random.Generator, int], Inputs]
    n: int
    atol: float = 0.0
    rtol: float = 0.0
