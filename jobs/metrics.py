"""Errors of predictions, added up block by block; what the pictures need is a bounded sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PAIRS = 50_000

Vector = NDArray[Any]


class RegressionErrors:
    """Errors of one target.

    The sums of squares about the mean are merged block by block (Chan, Golub and LeVeque), in
    float64.
    """

    def __init__(self, seed: int = 0) -> None:
        self.n = 0
        self._sum_squares = 0.0
        self._sum_absolute = 0.0
        self._sum_errors = 0.0
        self._mean = 0.0
        self._scatter = 0.0
        self._sample = Sample(PAIRS, 2, seed)

    def add(self, true: Vector, predicted: Vector) -> None:
        """Count a block; shapes (n,), without NaN."""
        if not len(true):
            return
        errors = predicted.astype(np.float64) - true
        self._sum_squares += float(errors @ errors)
        self._sum_absolute += float(np.abs(errors).sum())
        self._sum_errors += float(errors.sum())
        n, mean = len(true), float(true.mean())
        shift = mean - self._mean
        self._scatter += float(((true - mean) ** 2).sum())
        self._scatter += shift * shift * self.n * n / (self.n + n)
        self._mean += shift * n / (self.n + n)
        self.n += n
        self._sample.add(np.column_stack([true, predicted]))

    def result(self) -> dict[str, Any]:
        """``n``, ``rmse``, ``mae``, ``bias``, ``r2`` and ``constant_rmse``.

        ``constant_rmse`` is the error of the best constant for these bags, their own mean; ``r2``
        is 1 - (rmse / constant_rmse)², None when all targets are equal.
        """
        n = self.n
        return {
            "n": n,
            "rmse": (self._sum_squares / n) ** 0.5,
            "mae": self._sum_absolute / n,
            "bias": self._sum_errors / n,
            "r2": 1.0 - self._sum_squares / self._scatter if self._scatter > 0 else None,
            "constant_rmse": (self._scatter / n) ** 0.5,
        }

    def pairs(self) -> Vector:
        """A random sample of (true, predicted), shape (at most 50,000, 2)."""
        return self._sample.rows()


class ClassErrors:
    """Confusion matrix over integer class codes ``classes``."""

    def __init__(self, classes: Vector, names: list[str]) -> None:
        self.classes = np.asarray(classes, dtype=np.float64)
        self.names = names
        self.matrix = np.zeros((len(names), len(names)), dtype=np.int64)

    def add(self, true: Vector, predicted: Vector) -> None:
        """Count a block of labels; all of them among ``classes``."""
        rows, columns = self._codes(true), self._codes(predicted)
        np.add.at(self.matrix, (rows, columns), 1)

    def result(self) -> dict[str, Any]:
        """``n``, ``accuracy``, ``per_class`` and ``confusion``.

        ``per_class`` has precision, recall, f1 (0 where undefined) and the number of bags;
        ``confusion`` has a row a true class and a column a predicted class.
        """
        hits = np.diag(self.matrix).astype(np.float64)
        true, predicted = self.matrix.sum(axis=1), self.matrix.sum(axis=0)
        precision = _ratio(hits, predicted)
        recall = _ratio(hits, true)
        f1 = _ratio(2 * hits, true + predicted)
        return {
            "n": int(true.sum()),
            "accuracy": float(hits.sum() / true.sum()),
            "per_class": {
                name: {
                    "precision": float(precision[i]),
                    "recall": float(recall[i]),
                    "f1": float(f1[i]),
                    "n": int(true[i]),
                }
                for i, name in enumerate(self.names)
            },
            "confusion": self.matrix.tolist(),
        }

    def _codes(self, labels: Vector) -> NDArray[np.intp]:
        return np.searchsorted(self.classes, labels)


class Sample:
    """A uniform random sample of rows from a stream, at most ``size`` of them."""

    def __init__(self, size: int, n_columns: int, seed: int = 0) -> None:
        self._size = size
        self._rng = np.random.default_rng(seed)
        self._keys = np.empty(0)
        self._rows = np.empty((0, n_columns))

    def add(self, rows: Vector) -> None:
        """Offer rows; the ones with the smallest random keys so far are kept, in order."""
        keys = np.concatenate([self._keys, self._rng.random(len(rows))])
        kept = np.concatenate([self._rows, rows])
        if len(keys) > self._size:
            smallest = np.sort(np.argpartition(keys, self._size)[: self._size])
            keys, kept = keys[smallest], kept[smallest]
        self._keys, self._rows = keys, kept

    def rows(self) -> Vector:
        """The sample, shape (at most size, n_columns)."""
        return self._rows


def _ratio(numerator: Vector, denominator: Vector) -> Vector:
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)
