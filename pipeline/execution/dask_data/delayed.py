"""Computing bags that are lazy Dask objects, in order, a few at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..lazy_dask import dask

VALUES_AT_ONCE = 64  # delayed values computed together


def computed(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items in order, with Dask objects (``delayed``, arrays) replaced by their values.

    Tuples of such objects are computed too. The computation runs on the connected cluster, else in
    Dask's threads.
    """
    held: list[Any] = []
    for item in items:
        if not held and not _is_lazy(item):
            yield item
            continue
        held.append(item)
        if len(held) == VALUES_AT_ONCE:
            yield from dask.compute(*held)
            held = []
    if held:
        yield from dask.compute(*held)


def _is_lazy(item: object) -> bool:
    parts = item if isinstance(item, tuple) else (item,)
    return any(hasattr(part, "__dask_graph__") for part in parts)
