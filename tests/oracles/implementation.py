"""A row of the table of implementations: a function, its oracle, and what it is timed against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Inputs = tuple[Any, ...]
DTYPES = (np.float32, np.float64)


@dataclass(frozen=True)
class Implementation:
    """One function of the package, its slow twin and, where it is timed, its peer.

    Attributes
    ----------
    name : str
    implementation, oracle : callable
        Take what ``make`` gives; return an array or a tuple of arrays.
    make : callable (generator, n) → inputs
        n is the number of bags, or of rows. Nothing of it is timed.
    n : int
        For the tests.
    atol, rtol : float
        How far they may be apart.
    peer : callable, optional
        Function of another library. Tests compare it with the oracle, so that benchmarks time
        two ways to the same numbers.
    n_timed : int
        For the benchmarks; 0 without a peer.
    target : str
        The ratio of seconds that is wanted, peer / implementation.
    """

    name: str
    implementation: Callable[..., Any]
    oracle: Callable[..., Any]
    make: Callable[[np.random.Generator, int], Inputs]
    n: int
    atol: float = 0.0
    rtol: float = 0.0
    peer: Callable[..., Any] | None = None
    n_timed: int = 0
    target: str = ""
