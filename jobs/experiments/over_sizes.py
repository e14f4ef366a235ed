"""`OverSizes`: learning a parameter of a distribution from a sample of it, over sample sizes.

What 004, §3.5.2 and §3.5.3 share: the 2BE and the Kernel-Kernel estimator learn from labelled
bags what a classical estimator computes from one bag alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags
from bagbasis.bags import concatenate
from bagbasis.datasets.base import RandomDataset

from ..terminal import Callback
from .experiment import Experiment, Point, Result, Table
from .learners import (
    N_ROUNDS,
    Candidates,
    fit_double_basis,
    fit_kernel_kernel,
    mean_squares,
    smoothed,
    times,
)
from .over_sizes_report import error_table, time_tables

Floats = NDArray[np.float64]

PAPER_TRAIN, PAPER_TEST = 28_000, 2_000


@dataclass(frozen=True)
class Sizes:
    """A scale of such an experiment.

    Attributes
    ----------
    n_points : tuple of int
        n, points in a bag.
    n_train, n_test : int
        Bags.
    n_classical : int
        Of the test bags, the first ones, that the classical estimator gets.
    candidates : Candidates
    n_queries : int
        Bags predicted at once where batches are timed.
    """

    n_points: tuple[int, ...]
    n_train: int
    n_test: int
    n_classical: int
    candidates: Candidates
    n_queries: int = 256


class OverSizes(Experiment[Sizes]):
    """Two points a number n: what learns, and the classical estimators.

    Attributes
    ----------
    target : str
        What is predicted, in words.
    classical : str
        The classical estimators in the labels of points.
    """

    target: ClassVar[str]
    classical: ClassVar[str]

    @property
    def size(self) -> str:
        s = self.settings
        few = f", of which the classical estimators get {s.n_classical:,}"
        return (
            f"{s.n_train:,} training bags and {s.n_test:,} test bags"
            f"{few if s.n_classical < s.n_test else ''}, {_list(s.n_points)} points a bag; the "
            f"paper has {PAPER_TRAIN:,}, {PAPER_TEST:,}, and 10 to 1,000 points."
        )

    @abstractmethod
    def dataset(self, n_points: int, seed: int) -> RandomDataset:
        """Bags of so many points and their targets."""

    @abstractmethod
    def classical_params(self) -> dict[str, Any]:
        """What decides the result of the classical estimators, beside the data."""

    @abstractmethod
    def measure_classical(
        self, dataset: RandomDataset, n_bags: int, progress: Callback
    ) -> dict[str, Any]:
        """``methods``, on the dataset's first bags: mse, se, and for those that are timed seconds a
        query, "batch" and "single"."""

    @abstractmethod
    def remarks(self, results: Sequence[Result]) -> list[str]:
        """What is to be said below the table of errors."""

    def points(self) -> list[Point]:
        s, found = self.settings, []
        for n in s.n_points:
            data = {"n_points": n, "n_test": s.n_test, "n_classical": s.n_classical}
            learned = {
                "measure": "learned",
                **data,
                "n_train": s.n_train,
                "candidates": s.candidates.params,
                "n_queries": s.n_queries,
                "n_rounds": N_ROUNDS,
            }
            found.append(Point(f"2BE and KK, n {n}", learned))
            params = {"measure": "classical", **data, **self.classical_params()}
            found.append(Point(f"{self.classical}, n {n}", params))
        return found

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        s, n = self.settings, point.params["n_points"]
        test = self.dataset(n, 2 * self.seed + 1)
        if point.params["measure"] == "classical":
            return self.measure_classical(test, s.n_classical, progress)
        train = drawn(self.dataset(n, 2 * self.seed), s.n_train)
        return self._learned(train, drawn(test, s.n_test))

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [error_table(results, self.target, self.remarks(results)), *time_tables(results)]

    def _learned(self, train: tuple[Bags, Floats], test: tuple[Bags, Floats]) -> dict[str, Any]:
        s, (bags, y) = self.settings, test
        n_few = s.candidates.n_choose
        few = train[0][:n_few], train[1][:n_few]
        double = fit_double_basis(train, few, s.candidates, self.seed)
        kernel = fit_kernel_kernel(train, few, s.candidates)
        predicted, first = double.model.predict(bags), slice(None, s.n_classical)
        constant = np.broadcast_to(train[1].mean(axis=0), y.shape)
        return {
            "methods": {
                "2BE": mean_squares(predicted, y),
                "KK": mean_squares(smoothed(kernel.model, bags), y),
                "constant": mean_squares(constant, y),
            },
            "2be_first": mean_squares(predicted[first], y[first]),
            "choices": {"2BE": double.choice, "KK": kernel.choice},
            "seconds": times(double.model, kernel.model, bags, s.n_queries),
        }


@lru_cache(maxsize=2)
def drawn(dataset: RandomDataset, n_bags: int) -> tuple[Bags, Floats]:
    """The first bags of a dataset in memory, and their targets; one column as a vector."""
    blocks = [dataset.block(i) for i in range(-(-n_bags // dataset.block_bags))]
    bags = concatenate([block for block, _ in blocks])
    y = np.concatenate([targets for _, targets in blocks])[:n_bags]
    return bags[:n_bags], y[:, 0] if y.shape[1] == 1 else y


def _list(numbers: Sequence[int]) -> str:
    words = [f"{n:,}" for n in numbers]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
