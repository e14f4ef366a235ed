"""A cache of embeddings: within a block, equal specs embed the same bags only once.

`embedding="auto"` uses the cache: it compares unions and products of embeddings after it has
compared the embeddings alone.
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

CACHE_BYTES = 2**25  # size of the cache: a choice from 800 bags in R² needs 11 MB


class Fills(Protocol):
    """Interface of objects that write embeddings; equal objects write equal embeddings."""

    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        """Write the embeddings and the number of points outside the box of each bag."""

    def without_margin(self) -> Fills:
        """Return the object without a margin; points inside the box have the same embedding."""


class _Remembered:
    """Cache of the embeddings of a block, with their bags."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], tuple[Bags, NDArray[Any], Integers]] = {}
        self._free = CACHE_BYTES
        self._numbers: dict[tuple[object, ...], float] = {}

    def number_of(self, compute: Callable[[NDArray[Any]], float], rows: NDArray[Any]) -> float:
        """Return ``compute(rows)``, from the cache if ``compute`` was called with equal rows."""
        key = compute, rows.shape, rows.dtype, sha256(rows.data).digest()
        if key not in self._numbers:
            self._numbers[key] = compute(rows)
        return self._numbers[key]

    def fill(self, spec: Fills, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        """Copy the embeddings of these bags from the cache, or compute and store them."""
        place = bags.points.__array_interface__["data"][0]
        data = place, bags.points.shape, bags.offsets.tobytes(), out.dtype
        inside = "inside", spec.without_margin()  # a margin changes only points outside
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
    """Cache embeddings until the block ends: equal specs embed the same bags only once."""
    token = _remembered.set(_Remembered())
    try:
        yield
    finally:
        _remembered.reset(token)


def fill_once(spec: Fills, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
    """Write the embeddings by ``spec.fill``, or from the cache if there is one."""
    memory = _remembered.get()
    if memory is None:
        spec.fill(bags, out, outside)
    else:
        memory.fill(spec, bags, out, outside)


def number_once(compute: Callable[[NDArray[Any]], float], rows: NDArray[Any]) -> float:
    """Return ``compute(rows)``, from the cache if there is one."""
    memory = _remembered.get()
    return compute(rows) if memory is None else memory.number_of(compute, rows)
