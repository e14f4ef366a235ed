"""The sums of a kernel smoother: additive over training bags, exact, of a fixed size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.store.reading import PARTITION_BYTES
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.passes import Index, RowsOfBags, Source
from ...execution.products import multiply
from ..fitting.feature_map import FeatureMap
from ..outcomes.base import Outcome

SMOOTHED_ROWS = 2048  # training bags whose weights for all queries are in memory at a time
_SECONDS_PER_WEIGHT = 5e-9  # subtract, multiply, exp and sum of a number, on one core


@dataclass(frozen=True)
class TrainingBlock:
    """Labelled training bags.

    Attributes
    ----------
    index : int64, shape (n,)
        Positions of the bags, ascending.
    embeddings : shape (n, s)
        Embeddings minus a centre, which keeps the digits of their distances.
    halves : shape (n,)
        ‖embedding‖² / 2.
    targets : shape (n, k)
        Targets less an origin, in units of 2^``exponents``, in the precision of the embeddings.
        Before the units are chosen, targets in double precision.
    stop : int
        Position after the last training bag of the block.
    """

    index: Integers
    embeddings: NDArray[Any]
    halves: NDArray[Any]
    targets: NDArray[Any]
    stop: int

    @classmethod
    def joined(cls, blocks: Sequence[TrainingBlock]) -> Self:
        """Return several blocks, of ascending positions, as one."""
        names = ("index", "embeddings", "halves", "targets")
        index, embeddings, halves, targets = (
            np.concatenate([getattr(block, name) for block in blocks]) for name in names
        )
        return cls(index, embeddings, halves, targets, blocks[-1].stop)


class TrainingRows(Source, Protocol):
    """A `Source` whose batches are blocks of labelled training bags."""

    @property
    def cost(self) -> Cost:
        """Cost of computing the rows."""
        ...

    def batches(
        self, start: int, stop: int, *, rows_per_block: int = ..., max_bytes: int = ...
    ) -> Iterator[TrainingBlock]:
        """Yield blocks of rows in order."""
        ...


@dataclass(frozen=True)
class RowsInMemory:
    """Rows that lie in memory; fields as in `TrainingBlock`."""

    embeddings: NDArray[Any]
    halves: NDArray[Any]
    targets: NDArray[Any]

    start = 0
    n_points = 0  # none is read again
    n_dims = 0
    in_memory = True
    cost = Cost()

    @classmethod
    def of(cls, rows: TrainingRows) -> RowsInMemory:
        """Return all labelled rows, renumbered."""
        blocks = list(rows.batches(rows.start, rows.start + rows.n_bags))
        if not blocks:
            raise DataError("no labelled bags to fit")
        whole = TrainingBlock.joined(blocks)
        return cls(whole.embeddings, whole.halves, whole.targets)

    @property
    def n_bags(self) -> int:
        """Bags of the pass, labelled or not."""
        return len(self.embeddings)

    def batches(
        self,
        start: int,
        stop: int,
        *,
        rows_per_block: int = SMOOTHED_ROWS,
        max_bytes: int = PARTITION_BYTES,
    ) -> Iterator[TrainingBlock]:
        """Yield blocks of rows in order; see `Source`."""
        for first in range(start, stop, rows_per_block):
            last = min(stop, first + rows_per_block)
            yield TrainingBlock(
                np.arange(first, last),
                self.embeddings[first:last],
                self.halves[first:last],
                self.targets[first:last],
                last,
            )

    def naming(self, index: Index) -> AbstractContextManager[None]:
        """Do nothing: the bags of these rows were embedded before."""
        return nullcontext()


@dataclass(frozen=True)
class StreamedRows(RowsOfBags):
    """Rows made from the bags at every pass: nothing is kept, whatever the number of bags."""

    bags: LabelledBags
    features: FeatureMap
    outcome: Outcome
    precision: str
    centre: NDArray[Any] | float = 0.0
    exponents: Integers | None = None
    origin: Floats | float = 0.0

    @property
    def cost(self) -> Cost:
        """Cost of embedding the bags."""
        return self.features.cost

    def batches(
        self,
        start: int,
        stop: int,
        *,
        rows_per_block: int = SMOOTHED_ROWS,
        max_bytes: int = PARTITION_BYTES,
    ) -> Iterator[TrainingBlock]:
        """Yield blocks of rows in order; see `Source`."""
        limits = {"rows_per_block": rows_per_block, "max_bytes": max_bytes}
        for batch in self.bags.batches(start, stop, **limits):
            if len(batch):
                with self.naming(batch.index):
                    rows = self._rows(batch)
                yield rows

    def _rows(self, batch: Batch) -> TrainingBlock:
        targets, _ = self.outcome.encode(batch.labels)
        embeddings, _ = self.features.embed(batch.bags, self.precision)
        embeddings = embeddings - self.centre
        halves = (embeddings**2).sum(axis=1) / 2
        if self.exponents is not None:
            targets = np.ldexp(targets - self.origin, -self.exponents).astype(self.precision)
        return TrainingBlock(batch.index, embeddings, halves, targets, batch.stop)


@dataclass(frozen=True)
class SmootherSums:
    """For each query Σ w and Σ w y, w = exp((closeness − top) / h²), for each bandwidth h.

    The closeness of a query q to a training bag r is qᵀr − ‖r‖²/2 = (‖q‖² − Δ²)/2. The weights are
    exp(−Δ² / 2h²) up to a factor that depends on the query and cancels in Σ w y / Σ w. They are
    relative to the weight of the closest training bag so far, so that no sum underflows.

    Attributes
    ----------
    top : shape (m,)
        Largest closeness; −∞ before the first training bag.
    weight : shape (n_bandwidths, m)
    total : shape (n_bandwidths, m, k)
    """

    bandwidths: Floats
    top: Floats
    weight: Floats
    total: Floats

    @classmethod
    def empty(cls, bandwidths: Floats, m: int, k: int) -> SmootherSums:
        """Return the sums over no training bags, of m queries and k targets."""
        n = len(bandwidths)
        return cls(bandwidths, np.full(m, -np.inf), np.zeros((n, m)), np.zeros((n, m, k)))

    def __add__(self, other: SmootherSums) -> SmootherSums:
        """Return the sums over both sets of training bags."""
        top = np.maximum(self.top, other.top)
        weight, total = np.zeros_like(self.weight), np.zeros_like(self.total)
        for part in (self, other):
            factor = np.exp(_relative(part.top, top) / self.bandwidths[:, None] ** 2)
            weight += factor * part.weight
            total += factor[:, :, None] * part.total
        return SmootherSums(self.bandwidths, top, weight, total)

    @property
    def predictions(self) -> Floats:
        """Σ w y / Σ w (Oliva 2018, eq. 3.4 and 3.22), shape (n_bandwidths, m, k)."""
        return self.total / self.weight[:, :, None]


@dataclass
class QuerySums:
    """The `SmootherSums` of the blocks of one task.

    ``queries`` (m, s) are embeddings minus the centre of the training rows. ``own`` has the index
    of each query among the training bags, which is left out of its sums; None: none is left out.
    """

    queries: NDArray[Any]
    bandwidths: Floats
    n_targets: int
    own: Integers | None = None
    sums: SmootherSums = field(init=False)

    def __post_init__(self) -> None:
        """Begin with sums over no training bags."""
        self.sums = SmootherSums.empty(self.bandwidths, len(self.queries), self.n_targets)

    def add(self, rows: TrainingBlock) -> None:
        """Add the weights of a block of training bags."""
        self.sums = self.sums + self._block(rows)

    def finish(self) -> SmootherSums:
        """Return the sums of all blocks."""
        return self.sums

    def _block(self, rows: TrainingBlock) -> SmootherSums:
        closeness = multiply(self.queries, rows.embeddings.T)
        closeness -= rows.halves
        if self.own is not None:
            at = np.searchsorted(rows.index, self.own)
            hit = rows.index[np.minimum(at, len(rows.index) - 1)] == self.own
            closeness[np.flatnonzero(hit), at[hit]] = -np.inf
        top = closeness.max(axis=1)
        below = np.subtract(closeness, np.where(np.isfinite(top), top, 0)[:, None], out=closeness)
        n = len(self.bandwidths)
        weight = np.empty((n, len(below)))
        total = np.empty((n, len(below), self.n_targets))
        for j, bandwidth in enumerate(self.bandwidths):
            w = np.multiply(
                below, below.dtype.type(bandwidth**-2), out=below if j == n - 1 else None
            )
            np.exp(w, out=w)
            weight[j] = w.sum(axis=1)
            total[j] = multiply(w, rows.targets)
        return SmootherSums(self.bandwidths, top.astype(np.float64), weight, total)


def smoothing_cost(n_queries: int, n_bandwidths: int, n_columns: int, n_targets: int) -> Cost:
    """Return the cost of `QuerySums` per training bag of ``n_columns`` coefficients."""
    products = n_queries * (n_columns + n_bandwidths * n_targets)
    sums = 8 * n_queries * n_bandwidths * (n_targets + 1)
    return Cost(
        seconds_per_bag=products * SECONDS_PER_PRODUCT
        + n_queries * n_bandwidths * _SECONDS_PER_WEIGHT,
        # the closeness of a bag to each query, and the weights of two bandwidths
        bytes_per_bag=8 * (3 * n_queries + n_columns + n_targets),
        bytes_per_task=3 * sums,  # those so far, those of a block, and both
    )


def _relative(part: Floats, top: Floats) -> Floats:
    """Return part − top ≤ 0, shape (m,); −∞ for a part that saw no training bag."""
    seen = np.isfinite(part)
    return np.where(seen, np.where(seen, part, 0.0) - np.where(seen, top, 0.0), -np.inf)
