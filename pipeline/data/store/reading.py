"""Reading bags part by part: where to cut, and loading the next part while one is used."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from ..bags.bags import Bags
from .plan import Range, plan_partitions
from .snapshot import Snapshot

PARTITION_BYTES = 2**25  # points read at a time: half a second from an object store
# Coordinates whose reading is cheaper than starting another read, which takes 2 ms.
GAP_VALUES = 2**17

_T = TypeVar("_T")


def partitions(
    store: Snapshot, start: int, stop: int, max_bytes: int = PARTITION_BYTES
) -> list[Range]:
    """Cut ``start:stop`` into ranges whose points take at most ``max_bytes``, or are one bag."""
    max_rows = max(1, max_bytes // (store.dtype.itemsize * store.n_dims))
    ranges = plan_partitions(store.offsets(start, stop), store.chunk_points, max_rows)
    return [(start + a, start + b) for a, b in ranges]


def pair_partitions(
    store: Snapshot, start: int, stop: int, max_bytes: int = PARTITION_BYTES
) -> list[Range]:
    """Cut as `partitions` does, but count the points of bags and of responses together."""
    offsets = store.offsets(start, stop)
    response_offsets = store.response_offsets(start, stop)
    values = offsets * store.n_dims + response_offsets * (store.response_dims or 0)
    max_values = max(1, max_bytes // store.dtype.itemsize)
    ranges = plan_partitions(offsets, store.chunk_points, max_values, values)
    return [(start + a, start + b) for a, b in ranges]


def prefetch(load: Callable[[Range], _T], ranges: Sequence[Range]) -> Generator[_T, None, None]:
    """Yield ``load`` of each range in order; one thread loads the next while the caller works."""
    if not ranges:
        return
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as pool:
        upcoming = pool.submit(load, ranges[0])
        for following in ranges[1:]:
            value = upcoming.result()
            upcoming = pool.submit(load, following)
            yield value
        yield upcoming.result()


def read_runs(store: Snapshot, runs: Sequence[Range]) -> Iterator[Bags]:
    """Yield the bags of each run, ascending; runs with short gaps between them are read at once."""
    values = store.n_points * store.n_dims / max(1, store.n_bags)
    most = PARTITION_BYTES // store.dtype.itemsize
    spans: list[list[Range]] = []
    for start, stop in runs:
        near = spans and (start - spans[-1][-1][1]) * values <= GAP_VALUES
        if near and (stop - spans[-1][0][0]) * values <= most:
            spans[-1].append((start, stop))
        else:
            spans.append([(start, stop)])
    with closing(prefetch(lambda r: store.read(*r), [(s[0][0], s[-1][1]) for s in spans])) as read:
        for span, bags in zip(spans, read, strict=True):
            first = span[0][0]
            for start, stop in span:
                yield bags[start - first : stop - first]
