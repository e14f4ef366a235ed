"""`DependenceObjectives`: planted coordinates, subspaces and motions, found by dependence (003).

003 prints no numbers; here the truth is planted, so that it can be said how often it is found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bagbasis import Bags
from bagbasis.core.arrays import Floats
from bagbasis.execution.worker_threads import use_cores
from bagbasis.hypotheses import (
    IndependentSubspaces,
    derivative_norms,
    register_images,
    select_coordinates,
)

from ..data.planted import PLANTED, amari, mixed_sources, planted_rows, warped_pair
from ..kit import Callback, Curves, Experiment, GroupedBars, Images, Measure, Params, counted

_CRITERIA = ("mrmr", "hsic_lasso", "permutation")
LEAST_SQUARES = "derivative norms"  # of a kernel ridge regression, in addition to the criteria
_MEASURES = ("kcca", "hsic")
PIXELS = 64


class DependenceObjectives(Experiment):
    name = "dependence-objectives"
    title = "Dependence as an objective"
    source = "003"
    pictures = (
        Curves("selection.png", "share.*", measure="selection", x="n", panels="copies"),
        GroupedBars("subspaces.png", "amari", measure="subspaces", x="n", label="Amari index"),
        Images("registration.png", "images.*", measure="registration"),
    )

    def measures(self) -> list[Measure]:
        s, seed, copies = self.settings, {"seed": self.seed}, {"copies": [False, True]}
        return [
            Measure("selection", self._selection, "selection {n} copies {copies}",
                    {"n": s.n_rows, **copies}, {**self.picked("n_dims n_draws"), **seed}),
            Measure("subspaces", self._subspaces, "subspaces {n}", {"n": s.n_points},
                    {"sizes": s.subspaces, "n_mixtures": s.n_mixtures, **seed}),
            Measure("registration", self._registration, "registration {measured_by} {outliers}",
                    {"measured_by": _MEASURES, "outliers": s.outliers},
                    {"n_pairs": s.n_pairs, **seed}),
        ]  # fmt: skip

    def _selection(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the fraction of draws in which all planted coordinates are found, by criterion."""
        counts = dict.fromkeys((*_CRITERIA, LEAST_SQUARES), 0)
        stability = []
        with use_cores(1):
            for draw in counted(range(p["n_draws"]), progress):
                sizes, seed = (p["n"], p["n_dims"]), self.seed + draw
                x, y, planted = planted_rows(*sizes, seed=seed, copies=p["copies"])
                for criterion in _CRITERIA:
                    chosen = select_coordinates(x, y, k=PLANTED, criterion=criterion)
                    counts[criterion] += set(chosen.indices.tolist()) == set(planted)
                    if criterion == _CRITERIA[0]:
                        stability.append(float(chosen.stability[list(planted)].mean()))
                rows = Bags(x, np.arange(len(x) + 1))
                steep = derivative_norms(KernelRidge(x, y), rows, n_draws=1)
                counts[LEAST_SQUARES] += set(steep.selected(PLANTED).tolist()) == set(planted)
        shares = {name: count / p["n_draws"] for name, count in counts.items()}
        return {"share": shares, "stability": float(np.mean(stability))}

    def _subspaces(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the Amari index of each mixture, with given sizes and with sizes found."""
        known, free, last = [], [], None
        with use_cores(1):
            for draw in counted(range(p["n_mixtures"]), progress):
                x, mixing = mixed_sources(p["sizes"], p["n"], seed=self.seed + draw)
                model = IndependentSubspaces(p["sizes"]).fit(x)
                known.append(amari(model.unmixing_ @ mixing, p["sizes"]))
                sizes = IndependentSubspaces().fit(x).subspaces_
                free.append([len(group) for group in sizes] == sorted(p["sizes"], reverse=True))
                last = np.abs(model.unmixing_ @ mixing)
        assert last is not None
        return {
            "amari": known,
            "sizes_found": float(np.mean(free)),
            "product": (last / last.max()).round(3).tolist(),
        }

    def _registration(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return how far each registration is off, and the images of the first."""
        errors, first = [], {}
        with use_cores(1):
            for draw in counted(range(p["n_pairs"]), progress):
                fixed, moving, truth = warped_pair(PIXELS, p["outliers"], seed=self.seed + draw)
                registration = register_images(fixed, moving, measure=p["measured_by"])
                shift = np.abs(np.array(registration.shift) - truth["shift"]).max()
                angle = abs(registration.angle - truth["angle"])
                errors.append([float(shift), angle, abs(registration.scale / truth["scale"] - 1)])
                if draw == 0 and p["measured_by"] == _MEASURES[0]:
                    back = registration.apply(moving, fixed.shape)
                    images = {"reference": fixed, "image": moving, "brought back": back}
                    first = {k: np.nan_to_num(v, nan=-1)[::2, ::2].round(2).tolist()
                             for k, v in images.items()}  # fmt: skip
        return {"errors": errors, "images": first}


class KernelRidge:
    """A Gaussian kernel ridge regression of points, as a model of bags of one point."""

    def __init__(self, x: Floats, y: Floats) -> None:
        self.x, self.mean = x, y.mean()
        self.width = 1.5 * x.shape[1] ** 0.5
        gram = self._kernel(x)
        self.weights = np.linalg.solve(gram + 0.05 * np.eye(len(x)), y - self.mean)

    def _kernel(self, points: Floats) -> Floats:
        squares = ((points**2).sum(axis=1)[:, None] + (self.x**2).sum(axis=1)
                   - 2 * points @ self.x.T)  # fmt: skip
        return np.exp(-squares / (2 * self.width**2))

    def predict(self, X: Bags) -> Floats:
        return self._kernel(X.points.astype(np.float64)) @ self.weights + self.mean
