"""The sums of a kernel smoother: additive over training bags, exact, of fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bags.plan import Range, split_evenly
from ..bags.splits import Split
from ..errors import DataError
from ..execution import Report
from .encoding import Encoding
from .feature_map import FeatureMap, naming
from .source import Source

ROWS_A_BLOCK = 2048
TASK_SECONDS, MAX_TASKS, FLOPS_A_CORE = 30.0, 4096, 3e10


@dataclass(frozen=True)
class RowBlock:
    """Labelled training bags.

    Attributes
    ----------
    index : int64, shape (n,)
        Ascending.
    embeddings : shape (n, s)
        Relative to a centre, which keeps the digits of their distances.
    halves : shape (n,)
        ‖embedding‖² / 2.
    targets : shape (n, k)
        In the precision of the embeddings.
    """

    index: NDArray[np.int64]
    embeddings: NDArray[Any]
    halves: NDArray[Any]
    targets: NDArray[Any]


class TrainingRows(Protocol):
    """The labelled training bags of ranges of bags, block by block."""

    @property
    def n_bags(self) -> int: ...
    def blocks(self, start: int, stop: int) -> Iterator[RowBlock]: ...


@dataclass(frozen=True)
class KeptRows:
    """Rows that lie in memory; fields as in `RowBlock`."""

    embeddings: NDArray[Any]
    halves: NDArray[Any]
    targets: NDArray[Any]

    @classmethod
    def of(cls, rows: TrainingRows) -> KeptRows:
        """All labelled rows, renumbered."""
        blocks = list(rows.blocks(0, rows.n_bags))
        if not blocks:
            raise DataError("no labelled bags to fit")
        return cls(
            np.concatenate([block.embeddings for block in blocks]),
            np.concatenate([block.halves for block in blocks]),
            np.concatenate([block.targets for block in blocks]),
        )

    @property
    def n_bags(self) -> int:
        return len(self.embeddings)

    def blocks(self, start: int, stop: int) -> Iterator[RowBlock]:
        for first in range(start, stop, ROWS_A_BLOCK):
            last = min(stop, first + ROWS_A_BLOCK)
            yield RowBlock(
                np.arange(first, last),
                self.embeddings[first:last],
                self.halves[first:last],
                self.targets[first:last],
            )


@dataclass(frozen=True)
class StreamedRows:
    """Rows made from the source at every pass: nothing is kept, whatever the number of bags."""

    source: Source
    features: FeatureMap
    encoding: Encoding
    precision: str
    holdout: Split | None = None
    centre: NDArray[Any] | float = 0.0

    @property
    def n_bags(self) -> int:
        return self.source.n_bags

    def blocks(self, start: int, stop: int) -> Iterator[RowBlock]:
        for (a, b), bags, labels in self.source.batches(start, stop):
            known = self.encoding.labelled(labels)
            if self.holdout is not None:
                known &= ~self.holdout.members(a, b)
            labelled = np.flatnonzero(known)
            for first in range(0, len(labelled), ROWS_A_BLOCK):
                rows = labelled[first : first + ROWS_A_BLOCK]
                with naming(self.source.url, a + rows):
                    targets, _ = self.encoding.rows(labels, rows)
                    embeddings, _ = self.features.embed(bags[rows], self.precision)
                embeddings = embeddings - self.centre
                halves = (embeddings**2).sum(axis=1) / 2
                yield RowBlock(a + rows, embeddings, halves, targets.astype(self.precision))


@dataclass(frozen=True)
class SmootherSums:
    """For each query Σ w and Σ w y, w = exp((closeness − top) / h²), for each bandwidth h.

    The closeness of a query q to a training bag r is qᵀr − ‖r‖²/2 = (‖q‖² − Δ²)/2: weights are
    exp(−Δ² / 2h²) up to a factor of the query, which cancels in Σ w y / Σ w. They are relative to
    the closest training bag so far, so that no sum underflows.

    Attributes
    ----------
    top : shape (m,)
        The largest closeness; −∞ before there is one.
    weight : shape (n_bandwidths, m)
    total : shape (n_bandwidths, m, k)
    """

    bandwidths: NDArray[np.float64]
    top: NDArray[np.float64]
    weight: NDArray[np.float64]
    total: NDArray[np.float64]

    @classmethod
    def empty(cls, bandwidths: NDArray[np.float64], m: int, k: int) -> SmootherSums:
        n = len(bandwidths)
        return cls(bandwidths, np.full(m, -np.inf), np.zeros((n, m)), np.zeros((n, m, k)))

    def __add__(self, other: SmootherSums) -> SmootherSums:
        top = np.maximum(self.top, other.top)
        weight, total = np.zeros_like(self.weight), np.zeros_like(self.total)
        for part in (self, other):
            factor = np.exp(_relative(part.top, top) / self.bandwidths[:, None] ** 2)
            weight += factor * part.weight
            total += factor[:, :, None] * part.total
        return SmootherSums(self.bandwidths, top, weight, total)

    @property
    def predictions(self) -> NDArray[np.float64]:
        """Σ w y / Σ w (004, eq. 3.4 and 3.22), shape (n_bandwidths, m, k)."""
        return self.total / self.weight[:, :, None]


@dataclass(frozen=True)
class SmootherTask:
    """The sums over a range of training bags: a pure function of its fields and the range.

    ``queries`` (m, s) are embeddings relative to the centre of the training rows; ``own`` is the
    index of each query among the training bags, left out of its own sums, or None.
    """

    training: TrainingRows
    queries: NDArray[Any]
    bandwidths: NDArray[np.float64]
    n_targets: int
    own: NDArray[np.int64] | None = None

    def __call__(self, bag_range: Range, report: Report) -> SmootherSums:
        sums = SmootherSums.empty(self.bandwidths, len(self.queries), self.n_targets)
        for rows in self.training.blocks(*bag_range):
            sums = sums + self._block(rows)
            report(int(rows.index[-1]) + 1 - bag_range[0])
        return sums

    def _block(self, rows: RowBlock) -> SmootherSums:
        closeness = self.queries @ rows.embeddings.T
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
            total[j] = w @ rows.targets
        return SmootherSums(self.bandwidths, top.astype(np.float64), weight, total)


def training_ranges(training: TrainingRows, n_queries: int, width: int) -> list[Range]:
    """Ranges of about half a minute; a function of the data and the queries alone."""
    flops = 2.0 * training.n_bags * max(n_queries, 64) * width
    n_tasks = int(np.ceil(flops / FLOPS_A_CORE / TASK_SECONDS))
    return split_evenly(training.n_bags, min(MAX_TASKS, max(1, n_tasks)))


def _relative(part: NDArray[np.float64], top: NDArray[np.float64]) -> NDArray[np.float64]:
    """part − top ≤ 0, shape (m,); −∞ for a part that saw no training bag."""
    seen = np.isfinite(part)
    return np.where(seen, np.where(seen, part, 0.0) - np.where(seen, top, 0.0), -np.inf)
