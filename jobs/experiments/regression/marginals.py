"""`Marginals`: bags in 64 dimensions, one embedding per dimension, concatenated.

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

from ...pictures import BLUE, ORANGE
from ...terminal import Callback
from ..data.samples import Patches
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import select
from ..kit.learning import Geometries, Learner, describe, describe_all
from ..kit.notes import remarks
from ..kit.plots import BLACK, finish
from ..kit.verdicts import MEANING, PICKED, lead, lead_text, order_verdict
from .gmm_components import HDD

Labelled = tuple[Bags, NDArray[np.int64]]

N_FILTERS = 64  # dimensions; the paper has 512
FILTERS = {"independent": False, "dependent": True}
LINEAR_ALPHAS = 10.0 ** np.arange(-3.0, 2.5, 0.5)  # of embeddings of unit variance
BESIDE = ("MMD", "L2", "Hist JS", "moments")
WAYS = {"linear": "linear", "rbf": "random features (RBF)"}


class Sizes(Scale):
    """See ``configs/experiments/marginals.yaml``."""

    n_repeats: int
    n_train: int
    n_test: int
    n_points: int
    n_classes: int
    n_features: int
    choose_features: int
    multipliers: list[float]
    geometries: Geometries
    n_filters: ClassVar[int] = N_FILTERS

    @property
    def methods(self) -> dict[str, list[Any]]:
        """The embeddings to choose from, by method.

        All but the mean map and the moments, which take all dimensions at once, are one embedding
        per dimension.
        """
        box = [(0, 1)] * self.n_filters
        common, tv = {"marginals": 1, "box": box}, {"n_per_dim": 10, "grid": 40}
        found = self.geometries.methods(common, {}, tv, 2048)
        return {**found, "moments": [MomentsEmbedding(box=box, standardize=False)]}


class Marginals(Experiment[Sizes]):
    """See the module; a point is a method on one kind of filters, over all repeats."""

    name = "marginals"
    title = "High-dimensional bags, one embedding per dimension"
    source = "001, §5.4"
    kind = Sizes
    axis: ClassVar[str] = "filters"  # the parameter that says which images
    shown: ClassVar[str] = "{filters} filters"
    images: ClassVar[Sequence[str]] = tuple(FILTERS)
    anew: ClassVar[str] = "classes"  # what a repeat draws
    beside: ClassVar[Sequence[str]] = BESIDE

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_classes} classes, {s.n_train} training and {s.n_test} test images each, "
            f"{s.n_points} points in {s.n_filters} dimensions, D = {s.n_features:,}; the paper has "
            "15 classes, 100 training and 199 test images each, 400 to 1,000 points in 512 "
            "dimensions, of photographs."
        )

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

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make a table of the accuracies of all methods per kind of filters."""
        return [self._table(results, kind) for kind in self.images]

    def draw(self, results: Sequence[Result]) -> None:
        """Draw how far methods lie from the best HDD, each with the better of its classifiers."""
        n = len(results[0].values["rbf"])
        text = f", means of {n} repeats ± one standard error" if n > 1 else ""
        dims = self.settings.n_filters
        title = f"Bags in {dims} dimensions: the lead over the best HDD on the same images{text}"
        width = 5.4 * len(self.images)
        with self.picture(f"{self.name}.png", title, len(self.images), width) as (_, axes):
            for axis, kind in zip(axes, self.images, strict=True):
                of_kind, shown = self._of_kind(results, kind)
                ways = [shares_of(of_kind, way) for way in WAYS]
                better = {one: max((of[one] for of in ways), key=np.mean) for one in ways[0]}
                best = max(HDD, key=lambda one: better[one].mean())
                leads = {one: lead(better[one], better[best]) for one in better}
                order = sorted((one for one in leads if one != best), key=lambda one: leads[one][0])
                means, errors = (100 * np.array([leads[one][k] for one in order]) for k in (0, 1))
                colors = [BLUE if one in HDD else ORANGE for one in order]
                axis.barh(order, means, xerr=errors, color=colors, capsize=3)
                axis.axvline(0, color=BLACK, linewidth=1)
                share = 100 * better[best].mean()
                finish(axis, f"accuracy − that of {best}, {share:.1f} %, in points", "",
                       f"{shown} (HDD blue)")  # fmt: skip

    def _of_kind(self, results: Sequence[Result], kind: str) -> tuple[list[Result], str]:
        """Return the results of one kind of images, and what people see of its name."""
        chosen = {self.axis: kind}
        return select(results, **chosen), self.shown.format(**chosen)

    def _table(self, results: Sequence[Result], kind: str) -> Table:
        of_kind, shown = self._of_kind(results, kind)
        found = {way: shares_of(of_kind, way) for way in WAYS}
        n_repeats = len(of_kind[0].values["rbf"])
        rows: list[list[Any]] = []
        for method in found["rbf"]:
            shares = [found[way][method] for way in WAYS]
            deviations = [float(each.std(ddof=1)) if n_repeats > 1 else None for each in shares]
            means = [float(each.mean()) for each in shares]
            rows.append(
                [method, *(v for both in zip(means, deviations, strict=True) for v in both)]
            )
        columns = ["", "linear", "standard deviation", "RBF", "standard deviation"]
        notes = [
            *remarks(self.name, kind),
            *(note for way, text in WAYS.items() for note in self._verdict(found[way], text)),
            *remarks(self.name, "both", meaning=MEANING, picked=PICKED),
        ]
        repeats = f"{n_repeats} repeat{'s' * (n_repeats > 1)} with other {self.anew}"
        return Table(f"{shown}: accuracy on test images, {repeats}", columns, rows, notes)

    def _verdict(self, shares: dict[str, NDArray[np.float64]], way: str) -> list[str]:
        """Return the lead of the best HDD over each other method, on the same images."""
        best = max(HDD, key=lambda method: shares[method].mean())
        leads = [f"{other} {lead_text(shares[best], shares[other], 3)}" for other in self.beside]
        claims = [(best, "≥", "MMD")]
        claims += [(one, "≫", other) for one in (best, "MMD") for other in ("L2", "Hist JS")]
        return remarks(
            "marginals", "verdict", way=way, best=best, accuracy=shares[best].mean(),
            leads=", ".join(leads), verdict=order_verdict(shares, claims, 3),
        )  # fmt: skip


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


def shares_of(results: Sequence[Result], way: str) -> dict[str, NDArray[np.float64]]:
    """Return accuracies of each method, shape (n_repeats,), "linear" or "rbf"."""
    return {r.params["method"]: np.array(r.values[way]) for r in results}
