"""`ComponentCounting`: of how many components is the mixture that a bag was drawn from?

001, §5.2 and Figure 3: Double-Basis regression under several geometries, the full kernel matrix
of an estimated divergence, EM with an information criterion, and a constant.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, DoubleBasisRegressor
from bagbasis.bags.bags import concatenate
from bagbasis.datasets import GMMComponents

from ..terminal import Callback
from .experiment import Experiment, Point, Result, Table
from .gmm_components_report import component_tables, draw_components
from .gmm_components_settings import SETTINGS, Settings
from .gram_peer import GramPeer
from .methods import choose, described_all, fit_chosen
from .mixture_order import CRITERIA, orders_by_criteria

Floats = NDArray[np.float64]

MOST_COMPONENTS = 10


class ComponentCounting(Experiment[Settings]):
    """See the module; a point is a method at a number of points a bag."""

    name = "gmm-components"
    title = "Counting the components of a mixture"
    source = "001, §5.2"
    scales = SETTINGS

    @property
    def size(self) -> str:
        s = self.settings
        sizes = ", ".join(f"{n:,}" for n in s.n_train)
        return (
            f"{sizes} training bags, {s.n_test:,} test bags, {_list(s.n_points)} points a bag, "
            f"D = {s.n_features:,}; the paper has 4,000, 8,000 and 16,000, 2,000, 200 and 800, "
            "and 5,000."
        )

    def points(self) -> list[Point]:
        s, points = self.settings, []
        for n in s.n_points:
            data = {"n_points": n, "n_test": s.n_test, "largest": s.n_train[-1]}
            points.append(Point(f"constant, n {n}", {"measure": "constant", **data}))
            shared = {
                "n_train": s.n_train,
                "n_choose": s.n_choose,
                "n_features": s.n_features,
                "choose_features": s.choose_features,
                "multipliers": s.multipliers,
            }
            for name, candidates in described_all(s.methods).items():
                params = {"measure": "2be", "method": name, "candidates": candidates}
                points.append(Point(f"{name}, n {n}", {**params, **data, **shared}))
            if n in s.kl:
                n_train, n_test = s.kl[n]
                sizes = {"n_kl_train": n_train, "n_kl_test": n_test}
                points.append(Point(f"KL, n {n}", {"measure": "kl", **data, **sizes}))
            em = {"measure": "em", **data, "n_em": s.n_em[n]}
            points.append(Point(f"AIC and BIC, n {n}", em))
        return points

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        params = point.params
        n, n_test = params["n_points"], params["n_test"]
        bags, y = mixtures(2 * self.seed + (n != self.settings.n_points[0]), n,
                           n_test + params["largest"])  # fmt: skip
        test, train = (bags[:n_test], y[:n_test]), (bags[n_test:], y[n_test:])
        if params["measure"] == "constant":
            return errors(np.full(n_test, train[1].mean()), test[1])
        if params["measure"] == "2be":
            return self._double_basis(params, train, test, progress)
        if params["measure"] == "kl":
            return self._by_gram(params, train, test)
        return self._by_em(params, test, progress)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return component_tables(results)

    def draw(self, results: Sequence[Result]) -> list[Path]:
        return [draw_components(self.out_dir / "components.png", results)]

    def _double_basis(
        self,
        params: dict[str, Any] | Any,
        train: tuple[Bags, Floats],
        test: tuple[Bags, Floats],
        progress: Callback,
    ) -> dict[str, Any]:
        """Embedding, σ and λ are chosen with the first training bags and fewer features."""
        s = self.settings
        few = train[0][: s.n_choose], train[1][: s.n_choose]
        candidates = s.methods[params["method"]]
        choice = choose(
            DoubleBasisRegressor, candidates, s.multipliers, few, s.choose_features, self.seed
        )
        sizes = []
        for done, n in enumerate(s.n_train):
            begun = time.perf_counter()
            training = train[0][:n], train[1][:n]
            model = fit_chosen(DoubleBasisRegressor, choice, training, s.n_features, self.seed)
            predicted = model.predict(test[0])
            seconds = time.perf_counter() - begun
            sizes.append({"n_train": n, "seconds": seconds, **errors(predicted, test[1])})
            progress(done + 1, len(s.n_train))
        return {"choice": choice.values, "sizes": sizes}

    def _by_gram(
        self, params: Any, train: tuple[Bags, Floats], test: tuple[Bags, Floats]
    ) -> dict[str, Any]:
        """KL, and JS's embedding fitted to as many bags."""
        s, n_train, n_test = self.settings, params["n_kl_train"], params["n_kl_test"]
        few = train[0][:n_train], train[1][:n_train]
        begun = time.perf_counter()
        predicted, choice = GramPeer().predict(few[0], few[1][:, None], test[0][:n_test])
        seconds = time.perf_counter() - begun
        size = {"n_train": n_train, "n_test": n_test}
        js = choose(DoubleBasisRegressor, s.methods["JS"], s.multipliers, few,
                    s.choose_features, self.seed)  # fmt: skip
        begun = time.perf_counter()
        model = fit_chosen(DoubleBasisRegressor, js, few, s.n_features, self.seed)
        beside = model.predict(test[0][:n_test])
        js_seconds = time.perf_counter() - begun
        y = test[1][:n_test]
        return {
            "choice": choice,
            "sizes": [{**size, "seconds": seconds, **errors(predicted[:, 0], y)}],
            "js": {**size, "seconds": js_seconds, **errors(beside, y)},
        }

    def _by_em(self, params: Any, test: tuple[Bags, Floats], progress: Callback) -> dict[str, Any]:
        n = params["n_em"]
        begun, found = time.perf_counter(), []
        for i in range(n):
            found.append(orders_by_criteria(test[0][i], MOST_COMPONENTS, self.seed))
            progress(i + 1, n)
        seconds = time.perf_counter() - begun
        scores = {
            name: errors(np.array([each[name] for each in found], dtype=float), test[1][:n])
            for name in CRITERIA
        }
        return {**scores, "n": n, "seconds_a_bag": seconds / n}


@lru_cache(maxsize=1)
def mixtures(seed: int, n_points: int, n_bags: int) -> tuple[Bags, Floats]:
    """Bags of `datasets.GMMComponents`, and their numbers of components."""
    dataset = GMMComponents(n_points=n_points, seed=seed)
    blocks = [dataset.block(i) for i in range(-(-n_bags // dataset.block_bags))]
    bags = concatenate([block for block, _ in blocks])
    y = np.concatenate([targets[:, 0] for _, targets in blocks])
    return bags[:n_bags], y[:n_bags]


def errors(predicted: Floats, y: Floats) -> dict[str, float]:
    """Root mean squared error, and the standard error of that."""
    squares = (predicted - y) ** 2
    rmse = float(np.sqrt(squares.mean()))
    return {"rmse": rmse, "se": float(squares.std() / (2 * rmse * len(y) ** 0.5))}


def _list(numbers: Sequence[int]) -> str:
    return " and ".join(f"{n:,}" for n in numbers)
