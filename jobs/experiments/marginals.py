"""`Marginals`: bags in 64 dimensions, one embedding a dimension, concatenated.

The recipe of 001, §5.4 and Figure 5 on generated responses of filters (`patches`), once with
filters that depend on each other within a patch, and once with the same marginals, independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    HDDEmbedding,
    HistogramEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
)

from ..terminal import Callback
from .data.patches import Patches
from .experiment import Experiment, Point, Result, Table
from .marginals_report import draw_marginals, marginal_table
from .methods import choose, described, described_all, fit_chosen

Labelled = tuple[Bags, NDArray[np.int64]]

N_FILTERS = 64
FILTERS = {"independent": False, "dependent": True}
LINEAR_ALPHAS = 10.0 ** np.arange(-3.0, 2.5, 0.5)


@dataclass(frozen=True)
class Settings:
    """A scale: repeats (other classes each), images of a class in training and in the test, points
    an image, classes, D, and candidates by method of which the best is taken."""

    n_repeats: int
    n_train: int
    n_test: int
    n_points: int
    n_classes: int
    n_features: int
    choose_features: int
    multipliers: tuple[float, ...]
    methods: dict[str, Sequence[Any]]


def embeddings(
    bandwidths: Sequence[float],
    n_per_dim: Sequence[int],
    n_bins: Sequence[int],
    mean_map: Sequence[float],
) -> dict[str, Sequence[Any]]:
    """Candidates of each method: one embedding a dimension but for the mean map and the moments,
    which take all dimensions at once."""
    each: dict[str, Any] = {"marginals": 1, "box": [(0, 1)] * N_FILTERS}
    box = {"box": each["box"]}
    return {
        "JS": [HDDEmbedding("js", bandwidth=h, **each) for h in bandwidths],
        "Hellinger": [HDDEmbedding("hellinger", bandwidth=h, **each) for h in bandwidths],
        "TV": [HDDEmbedding("tv", n_per_dim=10, grid=40, bandwidth=h, **each) for h in bandwidths],
        "L2": [ProjectionEmbedding(n_per_dim=n, **each) for n in n_per_dim],
        "MMD": [MeanMapEmbedding(n_features=2048, bandwidth=h, **box) for h in mean_map],
        "Hist JS": [HistogramEmbedding("js", n_bins=n, **each) for n in n_bins],
        "moments": [MomentsEmbedding(**box)],
    }


SETTINGS = {
    "small": Settings(
        n_repeats=1,
        n_train=30,
        n_test=80,
        n_points=100,
        n_classes=10,
        n_features=1000,
        choose_features=500,
        multipliers=(2.0,),
        methods=embeddings((0.05,), (8,), (8,), (2.0,)),
    ),
    "paper": Settings(
        n_repeats=3,
        n_train=60,
        n_test=80,
        n_points=200,
        n_classes=15,
        n_features=2000,
        choose_features=1000,
        multipliers=(1.0, 3.0),
        methods=embeddings((0.05, 0.1), (5, 8), (5, 10), (1.0, 2.0)),
    ),
}


class Marginals(Experiment[Settings]):
    """See the module; a point is a method on one kind of filters, over all repeats."""

    name = "marginals"
    title = "High-dimensional bags, one embedding a dimension"
    source = "001, §5.4"
    scales = SETTINGS

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_classes} classes, {s.n_train} training and {s.n_test} test images each, "
            f"{s.n_points} points in {N_FILTERS} dimensions, D = {s.n_features:,}; the paper has "
            "15 classes, 100 training and 199 test images each, 400 to 1,000 points in 512 "
            "dimensions, of photographs."
        )

    def points(self) -> list[Point]:
        s = self.settings
        shared = {key: value for key, value in vars(s).items() if key != "methods"}
        return [
            Point(
                f"{kind} filters, {name}",
                {**shared, "filters": kind, "method": name, "candidates": candidates},
            )
            for kind in FILTERS
            for name, candidates in described_all(s.methods).items()
        ]

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        s, candidates = self.settings, self.settings.methods[point.params["method"]]
        values: dict[str, Any] = {"linear": [], "rbf": [], "choices": []}
        for repeat in range(s.n_repeats):
            train, test = self._images(point.params["filters"], repeat)
            linear, chosen = _linear_accuracy(candidates, train, test)
            choice = choose(
                DoubleBasisClassifier,
                candidates,
                s.multipliers,
                train,
                s.choose_features,
                self.seed,
            )
            model = fit_chosen(DoubleBasisClassifier, choice, train, s.n_features, self.seed)
            values["linear"].append(linear)
            values["rbf"].append(float((model.predict(test[0]) == test[1]).mean()))
            values["choices"].append({"linear": chosen, "rbf": choice.values})
            progress(repeat + 1, s.n_repeats)
        return values

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [marginal_table(results, kind) for kind in FILTERS]

    def draw(self, results: Sequence[Result]) -> list[Path]:
        return [draw_marginals(self.out_dir / "marginals.png", results)]

    def _images(self, kind: str, repeat: int) -> tuple[Labelled, Labelled]:
        s = self.settings
        patches = Patches(
            n_classes=s.n_classes,
            n_filters=N_FILTERS,
            n_points=s.n_points,
            dependent=FILTERS[kind],
            seed=100 * self.seed + repeat,
        )
        n_train, n_test = s.n_classes * s.n_train, s.n_classes * s.n_test
        return _drawn(patches, n_train, 0), _drawn(patches, n_test, 1)


def _linear_accuracy(
    candidates: Sequence[Any], train: Labelled, test: Labelled
) -> tuple[float, dict[str, Any]]:
    """Of a linear classifier on the embedding alone, and the embedding that was chosen.

    Embedding and penalty by the leave-one-out error of scikit-learn's `RidgeClassifierCV`, on
    embeddings of unit variance in all.
    """
    best, accuracy, chosen = -np.inf, np.nan, None
    for candidate in candidates:
        embedding = clone(candidate).fit(train[0])
        rows, queries = (embedding.transform(bags).astype(float) for bags in (train[0], test[0]))
        unit = rows.var(axis=0).sum() ** 0.5
        model = RidgeClassifierCV(LINEAR_ALPHAS).fit(rows / unit, train[1])
        if model.best_score_ > best:
            accuracy = float((model.predict(queries / unit) == test[1]).mean())
            best, chosen = model.best_score_, candidate
    return accuracy, described(chosen)


@lru_cache(maxsize=2)
def _drawn(patches: Patches, n: int, index: int) -> Labelled:
    return patches.images(n, index)
