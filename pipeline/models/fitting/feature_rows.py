"""Rows of features that are read in every pass, kept in the workers' memory as far as it goes.

A worker keeps the features of a block of bags, or only its embeddings, or nothing, and computes the
rest again in each pass. The result does not depend on what is kept: a lost worker, or a task that
runs elsewhere, costs time and changes no bit.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import psutil
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.splits import Membership
from ...data.labelled.weights import Weights
from ...execution.affinity import addresses
from ...execution.passes import Index, RowsOfBags
from ...execution.tasks import current_client, worker_memory
from ..outcomes.base import Outcome
from .feature_map import FeatureMap
from .plan import FitPlan

ROW_BLOCK_BYTES = 2**26  # features that are in memory at a time
KEPT_FRACTION = 0.4  # fraction of a worker's memory for cached rows: Dask spills from .6 on


@dataclass(frozen=True)
class RowBlock:
    """Some bags of a pass, those to fit before those held apart.

    Attributes
    ----------
    stop : int
        Position after the last bag that is done.
    index : int64, shape (n,)
        Positions of the bags in the data.
    n_fitted : int
        Number of the first rows, which were fitted.
    y : float64, shape (n, k)
    embeddings : array (n, s)
    z : array (n, D), or None
        Features that are begun, where they are kept.
    counts : tuple of int
        Counts as in `FitStatistics`: bags unlabelled and held out, points, points outside the box,
        points of responses outside.
    weights : float64, shape (n,), optional
    """

    stop: int
    index: Integers
    n_fitted: int
    y: Floats
    embeddings: NDArray[Any]
    z: NDArray[Any] | None
    counts: tuple[int, ...]
    weights: Floats | None = None

    def __len__(self) -> int:
        """Count the bags."""
        return len(self.y)

    @property
    def n_bytes(self) -> int:
        """Bytes of its arrays."""
        n_bytes_of_z = 0 if self.z is None else self.z.nbytes
        return self.y.nbytes + self.embeddings.nbytes + n_bytes_of_z

    def features(self, made_by: FeatureMap, buffer: NDArray[Any]) -> NDArray[Any]:
        """Return the features begun, shape (n, D): those kept, or made in ``buffer``."""
        if self.z is not None:
            return self.z
        made_by.begin(self.embeddings, buffer[: len(self)])
        return buffer[: len(self)]


@dataclass(frozen=True)
class Keeping:
    """What workers keep of the rows of one fit.

    Attributes
    ----------
    token : str
        Identity of the fit.
    share : float
        Fraction of the rows whose features are kept; of the other rows, the embeddings are kept.
    max_bytes : int
        Largest number of bytes of a worker.
    """

    token: str
    share: float
    max_bytes: int

    @classmethod
    def of(cls, token: str, n_rows: int, wide: int, narrow: int, here: bool) -> Keeping:
        """Plan what to keep of rows with ``wide`` bytes of features or ``narrow`` of embeddings."""
        workers = addresses(here)
        # a worker without a limit, and this process, share their machine with others
        machine = psutil.virtual_memory().available // max(1, len(workers))
        memory = worker_memory(here)
        known = workers and memory < sys.maxsize
        most = int(KEPT_FRACTION * (memory if known else min(memory, machine)))
        spare = most * max(1, len(workers)) - n_rows * narrow
        return cls(token, min(1.0, max(0.0, spare / max(1, n_rows * (wide - narrow)))), most)


@dataclass(frozen=True)
class FeatureRows(RowsOfBags):
    """The labelled bags of a fit as blocks of embeddings or features; a `Source` of `run_pass`."""

    bags: LabelledBags
    features: FeatureMap
    outcome: Outcome
    validation: Membership | None
    precision: str
    keeping: Keeping
    weights: Weights | None = None

    @classmethod
    def of(cls, plan: FitPlan, keeping: Keeping) -> Self:
        """Return the rows of a plan's bags."""
        return cls(
            plan.bags,
            plan.features,
            plan.outcome,
            plan.validation,
            plan.precision,
            keeping,
            plan.weights,
        )

    def batches(
        self, start: int, stop: int, *, rows_per_block: int, max_bytes: int
    ) -> Iterator[RowBlock]:
        """Yield blocks in order; the first time they are made of the bags, and kept."""
        stored = KEPT_ROWS.get(self.keeping.token, start, stop)
        if stored is not None:
            yield from stored
            return
        blocks: list[RowBlock] = []
        n_rows, n_bytes, free = 0, 0, KEPT_ROWS.free_bytes(self.keeping)
        for block in self._made(start, stop, rows_per_block, max_bytes):
            if len(block) and n_rows + len(block) <= self.keeping.share * (stop - start) + 1e-9:
                z = np.empty((len(block), self.features.n_features), self.precision)
                self.features.begin(block.embeddings, z)
                block = replace(block, z=z)
            n_rows, n_bytes = n_rows + len(block), n_bytes + block.n_bytes
            if n_bytes <= free:
                blocks.append(block)
            else:
                blocks.clear()  # not all of the range's: they are made again
            yield block
        if n_bytes <= free:
            KEPT_ROWS.put(self.keeping, start, stop, blocks)

    def naming(self, index: Index) -> AbstractContextManager[None]:
        """Do nothing: bags are refused, and named, where they are embedded."""
        return nullcontext()

    def _made(
        self, start: int, stop: int, rows_per_block: int, max_bytes: int
    ) -> Iterator[RowBlock]:
        reading = self.bags.batches(start, stop, rows_per_block=rows_per_block, max_bytes=max_bytes)
        for batch in reading:
            with self.bags.naming(batch.index):
                y, n_beyond = np.empty((0, self.outcome.n_targets)), 0
                embeddings, n_outside, apart = np.empty((0, 0)), 0, np.zeros(len(batch), bool)
                if len(batch):
                    y, n_beyond = self.outcome.encode(batch.labels)
                    embeddings, n_outside = self.features.embed(batch.bags, self.precision)
                    if self.validation is not None:
                        apart = self.validation.of(batch.index)
            weights = None if self.weights is None else self.weights.of(batch.index, y)
            order = np.argsort(apart, kind="stable")
            n_points = batch.bags.n_points if len(batch) else 0
            yield RowBlock(
                batch.stop,
                batch.index[order],
                int((~apart).sum()),
                y[order],
                embeddings[order],
                None,
                (batch.n_unlabelled, batch.n_left_out, n_points, n_outside, n_beyond),
                None if weights is None else weights[order],
            )


class KeptRows:
    """Blocks of the ranges of one fit, in the memory of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token = ""
        self._blocks: dict[tuple[int, int], list[RowBlock]] = {}
        self._n_bytes = 0

    def __len__(self) -> int:
        """Count the ranges."""
        return len(self._blocks)

    def get(self, token: str, start: int, stop: int) -> list[RowBlock] | None:
        """Return the blocks of a range, if they are kept."""
        with self._lock:
            return self._blocks.get((start, stop)) if token == self._token else None

    def free_bytes(self, keeping: Keeping) -> int:
        """Return the bytes that may still be kept; rows of another fit are dropped."""
        with self._lock:
            if keeping.token != self._token:
                self._blocks.clear()
                self._token, self._n_bytes = keeping.token, 0
            return keeping.max_bytes - self._n_bytes

    def put(self, keeping: Keeping, start: int, stop: int, blocks: list[RowBlock]) -> None:
        """Keep the blocks of a range."""
        with self._lock:
            if keeping.token == self._token and (start, stop) not in self._blocks:
                self._blocks[start, stop] = blocks
                self._n_bytes += sum(block.n_bytes for block in blocks)

    def discard(self, token: str) -> None:
        """Drop the rows of a fit."""
        with self._lock:
            if token == self._token:
                self._token, self._n_bytes = "", 0
                self._blocks.clear()


KEPT_ROWS = KeptRows()  # of this process: one fit's


def discard_kept(token: str) -> None:
    """Drop the rows of a fit in this process."""
    KEPT_ROWS.discard(token)


def discard_everywhere(token: str, here: bool) -> None:
    """Drop the rows of a fit here and, unless it runs only here, on the open cluster."""
    discard_kept(token)
    client = None if here else current_client()
    if client is not None:
        client.run(discard_kept, token, on_error="ignore")
