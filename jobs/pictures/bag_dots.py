"""The bags that a page shows one by one: predicted against true, residuals, and the worst ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import BagStore, Box
from bagbasis.models.base import DoubleBasis
from bagbasis.models.errors import Errors
from bagbasis.models.evaluation.importance import names_of_coordinates

from .charts import Chart, Series, thin
from .parts import Table

if TYPE_CHECKING:
    from .model_part import FittedModel

MOST_DOTS = 1000  # dots of a chart: more hide each other, and each takes 100 bytes of the page
N_WORST = 10  # bags, or confusions, that are listed
N_DRAWN = 2  # of the worst bags, point by point
READ_POINTS = 5_000_000  # of a store that is read for the share of points outside: a second
BLOCK = 2**16  # bags whose ids and sizes are read at a time: a chunk of them


class Dots:
    """The bags that charts show one by one: thinned, with their ids and sizes.

    Parameters
    ----------
    store : BagStore
    model : fitted estimator
    errors : Errors
        Errors of predicted numbers.
    """

    def __init__(self, store: BagStore, model: FittedModel, errors: Errors) -> None:
        self._store, self._errors = store, errors
        self._spec = model.features_.embedding if isinstance(model, DoubleBasis) else None
        self._names = list(errors.values())
        self._kept = thin(len(errors.sample.index), MOST_DOTS)

    def charts(self) -> list[Chart]:
        """Return, for each target, predicted against true, and residuals against true and n."""
        sample, kept = self._errors.sample, self._kept
        sizes, labels = self._describe(sample.index[kept])
        drawn = f"{len(kept):,} of {self._errors.n:,} bags, drawn at random."
        note = drawn if len(kept) < self._errors.n else ""
        found = []
        for j, name in enumerate(self._names[: sample.true.shape[1]]):
            true, predicted = sample.true[kept, j], sample.predicted[kept, j]
            titles = [
                f"{label}, true {a:.4g}, predicted {b:.4g}"
                for label, a, b in zip(labels, true.tolist(), predicted.tolist(), strict=True)
            ]
            found += _error_charts(name, true, predicted, sizes, titles, note)
        return found

    def worst(self) -> list[Table]:
        """Return the bags with the largest errors, of each target."""
        sample, found = self._errors.sample, []
        drawn = "" if len(sample.index) == self._errors.n else f"Of {len(sample.index):,} bags."
        for j in range(sample.true.shape[1]):
            gaps = sample.predicted[:, j] - sample.true[:, j]
            rows = self._worst_of(j)[:N_WORST]
            sizes, _ = self._describe(sample.index[rows])
            ids = _rows_of(self._store.ids, sample.index[rows]).tolist()
            columns = (sizes, sample.true[rows, j], sample.predicted[rows, j], gaps[rows])
            cells = zip(map(str, ids), *(column.tolist() for column in columns), strict=True)
            names = ["bag", "points", "true", "predicted", "error"]
            found.append(Table(f"{self._names[j]}: the worst bags", names, [*cells], drawn))
        return found

    def worst_bags(self) -> list[Chart]:
        """Return the points of the bags with the largest errors, of each target, within the box."""
        sample, found = self._errors.sample, []
        for j in range(sample.true.shape[1]):
            for row in self._worst_of(j)[:N_DRAWN].tolist():
                bag = int(sample.index[row])
                [points], [name] = self._store.read(bag, bag + 1), self._store.ids(bag, bag + 1)
                what = f"true {sample.true[row, j]:.4g}, predicted {sample.predicted[row, j]:.4g}"
                title = f"{self._names[j]}: a worst bag, {name}"
                axes = names_of_coordinates(self._store)
                box = self._store.box if self._spec is None else self._spec.box
                found.append(_bag_chart(title, points, box, f"{what}.", axes))
        return found

    def _worst_of(self, j: int) -> NDArray[np.int64]:
        """Return the rows of the sample, those with the largest errors of target j first."""
        sample = self._errors.sample
        gaps = sample.predicted[:, j] - sample.true[:, j]
        return np.argsort(-np.abs(gaps), kind="stable")

    def _describe(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
        """Return the sizes of bags, and what their dots say first."""
        sizes = _rows_of(lambda a, b: np.diff(self._store.offsets(a, b)), index)
        ids = _rows_of(self._store.ids, index)
        labels = [f"bag {i}, n {n:,}" for i, n in zip(ids.tolist(), sizes.tolist(), strict=True)]
        if self._spec is None or self._store.n_points > READ_POINTS:
            return sizes, labels
        shares = 100 * _rows_of(self._outside, index) / sizes
        return sizes, [f"{a}, {b:.2g} % outside" for a, b in zip(labels, shares, strict=True)]

    def _outside(self, start: int, stop: int) -> NDArray[np.int64]:
        """Count the points of each bag that lie outside the box."""
        assert self._spec is not None
        return self._spec.count_outside(self._store.read(start, stop))


def _error_charts(
    name: str,
    true: NDArray[np.float64],
    predicted: NDArray[np.float64],
    sizes: NDArray[np.int64],
    titles: list[str],
    note: str,
) -> list[Chart]:
    """Return the charts of one target: predicted against true, and errors against truth and n."""

    def dots(x: NDArray[Any], y: NDArray[Any]) -> list[Series]:
        return [Series("", x.tolist(), y.tolist(), titles, radius=2.5)]

    gaps, of = predicted - true, f"{name}: predicted − true"
    title, against = f"{name}: predicted against true", f"{name}: error against"
    axes = f"true {name}", f"predicted {name}"
    by_size = f"{against} the number of points", "points in the bag", of, dots(sizes, gaps)
    how = f"Dashed: predicted = true. {note}"
    return [
        Chart(title, *axes, dots(true, predicted), how, guide="diagonal"),
        Chart(f"{against} truth", axes[0], of, dots(true, gaps), note, guide="zero"),
        Chart(*by_size, note, log_x=True, guide="zero"),
    ]


def _bag_chart(
    title: str, points: NDArray[Any], box: Box, note: str, names: list[str] | None
) -> Chart:
    """Return a bag's points by two coordinates; of one coordinate the share of points below."""
    first, *others = names or [f"coordinate {j}" for j in range(points.shape[1])]
    kept = points[thin(len(points), MOST_DOTS // 2)]
    (left, right), (low, high) = [*box.bounds, [0.0, 1.0]][:2]
    if box.n_dims > 1:
        x, y, label = kept[:, 0], kept[:, 1], others[0]
    else:
        x, y = np.sort(kept[:, 0]), (np.arange(len(kept)) + 0.5) / len(kept)
        label = "share of the points below"
    walls = Series("", [left, right], [low, high], radius=0)  # so that all panels have one scale
    dots = Series("", x.tolist(), y.tolist(), radius=2)
    return Chart(title, first, label, [walls, dots], note)


def _rows_of(read: Callable[[int, int], NDArray[Any]], index: NDArray[np.int64]) -> NDArray[Any]:
    """Return some rows, in the order of ``index``, of what ``read(start, stop)`` gives."""
    found: dict[int, Any] = {}
    for block in np.unique(index // BLOCK).tolist():
        rows = index[index // BLOCK == block]
        start, stop = int(rows.min()), int(rows.max()) + 1
        values = read(start, stop)
        found |= {int(row): values[row - start] for row in rows.tolist()}
    return np.array([found[row] for row in index.tolist()])
