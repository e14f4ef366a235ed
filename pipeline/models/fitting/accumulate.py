"""`FitStatistics`, the sums from which a model is solved, and the classes that add bags."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.sums import Sums
from ...data.labelled.splits import Folds
from ..ridge.rows import RowsBuilder
from ..ridge.summary import Summary
from ..ridge.sums import RidgeStatistics, StatisticsBuilder
from .feature_map import FeatureMap


@dataclass(frozen=True)
class FoldStatistics(Sums):
    """The statistics of each fold of the bags to fit; some may have no bags."""

    parts: tuple[Summary, ...]

    @property
    def n_bytes(self) -> int:
        """Bytes of the large arrays."""
        return sum(part.n_bytes for part in self.parts)

    @property
    def filled(self) -> list[Summary]:
        """Statistics of the folds that have bags."""
        return [part for part in self.parts if part.weight > 0]

    def summed(self) -> FoldStatistics:
        """Return the sums of rows that were kept."""
        return FoldStatistics(tuple(part.statistics() for part in self.parts))


@dataclass(frozen=True)
class FitStatistics(Sums):
    """Result of a pass over the data: statistics of the fit, of held-out bags, and counts.

    ``folds`` has the parts of ``train``, if the penalty is chosen by folds of groups.
    """

    train: Summary
    validation: Summary | None
    n_unlabelled: int = 0
    n_held_out: int = 0
    n_points: int = 0
    n_outside: int = 0
    n_responses_outside: int = 0
    folds: FoldStatistics | None = field(default=None, kw_only=True)

    @property
    def parts(self) -> list[Summary]:
        """The statistics of the fit, and those of held-out bags, if there are any."""
        return [self.train] if self.validation is None else [self.train, self.validation]

    @property
    def largest_exponents(self) -> Integers:
        """Exponents of units that all `parts` can take, shape (k,)."""
        exponents: Integers = np.max([part.exponents for part in self.parts], axis=0)
        return exponents

    @property
    def mean_targets(self) -> Floats:
        """Mean targets of the bags fitted, including validation bags; shape (k,)."""
        exponents = self.largest_exponents
        total = np.sum([part.in_units(exponents).sum_y for part in self.parts], axis=0)
        mean: Floats = np.ldexp(total / self.weight, exponents)
        return mean

    @property
    def whole(self) -> Summary:
        """The statistics of the bags fitted, including validation bags."""
        return self.train if self.validation is None else self.train + self.validation

    @property
    def weight(self) -> float:
        """Total weight of the bags fitted; without weights, their number."""
        return self.train.weight + (self.validation.weight if self.validation else 0)

    @property
    def n_bytes(self) -> int:
        """Bytes of the large arrays."""
        return sum(part.n_bytes for part in self.parts) + (self.folds.n_bytes if self.folds else 0)

    @property
    def n_bags(self) -> int:
        """Number of all bags that were counted."""
        n_validation = self.validation.n if self.validation else 0
        return self.train.n + n_validation + self.n_unlabelled + self.n_held_out

    def summed(self) -> FitStatistics:
        """Return the sums of rows that were kept."""
        held = self.validation.statistics() if self.validation else None
        folds = self.folds.summed() if self.folds else None
        return replace(self, train=self.train.statistics(), validation=held, folds=folds)


class SplitSums:
    """The statistics of bags in two parts: bags to fit, and bags held out for validation."""

    def __init__(
        self,
        features: FeatureMap,
        n_targets: int,
        precision: str,
        has_held: bool,
        keeps_rows: bool = False,
    ) -> None:
        self._features = features
        # sums are completed at the end, rows are complete from the start
        self._write = features.features_of if keeps_rows else features.begin
        sizes = (features.n_features, n_targets, precision)
        self._train: StatisticsBuilder | RowsBuilder
        self._held: StatisticsBuilder | RowsBuilder | None = None
        if keeps_rows:
            self._train = RowsBuilder(*sizes)
            self._held = RowsBuilder(*sizes) if has_held else None
        else:
            self._train = sums = StatisticsBuilder(*sizes)
            # they take turns with the memory of products
            self._held = StatisticsBuilder(*sizes, sums.products) if has_held else None

    def add(
        self,
        index: Integers,
        embeddings: NDArray[Any],
        y: Floats,
        apart: NDArray[np.bool_] | None,
        weights: Floats | None,
    ) -> None:
        """Count bags by positions (n,), embeddings (n, s), targets (n, k) and weights (n,).

        Bags ``apart`` are for validation. ``weights`` are given for all batches or for no batch.
        """
        if self._held is None or apart is None:
            self._fill(self._train, embeddings, y, weights)
            return
        for part, rows in ((self._train, ~apart), (self._held, apart)):
            self._fill(part, embeddings[rows], y[rows], None if weights is None else weights[rows])

    def share_products(self, other: SplitSums) -> None:
        """Share the memory of products with other sums."""
        mine, theirs = self._train, other._train
        if isinstance(mine, StatisticsBuilder) and isinstance(theirs, StatisticsBuilder):
            mine.products = theirs.products

    def finish(self, *counts: int) -> FitStatistics:
        """Return the statistics of all bags, with the counts of `FitStatistics`."""
        held = None if self._held is None else self._finished(self._held)
        return FitStatistics(self._finished(self._train), held, *counts)

    def _finished(self, builder: StatisticsBuilder | RowsBuilder) -> Summary:
        if isinstance(builder, RowsBuilder):
            return builder.finish()
        return builder.finish().completed(self._features.completion)

    def _fill(
        self,
        builder: StatisticsBuilder | RowsBuilder,
        embeddings: NDArray[Any],
        y: Floats,
        weights: Floats | None,
    ) -> None:
        done = 0
        while done < len(embeddings):
            buffer = builder.buffer(len(embeddings) - done)
            stop = done + len(buffer)
            self._write(embeddings[done:stop], buffer)
            builder.commit(y[done:stop], None if weights is None else weights[done:stop])
            done = stop


class FoldSums:
    """The statistics of bags by folds; the model is fitted to their sum."""

    def __init__(
        self, features: FeatureMap, n_targets: int, precision: str, folds: Folds, keeps_rows: bool
    ) -> None:
        self._folds = folds
        self._sums = [
            SplitSums(features, n_targets, precision, has_held=False, keeps_rows=keeps_rows)
            for _ in range(folds.n_folds)
        ]
        for more in self._sums[1:]:
            more.share_products(self._sums[0])

    def add(
        self,
        index: Integers,
        embeddings: NDArray[Any],
        y: Floats,
        apart: NDArray[np.bool_] | None,
        weights: Floats | None,
    ) -> None:
        """Count bags by the folds of their positions (n,); see `SplitSums.add`."""
        folds = self._folds.of(index)
        for j, sums in enumerate(self._sums):
            rows = np.flatnonzero(folds == j)
            if len(rows):
                of_fold = None if weights is None else weights[rows]
                sums.add(index[rows], embeddings[rows], y[rows], None, of_fold)

    def finish(self, *counts: int) -> FitStatistics:
        """Return the statistics of all bags, with the counts of `FitStatistics`."""
        parts = tuple(sums.finish().train for sums in self._sums)
        whole = FitStatistics(reduce(operator.add, parts), None, *counts)
        return replace(whole, folds=FoldStatistics(parts))


_Sum = TypeVar("_Sum", bound=Summary | FitStatistics)


def without_each(parts: Sequence[_Sum]) -> Iterator[_Sum]:
    """Yield the sums without each part: by subtraction, unless rows were kept."""
    every: list[Any] = list(parts)  # of one kind
    first = every[0].train if isinstance(every[0], FitStatistics) else every[0]
    if isinstance(first, RidgeStatistics):
        whole = reduce(operator.add, every)
        yield from (whole - part for part in every)
        return
    for j in range(len(every)):
        yield reduce(operator.add, every[:j] + every[j + 1 :])
