"""`MarginalGeometries`: bags in 64 dimensions, one embedding per dimension, concatenated.

The recipe of 001, §5.4 and Figure 5 on generated responses of filters (`data.samples.Patches`). In
one version the filters depend on each other within a patch, in the other they are independent, with
the same marginals.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV

from bagbasis import Bags, DoubleBasisClassifier, MomentsEmbedding

from ...terminal import Callback
from ..data.samples import Patches
from ..kit.experiment import Experiment, Measure, Params, Scale
from ..kit.learning import Geometries, Learner, describe, describe_all
from ..kit.plots import GroupedBars

Labelled = tuple[Bags, NDArray[np.int64]]

_N_FILTERS = 64  # dimensions; the paper has 512
FILTERS = {"independent": False, "dependent": True}
LINEAR_ALPHAS = 10.0 ** np.arange(-3.0, 2.5, 0.5)  # of embeddings of unit variance


class Sizes(Scale):
    """Numbers of images, points and filters, and sizes of the embeddings."""

    n_repeats: int
    n_train: int
    n_test: int
    n_points: int
    n_classes: int
    n_features: int
    choose_features: int
    multipliers: list[float]
    geometries: Geometries
    n_filters: ClassVar[int] = _N_FILTERS

    @property
    def methods(self) -> dict[str, list[Any]]:
        """The embeddings to choose from, by method.

        All but the mean map and the moments, which take all dimensions at once, are one embedding
        per dimension.
        """
        box = [(0, 1)] * self.n_filters
        common, tv = {"marginals": 1, "box": box}, {"n_per_dim": 10, "grid": 40}
        methods = self.geometries.methods(common, {}, tv, 2048)
        return {**methods, "moments": [MomentsEmbedding(box=box, standardize=False)]}


class MarginalGeometries(Experiment[Sizes]):
    """A point is a method on one kind of filters, over all repeats."""

    name = "marginals"
    title = "High-dimensional bags, one embedding per dimension"
    source = "001, §5.4"
    kind = Sizes
    pictures = (
        GroupedBars(
            file="marginals.png",
            x="method",
            y=("linear", "rbf"),
            panels="filters",
            label="accuracy",
        ),
    )
    axis: ClassVar[str] = "filters"  # the parameter that says which images
    shown: ClassVar[str] = "{filters} filters"
    images: ClassVar[Sequence[str]] = tuple(FILTERS)

    def measures(self) -> list[Measure]:
        shared = {key: value for key, value in self.settings if key != "geometries"}
        methods = list(describe_all(self.settings.methods).items())
        over: dict[str, list[Any]] = {self.axis: list(self.images), "method candidates": methods}
        return [Measure("", self._accuracies, self.shown + ", {method}", over, shared)]

    def _accuracies(self, p: Params, progress: Callback) -> dict[str, Any]:
        s, candidates = self.settings, self.settings.methods[p["method"]]
        learner = Learner(DoubleBasisClassifier, self.seed)
        values: dict[str, Any] = {"linear": [], "rbf": [], "choices": []}
        for repeat in range(s.n_repeats):
            train, test = self.draw_images(p[self.axis], repeat)
            linear, chosen = linear_accuracy(candidates, train, test)
            choice = learner.choose(candidates, s.multipliers, train, s.choose_features)
            model = learner.fit_choice(choice, train, s.n_features)
            values["linear"].append(linear)
            values["rbf"].append(float((model.predict(test[0]) == test[1]).mean()))
            values["choices"].append({"linear": chosen, "rbf": choice.values})
            progress(repeat + 1, s.n_repeats)
        return values

    def draw_images(self, kind: str, repeat: int) -> tuple[Labelled, Labelled]:
        """Return training and test images."""
        s = self.settings
        patches = Patches(
            n_classes=s.n_classes,
            n_filters=s.n_filters,
            n_points=s.n_points,
            dependent=FILTERS[kind],
            seed=100 * self.seed + repeat,
        )
        n_train, n_test = s.n_classes * s.n_train, s.n_classes * s.n_test
        return _drawn(patches, n_train, 0), _drawn(patches, n_test, 1)


def linear_accuracy(
    candidates: Sequence[Any], train: Labelled, test: Labelled
) -> tuple[float, dict[str, Any]]:
    """Return the accuracy of a linear classifier on the embedding, and which one was chosen.

    The leave-one-out error of scikit-learn's `RidgeClassifierCV` chooses embedding and penalty,
    on embeddings of unit variance in all.
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
    return accuracy, describe(chosen)


@lru_cache(maxsize=2)
def _drawn(patches: Patches, n: int, index: int) -> Labelled:
    return patches.images(n, index)
