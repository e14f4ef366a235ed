"""Reading a range of bags partition by partition, the next one while this one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from .bags import Bags
from .plan import Range, plan_partitions, sample_ranges
from .responses import Responses
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


def pair_partitions(
    store: BagStore, start: int, stop: int, max_bytes: int = PARTITION_BYTES
) -> list[Range]:
    """As `partitions`, where the points of the responses take their part of ``max_bytes``."""
    offsets = store.offsets(start, stop)
    response_offsets = store.response_offsets(start, stop)
    values = offsets * store.n_dims + response_offsets * (store.response_dims or 0)
    max_values = max(1, max_bytes // store.dtype.itemsize)
    ranges = plan_partitions(offsets, store.chunk_points, max_values, values)
    return [(start + a, start + b) for a, b in ranges]


def iter_bags(store: BagStore, start: int, stop: int) -> Iterator[tuple[Range, Bags]]:
    """Partitions of ``start:stop`` in order, each with its bags, prefetching one."""
    ranges = partitions(store, start, stop)
    with closing(prefetch(lambda r: store.read(*r), ranges)) as loaded:
        yield from zip(ranges, loaded, strict=True)


def iter_pairs(store: BagStore, start: int, stop: int) -> Iterator[tuple[Range, Bags, Responses]]:
    """Partitions of ``start:stop`` in order, each with its bags and their responses."""
    ranges = pair_partitions(store, start, stop)
    with closing(prefetch(lambda r: (store.read(*r), store.responses(*r)), ranges)) as loaded:
        for bag_range, (bags, responses) in zip(ranges, loaded, strict=True):
            yield bag_range, bags, responses


def sample_of(
    store: BagStore, n_runs: int, run_length: int, start: int = 0, stop: int | None = None
) -> Iterator[Bags]:
    """Bags of up to ``n_runs`` evenly spread runs of ``run_length`` of the bags ``start:stop``."""
    ranges = _sampled_ranges(store, n_runs, run_length, start, stop)
    return prefetch(lambda r: store.read(*r), ranges)


def sample_of_responses(
    store: BagStore, n_runs: int, run_length: int, start: int = 0, stop: int | None = None
) -> Iterator[Bags]:
    """The responses of the bags of `sample_of`; runs of bags without any are left out."""
    ranges = _sampled_ranges(store, n_runs, run_length, start, stop)
    for responses in prefetch(lambda r: store.responses(*r), ranges):
        if responses.n_points:
            yield responses.present


def _sampled_ranges(
    store: BagStore, n_runs: int, run_length: int, start: int, stop: int | None
) -> list[Range]:
    n_bags = (store.n_bags if stop is None else stop) - start
    return [(start + a, start + b) for a, b in sample_ranges(n_bags, n_runs, run_length)]


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
