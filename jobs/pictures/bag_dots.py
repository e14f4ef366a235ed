"""The bags that a page shows one by one: predicted against true, residuals, and the worst ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import BagbasisWarning, BagStore, Box
from bagbasis.core.digits import rounded
from bagbasis.models.base import DoubleBasis
from bagbasis.models.errors import Errors
from bagbasis.models.explain import Explanation, coordinate_in_words, explain
from bagbasis.models.fitted_model import in_fitted_order

from .charts import Chart, Series, thin
from .parts import Table

if TYPE_CHECKING:
    from .bags_in_view import BagsInView
    from .model_part import JobModel

MAX_CHART_DOTS = 1000  # dots in a chart: more hide each other, and each takes 100 bytes of the page
N_WORST = 10  # bags, or confusions, that are listed
N_DRAWN = 2  # worst bags that are drawn point by point
N_EXPLAINED = 3  # coordinates, and points, that change the prediction of a worst bag most
POINTS_LEFT_OUT = 60  # of a worst bag, one at a time
MAX_EXPLAINED_VALUES = 1_000_000  # values of a bag, each of whose copies is predicted
_MAX_POINTS_READ = 5_000_000  # points read from a store to count those outside: a second
_MOVED = (
    "Change of the prediction: with all points moved along the coordinate by one standard "
    "deviation of the bag, and with the bag's spread along it doubled. Both are slopes at the bag."
)
BLOCK_BAGS = 2**16  # bags whose ids and sizes are read at a time: one chunk of them


class Dots:
    """The bags that charts show one by one: thinned, with their ids and sizes.

    Parameters
    ----------
    store : BagStore
    model : fitted estimator
    errors : Errors
        Errors of predicted numbers.
    """

    def __init__(self, store: BagStore | BagsInView, model: JobModel, errors: Errors) -> None:
        self._store, self._errors = store, errors
        self._spec = model.features_.embedding if isinstance(model, DoubleBasis) else None
        self._model = model
        self._names = list(errors.values())
        self._kept = thin(len(errors.sample.index), MAX_CHART_DOTS)
        gaps = errors.sample.predicted - errors.sample.true
        self._rmse = np.sqrt(np.mean(gaps**2, axis=0)).tolist() if len(gaps) else []

    def charts(self) -> list[Chart]:
        """Return, for each target, predicted against true, and residuals against true and n."""
        sample, shown = self._errors.sample, self._kept
        sizes, labels = self._describe(sample.index[shown])
        drawn = f"{len(shown):,} of {self._errors.n:,} bags, drawn at random."
        note = drawn if len(shown) < self._errors.n else ""
        charts = []
        for j, name in enumerate(self._names[: sample.true.shape[1]]):
            true, predicted = sample.true[shown, j], sample.predicted[shown, j]
            titles = [
                f"{label}, true {a:.4g}, predicted {self._rounded(b, j)}"
                for label, a, b in zip(labels, true.tolist(), predicted.tolist(), strict=True)
            ]
            charts += _error_charts(name, true, predicted, sizes, titles, note)
        return charts

    def worst(self) -> list[Table]:
        """Return the bags with the largest errors, of each target."""
        sample, tables = self._errors.sample, []
        drawn = "" if len(sample.index) == self._errors.n else f"Of {len(sample.index):,} bags."
        for j in range(sample.true.shape[1]):
            gaps = sample.predicted[:, j] - sample.true[:, j]
            rows = self._worst_of(j)[:N_WORST]
            sizes, _ = self._describe(sample.index[rows])
            ids = _rows_of(self._store.ids, sample.index[rows]).tolist()
            true = [f"{value:.4g}" for value in sample.true[rows, j].tolist()]
            predicted, errors = (
                [self._rounded(value, j) for value in column[rows].tolist()]
                for column in (sample.predicted[:, j], gaps)
            )
            cells = zip(map(str, ids), sizes.tolist(), true, predicted, errors, strict=True)
            names = ["bag", "points", "true", "predicted", "error"]
            tables.append(Table(f"{self._names[j]}: the worst bags", names, [*cells], drawn))
        return tables

    def worst_bags(self) -> list[Chart]:
        """Return the points of the bags with the largest errors, of each target, within the box."""
        sample, charts = self._errors.sample, []
        for j in range(sample.true.shape[1]):
            for row in self._worst_of(j)[:N_DRAWN].tolist():
                bag = int(sample.index[row])
                [points], [name] = self._store.read(bag, bag + 1), self._store.ids(bag, bag + 1)
                predicted = self._rounded(float(sample.predicted[row, j]), j)
                what = f"true {sample.true[row, j]:.4g}, predicted {predicted}"
                title = f"{self._names[j]}: bag {name}, one of the worst"
                axes = self._store.coordinate_names
                box = self._store.box if self._spec is None else self._spec.box
                effects = self._largest_effects(bag, j)
                charts.append(bag_chart(title, points, box, f"{what}.", axes, effects))
        return charts

    def explained(self) -> list[Table]:
        """Return which coordinates move the predictions of the worst bags, of each target."""
        tables = []
        for j, target in enumerate(self._names[: self._errors.sample.true.shape[1]]):
            rows = []
            for row in self._worst_of(j)[:N_DRAWN].tolist():
                bag = int(self._errors.sample.index[row])
                explanation = self._explanations.get(bag)
                if explanation is None:
                    continue
                effects = np.c_[explanation.shift[:, j], explanation.spread[:, j]]
                for k in np.argsort(-np.abs(effects).max(axis=1), kind="stable")[:N_EXPLAINED]:
                    name = coordinate_in_words(explanation.coordinate_names[k])
                    cells = [_signed(effect) for effect in effects[k].tolist()]
                    rows.append([str(self._store.ids(bag, bag + 1)[0]), name, *cells])
            columns = ["bag", "coordinate", "points moved", "spread doubled"]
            title = f"{target}: what moves the predictions of the worst bags"
            tables += [Table(title, columns, rows, _MOVED)] if rows else []
        return tables

    @cached_property
    def _explanations(self) -> dict[int, Explanation]:
        """What moves the predictions of the worst bags of each target, by their positions."""
        explanations: dict[int, Explanation] = {}
        if not isinstance(self._model, DoubleBasis):
            return explanations
        for j in range(self._errors.sample.true.shape[1]):
            for bag in self._errors.sample.index[self._worst_of(j)[:N_DRAWN]].tolist():
                if bag in explanations:
                    continue
                [points] = in_fitted_order(self._store.read(bag, bag + 1), self._model.report_)
                if len(points) > 1 and points.size <= MAX_EXPLAINED_VALUES:
                    with warnings.catch_warnings():  # the bag has been warned of when judged
                        warnings.simplefilter("ignore", BagbasisWarning)
                        explanations[bag] = explain(self._model, points, max_points=POINTS_LEFT_OUT)
        return explanations

    def _largest_effects(self, bag: int, j: int) -> dict[int, str]:
        """Return the points of a bag that move its prediction most, and what is said of each."""
        explanation = self._explanations.get(bag)
        if explanation is None:
            return {}
        effect = explanation.effect[:, j]
        return {
            int(explanation.rows[i]): f"without this point: {_signed(-effect[i])}"
            for i in np.argsort(-np.abs(effect), kind="stable")[:N_EXPLAINED]
        }

    def _rounded(self, predicted: float, j: int) -> str:
        """Return a prediction, or its error, in the digits that the RMSE of target j allows."""
        return rounded(predicted, self._rmse[j])

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
        if self._spec is None or self._store.n_points > _MAX_POINTS_READ:
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


def bag_chart(
    title: str,
    points: NDArray[Any],
    box: Box,
    note: str,
    names: list[str] | None,
    effects: Mapping[int, str] | None = None,
) -> Chart:
    """Return a bag's points by two coordinates; of one coordinate the fraction of points below.

    ``effects`` says what the points at some positions do; they are drawn in another colour.
    """
    first, *others = names or [f"coordinate {j}" for j in range(points.shape[1])]
    dots = points[thin(len(points), MAX_CHART_DOTS // 2)]
    (left, right), (low, high) = [*box.bounds, [0.0, 1.0]][:2]
    if box.n_dims > 1:
        x, y, label = dots[:, 0], dots[:, 1], others[0]
    else:
        x, y = np.sort(dots[:, 0]), (np.arange(len(dots)) + 0.5) / len(dots)
        label = "fraction of the points below"
    corners = Series("", [left, right], [low, high], radius=0)  # so that all panels have one scale
    shown = [corners, Series("", x.tolist(), y.tolist(), radius=2)]
    if effects:
        moving = points[[*effects]]
        below = (np.searchsorted(np.sort(points[:, 0]), moving[:, 0]) + 0.5) / len(points)
        heights = moving[:, 1] if box.n_dims > 1 else below
        columns = moving[:, 0].tolist(), heights.tolist()
        shown.append(Series("", *columns, [*effects.values()], color="orange", radius=3.5))
        note += f" Orange: the {len(effects)} points whose removal changes the prediction most."
    return Chart(title, first, label, shown, note)


def _signed(effect: float) -> str:
    """Return a change of a prediction with two digits: more would not be more exact."""
    return f"{effect:+#.2g}".rstrip(".")


def _rows_of(read: Callable[[int, int], NDArray[Any]], index: NDArray[np.int64]) -> NDArray[Any]:
    """Return some rows, in the order of ``index``, of what ``read(start, stop)`` gives."""
    by_row: dict[int, Any] = {}
    for block in np.unique(index // BLOCK_BAGS).tolist():
        rows = index[index // BLOCK_BAGS == block]
        start, stop = int(rows.min()), int(rows.max()) + 1
        values = read(start, stop)
        by_row |= {int(row): values[row - start] for row in rows.tolist()}
    return np.array([by_row[row] for row in index.tolist()])
