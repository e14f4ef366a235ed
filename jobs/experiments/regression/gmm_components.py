"""`ComponentCounting`: the number of components of the mixture that a bag was drawn from.

001, §5.2 and Figure 3: Double-Basis regression under several geometries, the full kernel matrix
of an estimated divergence, EM with an information criterion, and a constant.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bagbasis import Bags, DoubleBasisRegressor
from bagbasis.core.arrays import Floats
from bagbasis.datasets import GMMComponents

from ..kit import Callback, Curves, Experiment, Measure, Params, counted
from ..kit.learning import Learner, describe_all, draw_from, errors, geometries, predict_by_kl
from ..timing import timed
from .over_sizes import CRITERIA, MAX_COMPONENTS, orders_by_criteria

DATASET_BOX = [(-10, 10)] * 2  # of the dataset

_Labelled = tuple[Bags, Floats]


class ComponentCounting(Experiment):
    name = "gmm-components"
    title = "Counting the components of a mixture"
    source = "001, §5.2"
    pictures = (
        Curves("components.png", "sizes.rmse", measure="2be", by="method", panels="n_points"),
    )

    def measures(self) -> list[Measure]:
        s = self.settings
        data = {"n_test": s.n_test, "largest": s.n_train[-1]}
        shared = self.picked("n_train n_choose n_features choose_features multipliers")
        n_points = {"n_points": s.n_points}
        methods = {"method candidates": describe_all(self._methods())}
        kl = {"n_points n_kl_train n_kl_test": [(n, *sizes) for n, sizes in s.kl.items()]}
        em = {"n_points n_em": list(s.n_em.items())}
        return [
            Measure("constant", self._constant, "constant, n {n_points}", n_points, data),
            Measure("2be", self._double_basis, "{method}, n {n_points}", {**n_points, **methods},
                    {**data, **shared}),
            Measure("kl", self._by_gram, "KL, n {n_points}", kl, data),
            Measure("em", self._by_em, "AIC and BIC, n {n_points}", em, data),
        ]  # fmt: skip

    def _methods(self) -> dict[str, list[Any]]:
        tv = {"n_per_dim": 10, "grid": 40}
        return geometries(self.settings.geometries, {"box": DATASET_BOX}, {}, tv, 512)

    def _data(self, p: Params) -> tuple[_Labelled, _Labelled]:
        n, n_test = p["n_points"], p["n_test"]
        seed = 2 * self.seed + (n != self.settings.n_points[0])
        bags, y = draw_from(GMMComponents(n_points=n, seed=seed), n_test + p["largest"])
        return (bags[n_test:], y[n_test:]), (bags[:n_test], y[:n_test])

    def _constant(self, p: Params, progress: Callback) -> dict[str, Any]:
        train, test = self._data(p)
        return errors(np.full(len(test[1]), train[1].mean()), test[1])

    def _double_basis(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Embedding, σ and λ are chosen with the first training bags and fewer features."""
        s, (train, test) = self.settings, self._data(p)
        learner = Learner(DoubleBasisRegressor, self.seed)
        few = train[0][: s.n_choose], train[1][: s.n_choose]
        choice = learner.choose(self._methods()[p["method"]], s.multipliers, few, s.choose_features)
        sizes = []
        for n in counted(s.n_train, progress):
            training = train[0][:n], train[1][:n]
            predicted, seconds = learner.timed(choice, training, s.n_features, test[0])
            sizes.append({"n_train": n, "seconds": seconds, **errors(predicted, test[1])})
        return {"choice": choice.values, "sizes": sizes}

    def _by_gram(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Learn by KL, and by JS's embedding from as many bags."""
        s, (train, test), n_train = self.settings, self._data(p), p["n_kl_train"]
        few, queries = (train[0][:n_train], train[1][:n_train]), test[0][: p["n_kl_test"]]
        (predicted, choice), seconds = timed(predict_by_kl, few[0], few[1][:, None], queries)
        learner = Learner(DoubleBasisRegressor, self.seed)
        js = learner.choose(self._methods()["JS"], s.multipliers, few, s.choose_features)
        beside, js_seconds = learner.timed(js, few, s.n_features, queries)
        size, y = {"n_train": n_train, "n_test": len(queries)}, test[1][: len(queries)]
        return {
            "choice": choice,
            "sizes": [{**size, "seconds": seconds, **errors(predicted[:, 0], y)}],
            "js": {**size, "seconds": js_seconds, **errors(beside, y)},
        }

    def _by_em(self, p: Params, progress: Callback) -> dict[str, Any]:
        n, (_, test) = p["n_em"], self._data(p)
        begun, orders = time.perf_counter(), []
        for i in counted(range(n), progress):
            orders.append(orders_by_criteria(test[0][i], MAX_COMPONENTS, self.seed))
        seconds = time.perf_counter() - begun
        by_criterion = {name: np.array([each[name] for each in orders], float) for name in CRITERIA}
        scores = {name: errors(values, test[1][:n]) for name, values in by_criterion.items()}
        return {**scores, "n": n, "seconds_a_bag": seconds / n}
