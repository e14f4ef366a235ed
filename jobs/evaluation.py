"""One pass over labelled bags: errors of every target, and the pictures of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import BagStore
from bagbasis.bags import Box
from bagbasis.embeddings import SeriesShape
from bagbasis.errors import ConfigError, DataError

from .metrics import ClassErrors, RegressionErrors, Sample

PICTURED_SAMPLE = 20_000  # bags remembered to choose the pictured ones from


class Evaluation:
    """Errors of a model on bags, added up block by block.

    Attributes
    ----------
    n_bags : int
        Evaluated: those with all targets known.
    n_unlabelled : int
        Left out because a target is NaN.
    """

    def __init__(self, model: Any, store: BagStore) -> None:
        self.names = list(model.target_names_)
        self.classes = hasattr(model, "classes_")
        self.n_bags = 0
        self.n_unlabelled = 0
        self._bags = Sample(PICTURED_SAMPLE, 3)
        if self.classes:
            self._errors: list[Any] = [class_errors(model, store, self.names[0])]
        else:
            self._errors = [RegressionErrors() for _ in self.names]

    def add(self, rows: NDArray[Any], true: NDArray[Any], predicted: NDArray[Any]) -> None:
        """Count bags ``rows``; true and predicted have shape (n, n_targets)."""
        labelled = ~np.isnan(true).any(axis=1)
        self.n_unlabelled += int((~labelled).sum())
        true, predicted = true[labelled], predicted[labelled]
        self.n_bags += len(true)
        for j, errors in enumerate(self._errors):
            errors.add(true[:, j], predicted[:, j])
        self._bags.add(np.column_stack([rows[labelled], true[:, 0], predicted[:, 0]]))

    def errors(self) -> dict[str, dict[str, Any]]:
        """Name of each target to its errors."""
        return {n: e.result() for n, e in zip(self.names, self._errors, strict=True)}

    def pairs(self) -> list[NDArray[Any]]:
        """A sample of (true, predicted), one array a target."""
        return [errors.pairs() for errors in self._errors]

    @property
    def confusion(self) -> ClassErrors:
        errors: ClassErrors = self._errors[0]
        return errors

    def pictured(self, n: int) -> NDArray[Any]:
        """``n`` bags with spread true values: rows (bag, true, predicted), shape (≤ n, 3)."""
        rows = self._bags.rows()
        rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        if self.classes:
            first = np.unique(rows[:, 1], return_index=True)[1]
            rows = rows[first] if len(first) >= n else rows
        spread = np.linspace(0, len(rows) - 1, min(n, len(rows))).round().astype(int)
        return rows[spread]


def evaluate(model: Any, store: BagStore, subset: str, progress: Any = None) -> Evaluation:
    """Predict the labelled bags of a store and compare.

    Raises
    ------
    DataError
        The store lacks a target of the model, or no bag of the subset is labelled.
    """
    from bagbasis.regression import iter_predictions

    evaluation = Evaluation(model, store)
    store.target_columns(evaluation.names)
    for block in iter_predictions(model, store, subset=subset, progress=progress):
        start, stop = int(block.rows[0]), int(block.rows[-1]) + 1
        true = store.targets(start, stop, evaluation.names)[block.rows - start]
        evaluation.add(block.rows, true, block.prediction.reshape(len(block.rows), -1))
    if evaluation.n_bags == 0:
        raise DataError(f"{store.url}: no labelled bag among the {subset} bags; nothing to measure")
    return evaluation


def class_errors(model: Any, store: BagStore, target: str) -> ClassErrors:
    """A confusion matrix over the model's classes and whatever else the store's labels are."""
    seen = [np.asarray(model.classes_, dtype=np.float64)]
    step = 2**20
    for start in range(0, store.n_bags, step):
        labels = store.targets(start, min(store.n_bags, start + step), [target])
        seen.append(np.unique(labels[~np.isnan(labels)]))
    classes = np.unique(np.concatenate(seen))
    return ClassErrors(classes, [class_label(store, target, code) for code in classes])


def class_label(store: BagStore, target: str, code: float) -> str:
    """What people call a class: its name in the store, or the number."""
    names = store.meta.class_names.get(target, [])
    if float(code).is_integer() and 0 <= code < len(names):
        return str(names[int(code)])
    return f"{code:g}"


def draw_errors(evaluation: Evaluation, out_dir: Path) -> list[Path]:
    """The pictures of the errors; returns their paths."""
    from .pictures.evaluation import draw_confusion, draw_predictions, draw_residuals

    if evaluation.classes:
        errors = evaluation.confusion
        accuracy = errors.result()["accuracy"]
        name = evaluation.names[0]
        path = out_dir / "confusion.png"
        return [draw_confusion(path, errors.matrix, errors.names, name, accuracy)]
    what = evaluation.pairs(), evaluation.names, list(evaluation.errors().values())
    return [
        draw_predictions(out_dir / "predictions.png", *what),
        draw_residuals(out_dir / "residuals.png", *what),
    ]


def draw_pictured(
    path: Path,
    bags: Sequence[NDArray[Any]],
    titles: Sequence[str],
    box: Box,
    series: SeriesShape,
    coordinate_names: Sequence[str],
    downwards: bool,
) -> Path:
    """Bags with the densities that the model's embedding sees; returns the path."""
    from .densities import Series, draw_bags

    drawn = Series(series.basis, series.n_per_dim, series.max_norm, series.joint)
    return draw_bags(path, bags, titles, box, drawn, coordinate_names, downwards)


def titles(evaluation: Evaluation, store: BagStore, pictured: NDArray[Any]) -> list[str]:
    """A line for each chosen bag: its id, what it is and what was predicted."""
    name = evaluation.names[0]
    lines = []
    for row, *values in pictured.tolist():
        identity = store.ids(int(row), int(row) + 1)[0]
        true, predicted = (
            class_label(store, name, value) if evaluation.classes else f"{value:.4g}"
            for value in values
        )
        lines.append(f"bag {identity}: {name} {true}, predicted {predicted}")
    return lines


def check_names(names: Sequence[str] | None, store: BagStore) -> list[str]:
    """Names of the coordinates: as given, or as the store's source has them, or numbers.

    Raises
    ------
    ConfigError
        Another number of names than coordinates.
    """
    if names is not None:
        if len(names) != store.n_dims:
            raise ConfigError(
                f"key 'coordinate_names' has {len(names)} names; {store.url} has {store.n_dims} "
                "coordinates"
            )
        return list(names)
    known = store.meta.source.get("coordinates")
    if isinstance(known, (list, tuple)) and len(known) == store.n_dims:
        return [str(name) for name in known]
    return [f"coordinate {j + 1}" for j in range(store.n_dims)]
