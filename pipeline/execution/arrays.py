"""Lazy arrays of rows computed range by range."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array
from numpy.typing import NDArray

from .lanes import lane

Rows = Callable[[int, int], NDArray[Any]]


def lazy_rows(
    rows: Rows, ranges: Sequence[tuple[int, int]], tail: tuple[int, ...], dtype: Any
) -> Any:
    """A dask.array whose blocks are ``rows(start, stop)``, one a range.

    ``rows`` is one node of the graph that all blocks share; ``tail`` is the shape of one row.
    """
    token = uuid.uuid4().hex
    shared = dask.delayed(rows, traverse=False, pure=False, name=f"rows-{token}")
    compute = dask.delayed(_in_lane, pure=False)
    blocks = [
        dask.array.from_delayed(
            compute(shared, start, stop, dask_key_name=f"block-{token}-{i}"),
            shape=(stop - start, *tail),
            dtype=dtype,
        )
        for i, (start, stop) in enumerate(ranges)
    ]
    if not blocks:
        return dask.array.zeros((0, *tail), dtype=dtype)
    return dask.array.concatenate(blocks, axis=0)


def _in_lane(rows: Rows, start: int, stop: int) -> NDArray[Any]:
    with lane():
        return rows(start, stop)
