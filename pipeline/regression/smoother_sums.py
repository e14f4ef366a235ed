"""The sums of a kernel smoother: additive over training bags, exact, of fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bags.plan import Range, split_evenly
from ..execution import Report
from .encoding import Encoding
from .feature_map import FeatureMap, naming
from .source import Source
from .split import Split

ROWS_A_BLOCK = 2048
TASK_SECONDS, MAX_TASKS, FLOPS_A_CORE = 30.0, 4096, 3e10

Rows = tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]]


class TrainingRows(Protocol):
    """Labelled training bags: their indices, embeddings (n, s) and targets (n, k)."""

    @property
    def n_bags(self) -> int: ...
    def blocks(self, start: int, stop: int) -> Iterator[Rows]: ...


@dataclass(frozen=True)
class KeptRows:
    """Embeddings and targets that lie in memory."""

    embeddings: NDArray[Any]
    targets: NDArray[np.float64]

    @property
    def n_bags(self) -> int:
        return len(self.embeddings)

    def blocks(self, start: int, stop: int) -> Iterator[Rows]:
        for first in range(start, stop, ROWS_A_BLOCK):
            rows = np.arange(first, min(stop, first + ROWS_A_BLOCK))
            yield rows, self.embeddings[rows[0] : rows[-1] + 1], self.targets[rows]


@dataclass(frozen=True)
class StreamedRows:
    """Rows made from the source at every pass: nothing is kept, whatever the number of bags."""

    source: Source
    features: FeatureMap
    encoding: Encoding
    precision: str
    holdout: Split | None = None

    @property
    def n_bags(self) -> int:
        return self.source.n_bags

    def blocks(self, start: int, stop: int) -> Iterator[Rows]:
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
                yield a + rows, embeddings, targets


@dataclass(frozen=True)
class SmootherSums:
    """For each query Σ w and Σ w y, w = exp(−(Δ² − nearest) / 2h²), for each bandwidth h.

    Relative to the nearest training bag so far, so that no sum underflows.

    Attributes
    ----------
    nearest : shape (m,)
        Least squared distance to a training bag; infinite before there is one.
    weight : shape (n_bandwidths, m)
    total : shape (n_bandwidths, m, k)
    """

    bandwidths: NDArray[np.float64]
    nearest: NDArray[np.float64]
    weight: NDArray[np.float64]
    total: NDArray[np.float64]

    @classmethod
    def empty(cls, bandwidths: NDArray[np.float64], m: int, k: int) -> SmootherSums:
        n = len(bandwidths)
        return cls(bandwidths, np.full(m, np.inf), np.zeros((n, m)), np.zeros((n, m, k)))

    def __add__(self, other: SmootherSums) -> SmootherSums:
        nearest = np.minimum(self.nearest, other.nearest)
        weight, total = np.zeros_like(self.weight), np.zeros_like(self.total)
        for part in (self, other):
            factor = np.exp(_exponents(nearest, part.nearest, self.bandwidths))
            weight += factor * part.weight
            total += factor[:, :, None] * part.total
        return SmootherSums(self.bandwidths, nearest, weight, total)

    @property
    def predictions(self) -> NDArray[np.float64]:
        """Σ w y / Σ w (004, eq. 3.4 and 3.22), shape (n_bandwidths, m, k)."""
        return self.total / self.weight[:, :, None]


@dataclass(frozen=True)
class SmootherTask:
    """The sums over a range of training bags: a pure function of its fields and the range.

    ``queries`` (m, s) are embeddings relative to ``centre``, which keeps the digits of their
    distances; ``own`` is the index of each query among the training bags, left out of its own
    sums, or None.
    """

    training: TrainingRows
    queries: NDArray[Any]
    bandwidths: NDArray[np.float64]
    centre: NDArray[Any]
    n_targets: int
    own: NDArray[np.int64] | None = None

    def __call__(self, bag_range: Range, report: Report) -> SmootherSums:
        sums = SmootherSums.empty(self.bandwidths, len(self.queries), self.n_targets)
        for rows, embeddings, targets in self.training.blocks(*bag_range):
            sums = sums + self._block(rows, embeddings, targets)
            report(int(rows[-1]) + 1 - bag_range[0])
        return sums

    def _block(
        self, rows: NDArray[np.int64], embeddings: NDArray[Any], targets: NDArray[np.float64]
    ) -> SmootherSums:
        squares = squared_distances(self.queries, embeddings - self.centre)
        if self.own is not None:
            at = np.searchsorted(rows, self.own)
            hit = rows[np.minimum(at, len(rows) - 1)] == self.own
            squares[np.flatnonzero(hit), at[hit]] = np.inf
        nearest = squares.min(axis=1).astype(np.float64)
        above = np.subtract(squares, np.where(np.isfinite(nearest), nearest, 0.0)[:, None])
        above = above.astype(squares.dtype, copy=False)
        typed = targets.astype(squares.dtype)
        n = len(self.bandwidths)
        weight = np.empty((n, len(squares)))
        total = np.empty((n, len(squares), self.n_targets))
        for j, bandwidth in enumerate(self.bandwidths):
            w = np.exp(above * squares.dtype.type(-0.5 / bandwidth**2))
            weight[j] = w.sum(axis=1, dtype=np.float64)
            total[j] = w @ typed
        return SmootherSums(self.bandwidths, nearest, weight, total)


def squared_distances(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """‖a_i − b_j‖², shape (len(a), len(b)), by one matrix product."""
    products = a @ b.T
    products *= -2
    products += (a**2).sum(axis=1)[:, None]
    products += (b**2).sum(axis=1)
    return np.maximum(products, 0, out=products)


def training_ranges(training: TrainingRows, n_queries: int, width: int) -> list[Range]:
    """Ranges of about half a minute; a function of the data and the queries alone."""
    flops = 2.0 * training.n_bags * max(n_queries, 64) * width
    n_tasks = int(np.ceil(flops / FLOPS_A_CORE / TASK_SECONDS))
    return split_evenly(training.n_bags, min(MAX_TASKS, max(1, n_tasks)))


def _exponents(
    nearest: NDArray[np.float64], part: NDArray[np.float64], bandwidths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """−(part − nearest) / 2h², −∞ for a part that saw no training bag; (n_bandwidths, m)."""
    seen = np.isfinite(part)
    gap = np.where(seen, part, 0.0) - np.where(seen, nearest, 0.0)
    return np.where(seen, -0.5 * gap / bandwidths[:, None] ** 2, -np.inf)
