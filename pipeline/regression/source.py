"""Where labelled bags come from: memory or a store, behind one interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, BagStore, Box, as_bags
from ..bags.labelled import box_of_bags
from ..bags.plan import Range, sample_ranges
from ..bags.reading import iter_bags, sample_of
from ..errors import DataError, ParameterError

Batch = tuple[Range, Bags, Any]  # the labels: an array (n_bags, k), or `Responses`


@dataclass(frozen=True)
class MemorySource:
    """Bags in memory with targets: (n_bags, k), NaN where unlabelled; or their `Responses`."""

    bags: Bags
    targets: Any
    target_names: tuple[str, ...] = ()

    @property
    def start(self) -> int:
        return 0

    @property
    def n_bags(self) -> int:
        return len(self.bags)

    @property
    def n_points(self) -> int:
        return self.bags.n_points

    @property
    def n_dims(self) -> int:
        return self.bags.n_dims

    @property
    def box(self) -> Box:
        return box_of_bags(self.bags)

    @property
    def url(self) -> str | None:
        return None

    @property
    def snapshot(self) -> str | None:
        return None

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        yield (start, stop), self.bags[start:stop], self.targets[start:stop]

    def sample(self, n_runs: int, run_length: int) -> Iterator[Bags]:
        for start, stop in sample_ranges(self.n_bags, n_runs, run_length):
            yield self.bags[start:stop]

    def all_targets(self) -> Iterator[NDArray[np.float64]]:
        yield self.targets


@dataclass(frozen=True)
class StoreSource:
    """Bags ``start:stop`` of a store at its committed length, with the named targets.

    Ranges of bags are positions in the store.
    """

    store: BagStore
    target_names: tuple[str, ...]
    start: int = 0
    stop: int | None = None

    @property
    def end(self) -> int:
        """The position after the last bag."""
        return self.store.n_bags if self.stop is None else self.stop

    @property
    def n_bags(self) -> int:
        return self.end - self.start

    @property
    def n_points(self) -> int:
        if self.n_bags == self.store.n_bags:
            return self.store.n_points
        first, last = (self.store.offsets(at, at)[0] for at in (self.start, self.end))
        return int(last - first)

    @property
    def n_dims(self) -> int:
        return self.store.n_dims

    @property
    def box(self) -> Box:
        return self.store.box

    @property
    def url(self) -> str | None:
        return self.store.url

    @property
    def snapshot(self) -> str | None:
        """The id of the snapshot that is read, of a store that has snapshots."""
        return self.store.snapshot

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        for (a, b), bags in iter_bags(self.store, start, stop):
            yield (a, b), bags, self.store.targets(a, b, self.target_names)

    def labels(self, runs: Sequence[Range]) -> Iterator[tuple[Range, Any]]:
        """What `batches` gives as labels, of some ranges and without the bags."""
        for start, stop in runs:
            yield (start, stop), self.store.targets(start, stop, self.target_names)

    def sample(self, n_runs: int, run_length: int) -> Iterator[Bags]:
        return sample_of(self.store, n_runs, run_length, self.start, self.stop)

    def all_targets(self) -> Iterator[NDArray[np.float64]]:
        step = 2**20
        for start in range(self.start, self.end, step):
            yield self.store.targets(start, min(self.end, start + step), self.target_names)


Source = MemorySource | StoreSource
S = TypeVar("S", bound=Source)


def within(source: S, bags: Range | None) -> S:
    """The source of some of a store's bags; None: of all that the source has."""
    if bags is None:
        return source
    assert isinstance(source, StoreSource)
    return replace(source, start=bags[0], stop=bags[1])


def as_source(X: Any, y: Any, target: str | Sequence[str] | None) -> tuple[Source, bool]:
    """The source of what `fit` was given, and whether its targets are one-dimensional.

    Raises
    ------
    DataError
        No targets, targets of another length, or names the store does not have.
    ParameterError
        y beside a store, or target beside bags in memory.
    """
    if isinstance(X, BagStore):
        if y is not None:
            raise ParameterError("a BagStore carries its targets: pass target='name', not y")
        names = _names(X, target)
        X.target_columns(names)
        if X.n_bags == 0:
            raise DataError(f"{X.url}: no bags to fit")
        return StoreSource(X, names), isinstance(target, str) or (
            target is None and len(names) == 1
        )
    if target is not None:
        raise ParameterError("target names a column of a BagStore; pass y for bags in memory")
    bags = as_bags(X)
    if len(bags) == 0:
        raise DataError("no bags to fit")
    if y is None:
        raise DataError("y is missing: one target, or a row of targets, a bag")
    targets = np.asarray(y)
    if targets.ndim not in (1, 2) or len(targets) != len(bags) or targets.size == 0:
        raise DataError(f"y has shape {targets.shape}, there are {len(bags)} bags")
    return MemorySource(bags, targets.reshape(len(bags), -1)), targets.ndim == 1


def _names(store: BagStore, target: str | Sequence[str] | None) -> tuple[str, ...]:
    if target is None:
        if len(store.target_names) != 1:
            raise DataError(
                f"{store.url} has the targets {list(store.target_names)}; say which with target="
            )
        return store.target_names
    names = (target,) if isinstance(target, str) else tuple(target)
    if not names:
        raise DataError(f"target= is empty; {store.url} has {list(store.target_names)}")
    return names
