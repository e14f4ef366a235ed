"""`OverSizes`: learns a parameter of a distribution from a sample, for several sample sizes.

It is the common part of 004, §3.5.2 and §3.5.3: the 2BE and the Kernel-Kernel estimator learn from
labelled bags what a classical estimator computes from one bag alone.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from bagbasis.datasets.base import RandomDataset

from ...terminal import Callback
from .experiment import Experiment, Measure, Params, Scale
from .kernel_kernel import (
    N_ROUNDS,
    CandidateGrids,
    fit_double_basis,
    fit_kernel_kernel,
    measure_times,
    smooth,
)
from .learning import draw_from, mean_squares


class Sizes(Scale):
    """A scale of such an experiment.

    Attributes
    ----------
    n_points : list of int
        n, points per bag.
    n_train, n_test : int
        Bags.
    n_classical : int
        Number of test bags, from the first, that the classical estimator is given.
    candidates : Candidates
    n_queries : int
        Bags predicted at once where batches are timed.
    """

    n_points: list[int]
    n_train: int
    n_test: int
    n_classical: int
    candidates: CandidateGrids
    n_queries: int = 256


class OverSizes(Experiment[Sizes]):
    """Two points per n: what learns, and the classical estimators.

    Attributes
    ----------
    classical : str
        The classical estimators in the labels of points.
    """

    kind = Sizes
    classical: ClassVar[str]

    @abstractmethod
    def dataset(self, n_points: int, seed: int) -> RandomDataset:
        """Return the dataset of bags of so many points."""

    @abstractmethod
    def classical_params(self) -> dict[str, Any]:
        """Return what decides the result of the classical estimators, apart from the data."""

    @abstractmethod
    def measure_classical(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return ``methods``: mse and se of each on the first test bags.

        Those that are timed have ``seconds`` per query, "batch" and "single".
        """

    def test_set(self, n_points: int) -> RandomDataset:
        """The dataset of test bags."""
        return self.dataset(n_points, 2 * self.seed + 1)

    def measures(self) -> list[Measure]:
        s, over = self.settings, {"n_points": self.settings.n_points}
        data = {"n_test": s.n_test, "n_classical": s.n_classical}
        learned = {
            "n_train": s.n_train,
            "candidates": s.candidates.model_dump(),
            "n_queries": s.n_queries,
            "n_rounds": N_ROUNDS,
        }
        classical, label = self.classical_params(), f"{self.classical}, n {{n_points}}"
        return [
            Measure("learned", self._learned, "2BE and KK, n {n_points}", over,
                    {**data, **learned}),
            Measure("classical", self.measure_classical, label, over, {**data, **classical}),
        ]  # fmt: skip

    def _learned(self, p: Params, progress: Callback) -> dict[str, Any]:
        s, n_few = self.settings, self.settings.candidates.n_choose
        train = draw_from(self.dataset(p["n_points"], 2 * self.seed), s.n_train)
        bags, y = draw_from(self.test_set(p["n_points"]), s.n_test)
        few = train[0][:n_few], train[1][:n_few]
        double = fit_double_basis(train, few, s.candidates, self.seed)
        kernel = fit_kernel_kernel(train, few, s.candidates)
        predicted, first = double.model.predict(bags), slice(None, s.n_classical)
        constant = np.broadcast_to(train[1].mean(axis=0), y.shape)
        return {
            "methods": {
                "2BE": mean_squares(predicted, y),
                "KK": mean_squares(smooth(kernel.model, bags), y),
                "constant": mean_squares(constant, y),
            },
            "2be_first": mean_squares(predicted[first], y[first]),
            "choices": {"2BE": double.choice, "KK": kernel.choice},
            "seconds": measure_times(double.model, kernel.model, train, bags, s.n_queries),
        }
