"""Where bags with response bags come from: memory or a store, behind one interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ..bags import Bags, BagStore, Box, Responses, as_bags, as_responses
from ..bags.labelled import box_of_bags
from ..bags.plan import Range, sample_ranges
from ..bags.reading import iter_pairs, pair_partitions, prefetch, sample_of_responses
from ..errors import DataError, ParameterError
from .source import MemorySource, StoreSource


@dataclass(frozen=True)
class MemoryPairs(MemorySource):
    """Bags in memory with their responses for targets."""

    targets: Responses

    @property
    def response_dims(self) -> int:
        return self.targets.n_dims

    @property
    def response_box(self) -> Box:
        return box_of_bags(self.targets.present)

    def response_sample(self, n_runs: int, run_length: int) -> Iterator[Bags]:
        for start, stop in sample_ranges(self.n_bags, n_runs, run_length):
            if self.targets[start:stop].n_points:
                yield self.targets[start:stop].present


@dataclass(frozen=True)
class StorePairs(StoreSource):
    """Bags of a store with their responses."""

    target_names: tuple[str, ...] = ()

    @property
    def response_dims(self) -> int:
        assert self.store.response_dims is not None
        return self.store.response_dims

    @property
    def response_box(self) -> Box:
        assert self.store.response_box is not None
        return self.store.response_box

    def batches(self, start: int, stop: int) -> Iterator[Any]:
        return iter_pairs(self.store, start, stop)

    def labels(self, runs: Sequence[Range]) -> Iterator[tuple[Range, Responses]]:
        ranges = [part for run in runs for part in pair_partitions(self.store, *run)]
        with closing(prefetch(lambda r: self.store.responses(*r), ranges)) as loaded:
            yield from zip(ranges, loaded, strict=True)

    def response_sample(self, n_runs: int, run_length: int) -> Iterator[Bags]:
        return sample_of_responses(self.store, n_runs, run_length, self.start, self.stop)


Pairs = MemoryPairs | StorePairs


def as_pairs(X: Any, responses: Any) -> Pairs:
    """The pairs of what `fit` was given.

    Raises
    ------
    DataError
        No bags, or no responses; for responses in memory another number than bags, or values
        that are not finite numbers.
    ParameterError
        responses beside a store.
    """
    if isinstance(X, BagStore):
        if responses is not None:
            raise ParameterError("a BagStore carries its responses: pass the store alone")
        if X.response_dims is None:
            raise DataError(f"{X.url}: holds no responses; create it with response_dims=")
        if X.n_response_points == 0:
            raise DataError(f"{X.url}: no bag has a response")
        return StorePairs(X)
    bags = as_bags(X)
    if len(bags) == 0:
        raise DataError("no bags to fit")
    if responses is None:
        raise DataError("responses are missing: one (m_i, k) array a bag, None for a bag without")
    checked = as_responses(responses, len(bags))
    if checked.n_points == 0:
        raise DataError("no bag has a response")
    return MemoryPairs(bags, checked)
