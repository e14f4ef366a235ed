"""`BagDensities`: log density of held-out points given their bag, by networks and by series.

004, §8.4.5, shows samples of one family and prints no likelihood. Here the families are generated,
so that the truth's likelihood is known, and the Triple-Basis estimator and the kernel smoother are
fitted to the same bags: half of each is the input, the other half the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bagbasis import KernelSmoother, ProjectionEmbedding, TripleBasisRegressor
from bagbasis.core.arrays import Floats

from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.notes import remarks
from ..kit.plots import GREEN, bars
from ..kit.verdicts import SURE

METHODS = ("BagDensity", "Triple-Basis", "smoother", "truth")
LEAST = 1e-3  # density that a series is lifted to, in units of the uniform one
BOX = 4.0  # each way
TENSOR_DIMS = 3  # up to which a series has all products of cosines; beyond, those of norm up to 2


class Sizes(Scale):
    """See ``configs/experiments/bag-densities.yaml``."""

    dims: list[int]
    n_train: int
    n_test: int
    n_points: int
    n_steps: int
    n_hidden: int


class BagDensities(Experiment[Sizes]):
    """See the module; a point is a dimension."""

    name = "bag-densities"
    title = "Densities of bags that were never seen"
    source = "004, §8.4.5"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_train:,} training and {s.n_test:,} test bags of {s.n_points} points, "
            f"{s.n_steps:,} steps. The paper has point clouds of ShapeNet, and prints no number."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        fixed = {"n_train": s.n_train, "n_test": s.n_test, "n_points": s.n_points,
                 "n_steps": s.n_steps, "n_hidden": s.n_hidden, "seed": self.seed}  # fmt: skip
        return [Measure("", self._likelihoods, "d {d}", {"d": s.dims}, fixed)]

    def _likelihoods(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the mean log density of each test bag's other half, by method."""
        from bagbasis.neural import BagDensity

        rng, half = self.rng(p["d"]), p["n_points"] // 2
        family = Family(p["d"], p["n_train"] + p["n_test"], rng)
        bags = [family.draw(i, p["n_points"], rng) for i in range(family.n)]
        first, second = [b[:half] for b in bags], [b[half:] for b in bags]
        cut = p["n_train"]
        model = BagDensity(
            response=True, n_hidden=p["n_hidden"], n_pooled=p["n_hidden"], n_components=5,
            n_steps=p["n_steps"], validate_every=max(1, p["n_steps"] // 20), seed=self.seed,
        )  # fmt: skip
        model.fit(first[:cut], second[:cut], progress=progress)
        found: dict[str, list[float]] = {name: [] for name in METHODS}
        embedding = series_of(p["d"])
        series: dict[str, TripleBasisRegressor | KernelSmoother] = {
            "Triple-Basis": TripleBasisRegressor(embedding, response_embedding=embedding),
            "smoother": KernelSmoother(embedding, response_embedding=embedding),
        }
        for one in series.values():
            one.fit(first[:cut], responses=second[:cut])
        for i in range(cut, family.n):
            x = second[i]
            found["BagDensity"].append(float(model.log_density([first[i]], x).mean()))
            found["truth"].append(float(family.log_density(i, x).mean()))
            for name, one in series.items():
                values = one.predict_density([first[i]], at=x)[0] * (2 * BOX) ** p["d"]
                logs = np.log(np.maximum(values, LEAST))
                found[name].append(float(logs.mean() - p["d"] * np.log(2 * BOX)))
        return found

    def tables(self, results: Sequence[Result]) -> list[Table]:
        rows = []
        for r in results:
            for name in METHODS:
                values = np.array(r.values[name])
                error = values.std(ddof=1) / len(values) ** 0.5
                rows.append([r.params["d"], name, values.mean(), error])
        verdicts = [_verdict(r) for r in results]
        text = remarks(self.name, "all", verdicts="; ".join(verdicts))
        columns = ["d", "method", "mean log density", "± standard error"]
        return [Table("Held-out log density given the bag", columns, rows, text)]

    def draw(self, results: Sequence[Result]) -> None:
        with self.picture("likelihoods.png", "Held-out log density per coordinate", 1, 8.0) as (
            _,
            [axis],
        ):
            series = {
                name: [float(np.mean(r.values[name])) / r.params["d"] for r in results]
                for name in METHODS
            }
            colors = (BLUE, ORANGE, GREEN, GREY)
            bars(
                axis,
                [f"d = {r.params['d']}" for r in results],
                series,
                "log density / d",
                colors=colors,
            )


def _verdict(r: Result) -> str:
    """Return who leads in a dimension, with the lead over bags."""
    best = max(METHODS[1:3], key=lambda name: float(np.mean(r.values[name])))
    gaps = np.array(r.values[METHODS[0]]) - np.array(r.values[best])
    error = float(gaps.std(ddof=1) / len(gaps) ** 0.5)
    word = (
        "ahead of"
        if gaps.mean() > SURE * error
        else "behind"
        if gaps.mean() < -SURE * error
        else "level with"
    )
    return f"d = {r.params['d']}: BagDensity {word} the {best} ({gaps.mean():+.3f} ± {error:.3f})"


def series_of(d: int) -> ProjectionEmbedding:
    """Return the series of both bags and responses."""
    box = [(-BOX, BOX)] * d
    if d <= TENSOR_DIMS:
        return ProjectionEmbedding(n_per_dim=8 if d < TENSOR_DIMS else 6, box=box)
    return ProjectionEmbedding(max_norm=2, box=box)


class Family:
    """Mixtures of two normal laws whose distance and direction differ from bag to bag."""

    def __init__(self, d: int, n: int, rng: np.random.Generator) -> None:
        self.d, self.n = d, n
        directions = rng.standard_normal((n, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        self.offsets = directions * rng.uniform(0.5, 1.8, (n, 1))
        self.scales = rng.uniform(0.25, 0.6, (n, 1))

    def draw(self, i: int, m: int, rng: np.random.Generator) -> Floats:
        """Return m points of law i, within the box."""
        side = rng.choice([-1.0, 1.0], (m, 1))
        points = side * self.offsets[i] + self.scales[i] * rng.standard_normal((m, self.d))
        return np.clip(points, -BOX, BOX)

    def log_density(self, i: int, x: Floats) -> Floats:
        """Return log p of law i at points."""
        logs = [
            -0.5 * (((x - side * self.offsets[i]) / self.scales[i]) ** 2).sum(axis=1)
            for side in (-1, 1)
        ]
        constant = np.log(2) + self.d * np.log(self.scales[i, 0] * (2 * np.pi) ** 0.5)
        return np.logaddexp(*logs) - constant
