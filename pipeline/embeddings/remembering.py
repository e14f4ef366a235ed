"""Embeddings of the same bags by equal specs are computed once, within a block.

`embedding="auto"` judges unions and products of embeddings that it has judged alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, Protocol

from numpy.typing import NDArray

from ..core.arrays import Integers
from ..data.bags.bags import Bags

MAX_BYTES = 2**25  # size of the cache: a choice of 800 bags in R² has 11 MB of embeddings


class Fills(Protocol):
    """What fills an array with embeddings of bags, and is equal to others of the same numbers."""

    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        """Write embeddings and the points of each bag outside the box."""

    def without_margin(self) -> Fills:
        """Return what embeds points inside the box alike."""


class _Remembered:
    """The embeddings that were computed in a block, and the bags that they are of."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], tuple[Bags, NDArray[Any], Integers]] = {}
        self._free = MAX_BYTES
        self._numbers: dict[tuple[object, ...], float] = {}

    def number_of(self, compute: Callable[[NDArray[Any]], float], rows: NDArray[Any]) -> float:
        """Return what ``compute`` has returned for equal rows, or compute it."""
        key = compute, rows.shape, rows.dtype, sha256(rows.data).digest()
        if key not in self._numbers:
            self._numbers[key] = compute(rows)
        return self._numbers[key]

    def fill(self, spec: Fills, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        """Copy what the spec has filled for these bags before, or fill and keep it."""
        place = bags.points.__array_interface__["data"][0]
        data = place, bags.points.shape, bags.offsets.tobytes(), out.dtype
        inside = "inside", spec.without_margin()  # a margin tells bags with points outside apart
        filled = self._rows.get((spec, *data)) or self._rows.get((*inside, *data))
        if filled is not None:
            _, out[...], outside[...] = filled
            return
        spec.fill(bags, out, outside)
        self._free -= out.nbytes + outside.nbytes
        if self._free >= 0:
            key = (spec, *data) if outside.any() else (*inside, *data)
            self._rows[key] = bags, out.copy(), outside.copy()


_remembered: ContextVar[_Remembered | None] = ContextVar("remembered", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Compute embeddings of the same bags by equal specs once, until the block ends."""
    token = _remembered.set(_Remembered())
    try:
        yield
    finally:
        _remembered.reset(token)


def fill_once(spec: Fills, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
    """Write what ``spec.fill`` writes, which is not computed again where it is remembered."""
    memory = _remembered.get()
    if memory is None:
        spec.fill(bags, out, outside)
    else:
        memory.fill(spec, bags, out, outside)


def number_once(compute: Callable[[NDArray[Any]], float], rows: NDArray[Any]) -> float:
    """Return ``compute(rows)``, which is not computed again where it is remembered."""
    memory = _remembered.get()
    return compute(rows) if memory is None else memory.number_of(compute, rows)
