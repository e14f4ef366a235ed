"""Errors of several models on the same bags, in one pass."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, BagStore
from ..bags.plan import Range
from ..bags.reading import iter_bags, iter_pairs
from ..errors import ModelError
from ..execution import Progress, Report, map_reduce
from ..regression.feature_map import naming
from ..regression.outcomes import Densities

ROWS_A_TASK = 4096


@dataclass(frozen=True)
class _Losses:
    """Sums over bags; ``losses`` has a row a model and a column a target."""

    n: int
    losses: NDArray[np.float64]
    sum_y: NDArray[np.float64]
    sum_yy: NDArray[np.float64]

    def __add__(self, other: _Losses) -> _Losses:
        return _Losses(
            self.n + other.n,
            self.losses + other.losses,
            self.sum_y + other.sum_y,
            self.sum_yy + other.sum_yy,
        )


@dataclass(frozen=True)
class _JudgeTask:
    """The losses of all models on the bags ``rows`` that lie in a range."""

    models: tuple[Any, ...]
    store: BagStore
    rows: NDArray[np.int64]

    def __call__(self, bag_range: Range, report: Report) -> _Losses:
        parts = []
        for (a, b), bags, labels in self._batches(*bag_range):
            rows = self.rows[np.searchsorted(self.rows, a) : np.searchsorted(self.rows, b)]
            if len(rows):
                chosen = bags[rows - a]
                with naming(self.store.url, rows):
                    parts.append(self._losses(chosen, labels, rows - a))
            report(b - bag_range[0])
        return sum(parts[1:], parts[0])

    def _batches(self, start: int, stop: int) -> Iterator[tuple[Range, Bags, Any]]:
        model = self.models[0]
        if model.outcome_.key == Densities.key:
            yield from iter_pairs(self.store, start, stop)
            return
        for (a, b), bags in iter_bags(self.store, start, stop):
            yield (a, b), bags, self.store.targets(a, b, model.outcome_.names)

    def _losses(self, bags: Bags, labels: Any, rows: NDArray[np.int64]) -> _Losses:
        outcome = self.models[0].outcome_
        truth, _ = outcome.rows(labels, rows)
        losses = [_sums(outcome.losses(one.decision_rows(bags), truth)) for one in self.models]
        return _Losses(len(rows), np.stack(losses), _sums(truth), _sums(truth**2))


def errors(
    models: tuple[Any, ...],
    store: BagStore,
    rows: NDArray[np.int64],
    progress: Progress | None = None,
) -> list[float]:
    """The error of each model on the labelled bags ``rows``; see `Outcome.measure`.

    Parameters
    ----------
    models : fitted estimators
        That can be compared, see `check_comparable`.
    rows : int64, shape (n,)
        Ascending, at least one.
    """
    ranges = [
        (int(block[0]), int(block[-1]) + 1)
        for block in np.array_split(rows, -(-len(rows) // ROWS_A_TASK))
    ]
    sizes = [stop - start for start, stop in ranges]
    task = _JudgeTask(models, store, rows)
    total = map_reduce(task, ranges, operator.add, sizes=sizes, progress=progress)
    variance = total.sum_yy / total.n - (total.sum_y / total.n) ** 2
    return [models[0].outcome_.error(losses / total.n, variance) for losses in total.losses]


def check_comparable(champion: Any, challenger: Any, name: str, registry_url: str) -> None:
    """Raise ModelError for a champion that predicts something else than the challenger."""
    for what, read in {
        "kind": lambda model: type(model).__name__,
        "dimension": lambda model: model.features_.n_dims,
        "targets": lambda model: tuple(model.target_names_),
        "response basis": lambda model: model.outcome_.describe().get(Densities.key),
    }.items():
        if read(champion) != read(challenger):
            raise ModelError(
                f"{registry_url}: the champion {name} has another {what} than the model that is "
                "retrained; promote a model of that kind, or give another registry_url"
            )


def _sums(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.sum(axis=0, dtype=np.float64)
