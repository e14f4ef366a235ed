"""Minibatches of bags: in memory, or read in short runs from a store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..core.arrays import Floats, Integers
from ..core.errors import DataError
from ..core.units import in_units, units_of
from ..data.bags.bags import Bags, as_bags, concatenate
from ..data.bags.coordinates import Names, order_of
from ..data.labelled.holdout import Holdout, HoldoutLike
from ..data.labelled.inputs import BagsLike, LabelsLike
from ..data.labelled.labelled import LabelledBags
from ..data.labelled.labels import warn_of_alike, warn_of_few
from ..data.store.sampling import RunSample
from ..data.store.store import BagStore
from ..models.fitted_model import digest_of_fitted
from ..models.outcomes.base import Outcome
from ..models.outcomes.reals import Reals
from .training import TrainingBatch

_BAGS, _FITTED_ON = "these bags", "the model was fitted on"  # in messages
HELD_BYTES = 2**30  # points: smaller stores are read once
RUNS_PER_BATCH = 8  # reads of a batch: neighbours in a store are often alike
PREDICTED_AT_ONCE = 256  # bags
_SAMPLED_BAGS = 4096  # bags that show where points lie, and how far apart

OutcomeKind = TypeVar("OutcomeKind", bound=Outcome)


@dataclass(frozen=True, eq=False)
class Standard:
    """(x − mean) / scale of each coordinate."""

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, rows: Floats) -> Standard:
        """Return that in which rows have mean 0 and variance 1; constants get 0."""
        exponents = units_of(rows)
        rows = in_units(rows, exponents)
        mean, scale = np.ldexp([rows.mean(axis=0), rows.std(axis=0)], exponents)
        return cls(mean, np.where(scale > 0, scale, 1.0))

    @classmethod
    def none(cls, n_dims: int) -> Standard:
        """Return that which leaves rows as they are."""
        return cls(np.zeros(n_dims), np.ones(n_dims))

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
        Fraction of the bags that are held out.
    seed : int
    judged : bool, shape (n,), optional
        Which bags are held out, of whole groups; default a random fraction.
    """

    bags: LabelledBags
    index: Integers
    labels: np.ndarray | None
    batch_size: int
    validation: float
    seed: int
    judged: np.ndarray | None = None

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
        held = data if isinstance(data, Bags) else data.read(self.bags.start, self.bags.end)
        return self.bags.ordered(held)

    @cached_property
    def _runs(self) -> list[Integers]:
        """Rows that are read together: single ones in memory, neighbours in a store."""
        length = 1 if self.is_held else max(1, self.batch_size // RUNS_PER_BATCH)
        return np.array_split(np.arange(len(self.index)), max(1, -(-len(self.index) // length)))

    @cached_property
    def _split(self) -> tuple[list[Integers], Integers]:
        if self.judged is not None:
            fitted_runs = [run[~self.judged[run]] for run in self._runs]
            return [run for run in fitted_runs if len(run)], np.flatnonzero(self.judged)
        order = np.random.default_rng([self.seed, 0]).permutation(len(self._runs))
        n_held_out = round(self.validation * len(order)) if len(order) > 1 else 0
        n_held_out = max(n_held_out, 1) if self.validation > 0 and len(order) > 1 else 0
        held_out = [self._runs[i] for i in sorted(order[:n_held_out].tolist())]
        training = [self._runs[i] for i in order[n_held_out:].tolist()]
        return training, np.concatenate(held_out) if held_out else np.empty(0, np.int64)

    @cached_property
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
        return self.bags.ordered(concatenate(runs)), labels

    def sample(self) -> Bags:
        """Return some bags from all over the data."""
        bags = list(self.bags.sample(RunSample.of_about(_SAMPLED_BAGS)))
        return concatenate(bags)

    @cached_property
    def longest(self) -> int:
        """Points of the largest bag."""
        return int(self.bags.sizes([(self.bags.start, self.bags.end)]).max())

    def fingerprint(self, parameters: str, answers: Bags | None = None) -> str:
        """Return what tells this training from others: parameters, places, labels and all points.

        Points of a large store are not read: the store's checksums stand for them. ``answers`` are
        responses that are trained on.
        """
        digest = hashlib.sha256(parameters.encode())
        parts: list[np.ndarray | None] = [self.index, self.labels, self.judged]
        if self.is_held:
            parts += [self._held.offsets, self._held.points]
        else:
            store = self.bags.data
            assert isinstance(store, BagStore)
            digest.update(json.dumps(store.meta.checksums or store.written).encode())
            parts.append(self.take(self.training[:4])[0].points)
        if answers is not None:
            parts += [answers.offsets, answers.points]
        for part in parts:
            if part is not None:
                digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


class Minibatches:
    """`Batches` that ``make`` makes of rows of examples, of ``size`` those held out."""

    def __init__(
        self, examples: Examples, size: int, make: Callable[[Integers], TrainingBatch]
    ) -> None:
        self.examples, self.size, self.make = examples, size, make

    def batch(self, step: int) -> TrainingBatch:
        """Return the minibatch of a step; a pure function of its number."""
        return self.make(self.examples.rows_of(step))

    def validation(self) -> list[TrainingBatch]:
        """Return the batches that the network is judged by; empty: by nothing."""
        rows = self.examples.held_out
        return [self.make(rows[i : i + self.size]) for i in range(0, len(rows), self.size)]


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


def thinned(bags: Bags, most: int) -> Bags:
    """Return bags of at most so many points, evenly spread over those that have more."""
    if int(bags.sizes.max(initial=0)) <= most:
        return bags
    return Bags.from_list([
        bag if len(bag) <= most else bag[np.linspace(0, len(bag) - 1, most).astype(np.int64)]
        for bag in bags
    ])  # fmt: skip


def blocks_of(X: BagsLike, n_dims: int, names: Names) -> Iterator[Bags]:
    """Yield bags in blocks to predict, with their coordinates in the order of ``names``.

    Blocks of a store are read one after the other, so that it may be larger than the memory. Bags
    that were removed from it have no points.

    Raises
    ------
    DataError
        Bags of another dimension, or of other names of coordinates, or none.
    """
    bags = X if isinstance(X, BagStore) else as_bags(X)
    n_bags = bags.n_bags if isinstance(bags, BagStore) else len(bags)
    if not n_bags:
        raise DataError("no bags")
    check_points(bags, n_dims, names)
    for start in range(0, n_bags, PREDICTED_AT_ONCE):
        stop = min(n_bags, start + PREDICTED_AT_ONCE)
        block = bags.read(start, stop) if isinstance(bags, BagStore) else bags[start:stop]
        yield block.in_order_of(names, what=_BAGS, reference=_FITTED_ON)


def check_points(bags: Bags | BagStore, n_dims: int, names: Names) -> None:
    """Raise DataError for bags of another dimension, or of other names of coordinates."""
    if bags.n_dims != n_dims:
        raise DataError(f"bags have dimension {bags.n_dims}, the model {n_dims}")
    order_of(bags.coordinate_names, names, _BAGS, _FITTED_ON)


class LabelledExamples(NamedTuple):
    """What a fit learns from, and what it is to remember of that.

    Attributes
    ----------
    examples : Examples
        Their labels as the outcome encodes them.
    holdout : float or dict
        As `Holdout.saved`.
    report : dict
        Counts, as every fit reports them.
    """

    examples: Examples
    holdout: float | dict[str, Any]
    report: dict[str, Any]


def unlabelled_examples(X: BagsLike, batch_size: int, validation: float, seed: int) -> Examples:
    """Return all bags as examples without labels."""
    data = LabelledBags(X if isinstance(X, BagStore) else as_bags(X))
    index = data.start + np.flatnonzero(data.present())
    return Examples(data, index, None, batch_size, validation, seed)


def labelled_examples(
    kind: type[OutcomeKind],
    X: BagsLike,
    y: LabelsLike,
    target: str | list[str] | None,
    holdout: HoldoutLike,
    batch_size: int,
    validation: float,
    seed: int,
) -> tuple[LabelledExamples, OutcomeKind]:
    """Return the labelled bags that are not held out, and the outcome that their labels decide.

    Raises
    ------
    DataError
        No labels, or none that can be learnt.
    ParameterError
        A holdout that the data do not have.
    """
    bags, outcome = kind.from_labels(X, y, target, None, None)
    held_out = Holdout.of(holdout).resolve(bags)
    bags = replace(bags, left_out=held_out.split(bags))
    blocks = [(start + rows, labels) for (start, _), rows, labels in bags.label_blocks()]
    places, labels = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    if not len(places):
        raise DataError(f"{bags.url or 'bags in memory'}: no bag has a label")
    judged = None
    if held_out.groups is not None and validation > 0:
        judged = held_out.validation(validation, bags).members(bags.start, bags.end)
        judged = judged[places - bags.start]
    values = outcome.encode(labels)[0]
    if not warn_of_few(len(places), bags.url) and isinstance(outcome, Reals):
        scaled = in_units(values, units_of(values))
        warn_of_alike(len(places), scaled.var(axis=0), scaled.mean(axis=0), bags.target_names)
    examples = Examples(bags, places, values, batch_size, validation, seed, judged)
    report = {**_report(bags, places), **digest_of_fitted(bags)}
    return LabelledExamples(examples, held_out.saved, report), outcome


def _report(bags: LabelledBags, places: Integers) -> dict[str, Any]:
    """Return the counts of a fit."""
    held_out = 0
    if bags.left_out is not None:
        held_out = int((bags.left_out.members(bags.start, bags.end) & bags.present()).sum())
    snapshot: dict[str, Any] = {} if bags.snapshot is None else {"data_snapshot": bags.snapshot}
    if bags.coordinate_names is not None:
        snapshot["coordinates"] = bags.coordinate_names
    sizes = bags.sizes([(bags.start, bags.end)])
    return {
        "data_url": bags.url,
        "n_bags": bags.n_bags,
        "n_points": bags.n_points,
        "n_bags_fitted": len(places),
        "n_bags_unlabelled": bags.n_bags - held_out - len(places),
        "n_bags_held_out": held_out,
        "n_points_seen": int(sizes[places - bags.start].sum()),
        "n_points_outside_box": 0,  # a network has no box
        **snapshot,
    }
