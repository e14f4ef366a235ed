"""`DependenceObjectives`: planted coordinates, subspaces and motions, found by dependence (003).

003 names the three uses of a dependence measure, and prints a picture of each and no number; here
the truth is planted, so that it can be said how often it is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bagbasis import Bags
from bagbasis.core.arrays import Floats
from bagbasis.execution.lanes import use_cores
from bagbasis.hypotheses import (
    IndependentSubspaces,
    derivative_norms,
    register_images,
    select_coordinates,
)

from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..data.mixed_sources import amari, mixed_sources
from ..data.planted import PLANTED, planted_rows
from ..data.warped import warped_pair
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import column, frame, select
from ..kit.notes import remarks
from ..kit.plots import GREEN, Curve, finish, lines

CRITERIA = ("mrmr", "hsic_lasso", "permutation")
LEAST_SQUARES = "derivative norms"  # of a kernel ridge regression, beside the criteria
MEASURES = ("kcca", "hsic")
PIXELS = 64
WITHIN = 0.5  # pixels and degrees, that a registration may be off
SEPARATED = 0.05  # Amari index below which subspaces count as found


class Sizes(Scale):
    """See ``configs/experiments/dependence-objectives.yaml``."""

    n_rows: list[int]
    n_dims: int
    n_draws: int
    subspaces: list[int]
    n_points: list[int]
    n_mixtures: int
    outliers: list[float]
    n_pairs: int


class DependenceObjectives(Experiment[Sizes]):
    """See the module; points are draws of planted rows, of mixtures and of pairs of images."""

    name = "dependence-objectives"
    title = "Dependence as an objective"
    source = "003"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_draws} draws of rows with {s.n_dims} coordinates, {s.n_mixtures} mixtures of "
            f"{len(s.subspaces)} subspaces, {s.n_pairs} pairs of {PIXELS} × {PIXELS} images. The "
            "paper has one picture of each and prints no number."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        copies = {"copies": [False, True]}
        return [
            Measure("selection", self._selection, "selection {n} copies {copies}",
                    {"n": s.n_rows, **copies}, {"n_dims": s.n_dims, "n_draws": s.n_draws,
                                               "seed": self.seed}),
            Measure("subspaces", self._subspaces, "subspaces {n}", {"n": s.n_points},
                    {"sizes": s.subspaces, "n_mixtures": s.n_mixtures, "seed": self.seed}),
            Measure("registration", self._registration, "registration {measured_by} {outliers}",
                    {"measured_by": MEASURES, "outliers": s.outliers},
                    {"n_pairs": s.n_pairs, "seed": self.seed}),
        ]  # fmt: skip

    def _selection(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the share of draws in which all planted coordinates are found, by criterion."""
        found = dict.fromkeys((*CRITERIA, LEAST_SQUARES), 0)
        stability = []
        with use_cores(1):
            for draw in range(p["n_draws"]):
                x, y, planted = planted_rows(
                    p["n"], p["n_dims"], seed=self.seed + draw, copies=p["copies"]
                )
                for criterion in CRITERIA:
                    chosen = select_coordinates(x, y, PLANTED, criterion=criterion)
                    found[criterion] += set(chosen.indices.tolist()) == set(planted)
                    if criterion == CRITERIA[0]:
                        stability.append(float(chosen.stability[list(planted)].mean()))
                steep = derivative_norms(KernelRidge(x, y), rows_as_bags(x), n_draws=1)
                found[LEAST_SQUARES] += set(steep.selected(PLANTED).tolist()) == set(planted)
                progress(draw + 1, p["n_draws"])
        shares = {name: count / p["n_draws"] for name, count in found.items()}
        return {"share": shares, "stability": float(np.mean(stability))}

    def _subspaces(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the Amari index of each mixture, with given sizes and with sizes found."""
        known, free, last = [], [], None
        with use_cores(1):
            for draw in range(p["n_mixtures"]):
                x, mixing = mixed_sources(p["sizes"], p["n"], seed=self.seed + draw)
                model = IndependentSubspaces(p["sizes"]).fit(x)
                known.append(amari(model.unmixing_ @ mixing, p["sizes"]))
                sizes = IndependentSubspaces().fit(x).subspaces_
                free.append([len(group) for group in sizes] == sorted(p["sizes"], reverse=True))
                last = np.abs(model.unmixing_ @ mixing)
                progress(draw + 1, p["n_mixtures"])
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
            for draw in range(p["n_pairs"]):
                fixed, moving, truth = warped_pair(PIXELS, p["outliers"], seed=self.seed + draw)
                found = register_images(fixed, moving, measure=p["measured_by"])
                shift = np.abs(np.array(found.shift) - truth["shift"]).max()
                errors.append([
                    float(shift),
                    abs(found.angle - truth["angle"]),
                    abs(found.scale / truth["scale"] - 1),
                ])  # fmt: skip
                if draw == 0 and p["measured_by"] == MEASURES[0]:
                    back = found.apply(moving, fixed.shape)
                    images = {"reference": fixed, "image": moving, "brought back": back}
                    first = {k: np.nan_to_num(v, nan=-1)[::2, ::2].round(2).tolist()
                             for k, v in images.items()}  # fmt: skip
                progress(draw + 1, p["n_pairs"])
        return {"errors": errors, "images": first}

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [self._selected(results), self._separated(results), self._registered(results)]

    def _selected(self, results: Sequence[Result]) -> Table:
        rows = [
            [r.params["n"], "yes" if r.params["copies"] else "no",
             *(r.values["share"][name] for name in (*CRITERIA, LEAST_SQUARES)),
             r.values["stability"]]
            for r in select(results, measure="selection")
        ]  # fmt: skip
        columns = ["rows", "noisy copies", *CRITERIA, LEAST_SQUARES, "stability of mrmr"]
        text = remarks(self.name, "selection", k=PLANTED, n_dims=self.settings.n_dims)
        title = f"Share of draws in which all {PLANTED} planted coordinates are found"
        return Table(title, columns, rows, text)

    def _separated(self, results: Sequence[Result]) -> Table:
        rows = []
        for r in select(results, measure="subspaces"):
            index = np.array(r.values["amari"])
            rows.append([r.params["n"], float(np.median(index)), float(index.max()),
                         float((index < SEPARATED).mean()), r.values["sizes_found"]])  # fmt: skip
        columns = ["points", "Amari index, median", "largest", f"share below {SEPARATED:g}",
                   "sizes found by links"]  # fmt: skip
        sizes = ", ".join(map(str, self.settings.subspaces))
        return Table(
            "Independent subspaces", columns, rows, remarks(self.name, "subspaces", sizes=sizes)
        )

    def _registered(self, results: Sequence[Result]) -> Table:
        rows = []
        for r in select(results, measure="registration"):
            errors = np.array(r.values["errors"])
            rows.append([r.params["measured_by"], r.params["outliers"],
                         *np.median(errors, axis=0).tolist(),
                         float((errors[:, :2] < WITHIN).all(axis=1).mean())])  # fmt: skip
        columns = ["measure", "outliers", "shift, pixels", "angle, degrees", "scale, relative",
                   f"within {WITHIN:g} pixels and degrees"]  # fmt: skip
        return Table(
            "Registration: median errors", columns, rows, remarks(self.name, "registration")
        )

    def draw(self, results: Sequence[Result]) -> None:
        colors = (BLUE, ORANGE, GREY, GREEN)
        with self.picture("selection.png", "Planted coordinates found", 2, 9.0, sharey=True) as (
            _, axes,
        ):  # fmt: skip
            for axis, copies in zip(axes, (False, True), strict=True):
                found = frame(results, measure="selection", copies=copies)
                n = column(found, "n")
                named = zip((*CRITERIA, LEAST_SQUARES), colors, strict=True)
                curves = [
                    Curve(n, column(found, f"share.{name}"), name, color) for name, color in named
                ]
                title = "with noisy copies" if copies else "without copies"
                lines(axis, curves, "rows", "share of draws", title=title, legend={})
        last = select(results, measure="subspaces")[-1]
        with self.picture("subspaces.png", "|W A| of the last mixture", 1, 5.0) as (_, [axis]):
            axis.imshow(last.values["product"], cmap="Blues", vmin=0, vmax=1)
            finish(axis, "source", "component")
        worst = select(results, measure="registration", measured_by=MEASURES[0])[-1]
        images = worst.values["images"]
        title = f"Registration with {worst.params['outliers']:.0%} outliers"
        with self.picture("registration.png", title, len(images), 9.0, 3.6) as (_, axes):
            for axis, (name, image) in zip(axes, images.items(), strict=True):
                axis.imshow(image, cmap="gray")
                axis.set_axis_off()
                axis.set_title(name, fontsize=10)


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
        """Return a number per bag."""
        return self._kernel(X.points.astype(np.float64)) @ self.weights + self.mean


def rows_as_bags(x: Floats) -> Bags:
    """Return a bag of one point per row."""
    return Bags(x, np.arange(len(x) + 1))
