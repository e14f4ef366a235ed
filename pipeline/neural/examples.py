"""Minibatches of bags: in memory, or read in short runs from a store."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from ..arrays import Floats, Integers
from ..bags import Bags, concatenate
from ..errors import DataError
from ..labelled import LabelledBags
from ..store import BagStore, RunSample

HELD_BYTES = 2**30  # of points: smaller stores are read once
RUNS_PER_BATCH = 8  # reads of a batch: neighbours in a store are often alike
SAMPLED = 4096  # bags that say where points lie, and how far apart


@dataclass(frozen=True, eq=False)
class Standard:
    """(x − mean) / scale of each coordinate."""

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, rows: Floats) -> Standard:
        """Return that in which rows have mean 0 and variance 1; constants get 0."""
        scale = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(scale > 0, scale, 1.0))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return standardised rows, float32."""
        return ((rows - self.mean) / self.scale).astype(np.float32)

    def back(self, rows: np.ndarray) -> Floats:
        """Return rows in the units of the data."""
        return np.asarray(rows, np.float64) * self.scale + self.mean


@dataclass(frozen=True, eq=False)
class Examples:
    """Bags by position, which of them are trained on, and in what order.

    Attributes
    ----------
    bags : LabelledBags
    index : int64, shape (n,)
        Positions of the bags that are used: labelled and not removed.
    labels : array (n, …) or None
        In the same order.
    batch_size : int
    validation : float
        Share of the bags that are held out.
    seed : int
    """

    bags: LabelledBags
    index: Integers
    labels: np.ndarray | None
    batch_size: int
    validation: float
    seed: int

    def __post_init__(self) -> None:
        """Refuse too few bags.

        Raises
        ------
        DataError
            Nothing is left to train on.
        """
        if len(self.training) == 0:
            raise DataError(f"{len(self.index)} bags are too few to train on and to hold some out")

    @property
    def is_held(self) -> bool:
        """Whether the points are in memory."""
        return self.bags.in_memory or 4 * self.bags.n_points * self.bags.n_dims <= HELD_BYTES

    @cached_property
    def _held(self) -> Bags:
        data = self.bags.data
        return data if isinstance(data, Bags) else data.read(self.bags.start, self.bags.end)

    @cached_property
    def _runs(self) -> list[Integers]:
        """Rows that are read together: single ones in memory, neighbours in a store."""
        length = 1 if self.is_held else max(1, self.batch_size // RUNS_PER_BATCH)
        return np.array_split(np.arange(len(self.index)), max(1, -(-len(self.index) // length)))

    @cached_property
    def _split(self) -> tuple[list[Integers], Integers]:
        order = np.random.default_rng([self.seed, 0]).permutation(len(self._runs))
        n_held_out = round(self.validation * len(order)) if len(order) > 1 else 0
        n_held_out = max(n_held_out, 1) if self.validation > 0 and len(order) > 1 else 0
        held_out = [self._runs[i] for i in sorted(order[:n_held_out].tolist())]
        training = [self._runs[i] for i in order[n_held_out:].tolist()]
        return training, np.concatenate(held_out) if held_out else np.empty(0, np.int64)

    @property
    def training(self) -> Integers:
        """Rows of `index` that are trained on."""
        runs = self._split[0]
        return np.concatenate(runs) if runs else np.empty(0, np.int64)

    @property
    def held_out(self) -> Integers:
        """Rows of `index` that are held out."""
        return self._split[1]

    def rows_of(self, step: int) -> Integers:
        """Return the rows of a step's minibatch; each epoch has an order of its own."""
        n = len(self.training)
        size = min(self.batch_size, n)
        per_epoch = n // size
        epoch, place = divmod(step, per_epoch)
        return _epoch_order(self, epoch)[place * size : (place + 1) * size]

    def take(self, rows: Integers) -> tuple[Bags, np.ndarray | None]:
        """Return the bags of rows in ascending order of their place, and their labels."""
        rows = np.sort(rows)
        places = self.index[rows]
        labels = None if self.labels is None else self.labels[rows]
        if self.is_held:
            return self._held[places - (0 if self.bags.in_memory else self.bags.start)], labels
        store = self.bags.data
        assert isinstance(store, BagStore)
        cuts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
        runs = [store.read(int(places[a]), int(places[b - 1]) + 1) for a, b in pairwise(cuts)]
        return concatenate(runs), labels

    def sample(self) -> Bags:
        """Return some bags from all over the data."""
        found = list(self.bags.sample(RunSample.of_about(SAMPLED)))
        return concatenate(found)

    @property
    def longest(self) -> int:
        """Points of the largest bag."""
        return int(self.bags.sizes([(self.bags.start, self.bags.end)]).max())

    def fingerprint(self, parameters: str) -> str:
        """Return what tells this training from others: parameters, places, some labels and bags."""
        found = hashlib.sha256(parameters.encode())
        first, labels = self.take(self.training[:4])
        for part in (self.index, first.points, labels):
            if part is not None:
                found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()


@lru_cache(maxsize=2)
def _epoch_order(examples: Examples, epoch: int) -> Integers:
    runs = examples._split[0]  # noqa: SLF001 - of the class above
    order = np.random.default_rng([examples.seed, 1, epoch]).permutation(len(runs))
    return np.concatenate([runs[i] for i in order.tolist()])


def padded(bags: Bags, standard: Standard, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, length, d), float32, and a mask (n, length) of those that are there.

    Bags that are longer keep their last points.
    """
    n = len(bags)
    points = np.zeros((n, length, bags.n_dims), np.float32)
    mask = np.zeros((n, length), np.float32)
    values = standard(bags.points)
    for i, (start, stop) in enumerate(pairwise(bags.offsets.tolist())):
        rows = values[max(start, stop - length) : stop]
        points[i, : len(rows)] = rows
        mask[i, : len(rows)] = 1
    return points, mask
