"""`BagDensities`: log density of held-out points given their bag, by networks and by series.

004, §8.4.5, prints no likelihood; here families are generated, so that the truth's is known. Half
of each bag is the input, the other half the response.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bagbasis import KernelSmoother, ProjectionEmbedding, TripleBasisRegressor
from bagbasis.core.arrays import Floats

from ..kit import Callback, Experiment, GroupedBars, Measure, Params

_METHODS = ("BagDensity", "Triple-Basis", "smoother", "truth")
MIN_DENSITY = 1e-3  # density that a series is lifted to, in units of the uniform one
_BOX = 4.0  # each way
TENSOR_DIMS = 3  # up to which a series has all products of cosines; beyond, those of norm up to 2


class BagDensities(Experiment):
    name = "bag-densities"
    title = "Densities of bags that were never seen"
    source = "004, §8.4.5"
    pictures = (GroupedBars("likelihoods.png", _METHODS, x="d", label="log density"),)

    def measures(self) -> list[Measure]:
        over = {"d": self.settings.dims}
        return [Measure("", self._likelihoods, "d {d}", over, self.shared("dims"))]

    def _likelihoods(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the mean log density of each test bag's other half, by method."""
        from bagbasis.neural import BagDensity

        rng, half = self.rng(p["d"]), p["n_points"] // 2
        family = _Family(p["d"], p["n_train"] + p["n_test"], rng)
        bags = [family.draw(i, p["n_points"], rng) for i in range(family.n)]
        first, second = [b[:half] for b in bags], [b[half:] for b in bags]
        cut = p["n_train"]
        model = BagDensity(
            response=True, n_hidden=p["n_hidden"], n_pooled=p["n_hidden"], n_components=5,
            n_steps=p["n_steps"], validate_every=max(1, p["n_steps"] // 20), seed=self.seed,
        )  # fmt: skip
        model.fit(first[:cut], second[:cut], progress=progress)
        by_method: dict[str, list[float]] = {name: [] for name in _METHODS}
        embedding = _series_of(p["d"])
        series: dict[str, TripleBasisRegressor | KernelSmoother] = {
            "Triple-Basis": TripleBasisRegressor(embedding, response_embedding=embedding),
            "smoother": KernelSmoother(embedding, response_embedding=embedding),
        }
        for estimator in series.values():
            estimator.fit(first[:cut], responses=second[:cut])
        for i in range(cut, family.n):
            x = second[i]
            by_method["BagDensity"].append(float(model.log_density([first[i]], x).mean()))
            by_method["truth"].append(float(family.log_density(i, x).mean()))
            for name, estimator in series.items():
                values = estimator.predict_density([first[i]], at=x)[0] * (2 * _BOX) ** p["d"]
                logs = np.log(np.maximum(values, MIN_DENSITY))
                by_method[name].append(float(logs.mean() - p["d"] * np.log(2 * _BOX)))
        return by_method


def _series_of(d: int) -> ProjectionEmbedding:
    """Return the series of both bags and responses."""
    box = [(-_BOX, _BOX)] * d
    if d <= TENSOR_DIMS:
        return ProjectionEmbedding(n_per_dim=8 if d < TENSOR_DIMS else 6, box=box)
    return ProjectionEmbedding(max_norm=2, box=box)


class _Family:
    """Mixtures of two normal distributions whose distance and direction differ from bag to bag."""

    def __init__(self, d: int, n: int, rng: np.random.Generator) -> None:
        self.d, self.n = d, n
        directions = rng.standard_normal((n, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        self.offsets = directions * rng.uniform(0.5, 1.8, (n, 1))
        self.scales = rng.uniform(0.25, 0.6, (n, 1))

    def draw(self, i: int, m: int, rng: np.random.Generator) -> Floats:
        side = rng.choice([-1.0, 1.0], (m, 1))
        points = side * self.offsets[i] + self.scales[i] * rng.standard_normal((m, self.d))
        return np.clip(points, -_BOX, _BOX)

    def log_density(self, i: int, x: Floats) -> Floats:
        gaps = [(x - side * self.offsets[i]) / self.scales[i] for side in (-1, 1)]
        logs = [-0.5 * (gap**2).sum(axis=1) for gap in gaps]
        constant = np.log(2) + self.d * np.log(self.scales[i, 0] * (2 * np.pi) ** 0.5)
        return np.logaddexp(*logs) - constant
