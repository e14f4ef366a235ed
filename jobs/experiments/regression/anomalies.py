"""`Anomalies`: collective anomalies among bags, found by scores that use no labels.

000, ch. 1, names the task, and 004, §8.4.4, its measure. Points of planted bags are each ordinary;
training and test bags contain them alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score
from sklearn.svm import OneClassSVM

from bagbasis import (
    Bags,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.core.arrays import Bools, Floats
from bagbasis.datasets import Digits

from ..kit import Callback, Experiment, GroupedBars, Measure, Params, Settings
from ..kit.learning import draw_from, random_feature_rows

_ALPHA = 1e-3  # λ per bag, of the leverage
_N_POINTS = 50
_N_PICTURED = 6  # strangest bags
_DIGITS = 10


class Anomalies(Experiment):
    name = "anomalies"
    title = "Collective anomalies among bags"
    source = "000, ch. 1, and 004, §8.4.4"
    pictures = (GroupedBars("precision.png", "precision.*", x="data", label="average precision"),)

    def measures(self) -> list[Measure]:
        over = {"data": list(_DATA), "repeat": range(self.settings.n_repeats)}
        return [Measure("", self._scores, "{data} {repeat}", over, self.shared())]

    def _scores(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the average precision of each method, and the strangest bags."""
        s, rng = self.settings, self.rng(p["repeat"], list(_DATA).index(p["data"]))
        parts = [rng.permutation(n) < round(s.share * n) for n in (s.n_train, s.n_test)]
        planted, bags = parts[1], _DATA[p["data"]](np.concatenate(parts), rng)
        train, test = bags[: s.n_train], bags[s.n_train :]
        scores = score_bags(train, test, s, self.seed)
        worst = np.argsort(-scores["leverage"])[: _N_PICTURED if p["repeat"] == 0 else 0]
        strangest = [{"points": test[i].round(3).tolist(), "planted": bool(planted[i])}
                     for i in worst.tolist()]  # fmt: skip
        precision = {n: average_precision_score(planted, each) for n, each in scores.items()}
        return {"precision": precision, "strangest": strangest}


def score_bags(train: Bags, test: Bags, sizes: Settings, seed: int) -> dict[str, Floats]:
    """Return how strange each test bag is, by methods fitted to the training bags alone."""
    first = ProjectionEmbedding(n_per_dim=sizes.n_per_dim, box=[(0, 1)] * train.n_dims)
    second = RandomFourierFeatures(n_features=sizes.n_features, seed=seed)
    fixed: dict[str, Any] = {"alpha": _ALPHA * len(train), "uncertainty": True}
    nothing = np.zeros(len(train))  # neither score looks at labels
    of_features = DoubleBasisRegressor(first, second, **fixed).fit(train, nothing)
    of_coefficients = DoubleBasisRegressor(first, False, **fixed).fit(train, nothing)
    scores = of_features.bag_scores(test)
    z, new = (random_feature_rows(of_features, bags) for bags in (train, test))
    machine = OneClassSVM(kernel="precomputed").fit(z @ z.T)  # ν = .5 found no less than .05
    moments = MomentsEmbedding(dtype="float64").fit(train)
    forest = IsolationForest(n_estimators=sizes.n_trees, random_state=seed)
    forest.fit(moments.transform(train))
    return {
        "leverage": scores.leverage,
        "Mahalanobis of features": scores.mahalanobis,
        "Mahalanobis of coefficients": of_coefficients.bag_scores(test).mahalanobis,
        "one-class SVM, our Gram": -machine.decision_function(new @ z.T),
        "isolation forest, moments": -forest.score_samples(moments.transform(test)),
    }


def _moved(planted: Bools, rng: np.random.Generator) -> Bags:
    """Centres of bags lie on a ring; those of planted ones within it."""
    angle = rng.uniform(0, 2 * np.pi, len(planted))
    radius = np.where(planted, rng.uniform(0, 0.12, len(planted)), 0.25)
    centres = 0.5 + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _around(centres, 0.08 * rng.standard_normal((len(planted), _N_POINTS, 2)))


def _dependence(planted: Bools, rng: np.random.Generator) -> Bags:
    """Coordinates depend on each other, with either sign; those of planted ones do not."""
    points = rng.standard_normal((len(planted), _N_POINTS, 2))
    slope = np.where(planted, 0.0, 0.9 * rng.choice([-1, 1], len(planted)))[:, None]
    points[..., 1] = slope * points[..., 0] + np.sqrt(1 - slope**2) * points[..., 1]
    return _around(_centres(planted, rng), 0.1 * points)


def _shape(planted: Bools, rng: np.random.Generator) -> Bags:
    """Points of a normal distribution; planted ones have its mean and covariance, on a ring."""
    points = rng.standard_normal((len(planted), _N_POINTS, 2))
    ring = points / np.linalg.norm(points, axis=2, keepdims=True) * np.sqrt(2)
    points = np.where(planted[:, None, None], ring, points)
    return _around(_centres(planted, rng), 0.1 * points)


def _mixed(planted: Bools, rng: np.random.Generator) -> Bags:
    """Points about one of two places; those of planted bags about both."""
    side = np.repeat(rng.choice([-1, 1], (len(planted), 1)), _N_POINTS, axis=1)
    side = np.where(planted[:, None], rng.choice([-1, 1], side.shape), side)
    places = 0.18 * np.stack([side, np.zeros_like(side)], axis=2)
    noise = 0.1 * rng.standard_normal(places.shape)
    return _around(np.full((len(planted), 2), 0.5), places + noise)


def _digits(planted: Bools, rng: np.random.Generator) -> Bags:
    """Pixels of handwritten digits; planted ones are of a class that others are not."""
    bags, classes = draw_from(Digits())
    strange = rng.integers(_DIGITS)
    chosen = np.empty(len(planted), dtype=np.int64)
    for is_planted in (True, False):
        pool = np.flatnonzero((classes == strange) == is_planted)
        rows = np.flatnonzero(planted == is_planted)
        chosen[rows] = rng.choice(pool, len(rows), replace=False)
    return Bags.from_list([bags[i] for i in chosen.tolist()])


def _centres(planted: Bools, rng: np.random.Generator) -> Floats:
    return rng.uniform(0.4, 0.6, (len(planted), 2))


def _around(centres: Floats, points: Floats) -> Bags:
    return Bags.from_list(list((centres[:, None] + points).clip(0, 1)))


# By what people see: bags of which those that the mask says are planted
_DATA: dict[str, Callable[[Bools, np.random.Generator], Bags]] = {
    "moved": _moved,
    "dependence": _dependence,
    "shape": _shape,
    "mixed": _mixed,
    "digits": _digits,
}
