"""Reading a range of bags partition by partition, the next one while this one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from .bags import Bags
from .plan import Range, plan_partitions, sample_ranges
from .store import BagStore

PARTITION_BYTES = 2**25

T = TypeVar("T")


def partitions(
    store: BagStore, start: int, stop: int, max_bytes: int = PARTITION_BYTES
) -> list[Range]:
    """Bag ranges within ``start:stop`` whose points take about ``max_bytes`` or are one bag."""
    max_rows = max(1, max_bytes // (store.dtype.itemsize * store.n_dims))
    ranges = plan_partitions(store.offsets(start, stop), store.chunk_points, max_rows)
    return [(start + a, start + b) for a, b in ranges]


def iter_bags(store: BagStore, start: int, stop: int) -> Iterator[tuple[Range, Bags]]:
    """Partitions of ``start:stop`` in order, each with its bags, prefetching one."""
    ranges = partitions(store, start, stop)
    with closing(prefetch(lambda r: store.read(*r), ranges)) as loaded:
        yield from zip(ranges, loaded, strict=True)


def sample_of(store: BagStore, n_runs: int, run_length: int) -> Iterator[Bags]:
    """Bags of up to ``n_runs`` evenly spread runs of ``run_length`` bags, run by run."""
    return prefetch(lambda r: store.read(*r), sample_ranges(store.n_bags, n_runs, run_length))


def prefetch(load: Callable[[Range], T], ranges: Sequence[Range]) -> Generator[T, None, None]:
    """``load`` of each range in order; one thread loads the next while the caller works."""
    if not ranges:
        return
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as pool:
        upcoming = pool.submit(load, ranges[0])
        for following in ranges[1:]:
            value = upcoming.result()
            upcoming = pool.submit(load, following)
            yield value
        yield upcoming.result()
