"""Bags that Dask is still to make: computed in order, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .lazy_dask import dask

AT_ONCE = 64  # whose values are held together


def computed(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items, and of those that are Dask's (``delayed``, arrays), or tuples of them, values.

    They are computed on the connected cluster, else by Dask's threads.
    """
    held: list[Any] = []
    for item in items:
        if not held and not _is_lazy(item):
            yield item
            continue
        held.append(item)
        if len(held) == AT_ONCE:
            yield from dask.compute(*held)
            held = []
    if held:
        yield from dask.compute(*held)


def _is_lazy(item: object) -> bool:
    parts = item if isinstance(item, tuple) else (item,)
    return any(hasattr(part, "__dask_graph__") for part in parts)
