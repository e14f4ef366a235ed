"""`TransformationNetworks`: conditionals times transformations, and anomalies (004, ch. 8).

On the paper's two synthetic distributions, and on digits of one class among those of another.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score

from bagbasis.core.arrays import Floats

from ..kit import Callback, Experiment, GroupedBars, Measure, Params, counted

_SIGMA = 0.1  # of both; the paper does not print it
_STEPS = 32  # intervals of the step functions
_REACH = 4.0  # of the step functions' arguments, each way


def markovian(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Return points (n, d): amplitude, frequency and shift, then a noisy sine on a grid.

    y_i = y_1 sin(y_2 g_i + y_3) + ε_i for i > 3, ε_i a random walk; coordinates are shuffled.
    """
    y = np.empty((n, d))
    y[:, :3] = rng.standard_normal((n, 3))
    walk = np.cumsum(_SIGMA * rng.standard_normal((n, d - 3)), axis=1)
    grid = np.linspace(0, 1, d - 3)
    y[:, 3:] = y[:, :1] * np.sin(y[:, 1:2] * grid + y[:, 2:3]) + walk
    return y[:, np.random.default_rng(1).permutation(d)]


def star(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Return points (n, d): four normal centres, and step functions of sums of them with noise."""
    fixed = np.random.default_rng(2)
    weights = fixed.standard_normal((d - 4, 4)) / 2
    heights = fixed.standard_normal((d - 4, _STEPS))
    y = np.empty((n, d))
    y[:, :4] = rng.standard_normal((n, 4))
    at = (y[:, :4] @ weights.T + _REACH) / (2 * _REACH) * _STEPS
    interval = np.clip(at.astype(np.int64), 0, _STEPS - 1)
    means = heights[np.arange(d - 4)[None], interval]
    y[:, 4:] = means + _SIGMA * rng.standard_normal((n, d - 4))
    return y[:, np.random.default_rng(3).permutation(d)]


DISTRIBUTIONS = {"Markovian": markovian, "star": star}
N_COMPONENTS_PCA = 8
USUAL, STRANGE = (0, 1, 2, 3, 4), (8,)
_SHARE = 0.1


class TransformationNetworks(Experiment):
    name = "transformation-networks"
    title = "Transformation autoregressive networks"
    source = "004, ch. 8"
    pictures = (
        GroupedBars("densities.png", "log", measure="density", x="conditional",
                    by="transformation", panels="distribution"),
    )  # fmt: skip

    def measures(self) -> list[Measure]:
        s, trained = self.settings, {**self.picked("n_steps n_hidden"), "seed": self.seed}
        shared = {**trained, **self.picked("d n_train n_test n_components")}
        over = {"distribution": list(DISTRIBUTIONS), "transformation": s.transformations,
                "conditional": s.conditionals}  # fmt: skip
        label = "{distribution} {transformation} {conditional}"
        repeats = {**trained, "n_repeats": s.n_anomalies}
        return [
            Measure("density", self._density, label, over, shared),
            Measure("anomalies", self._anomalies, "anomalies", {}, repeats),
        ]

    def _density(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the mean log density of test points with its standard error, and a few samples."""
        from bagbasis.neural import TANDensity

        draw, sizes = DISTRIBUTIONS[p["distribution"]], (p["n_train"], p["n_test"])
        train, test = (draw(n, p["d"], self.rng(i)) for i, n in enumerate(sizes))
        name = p["transformation"].removeprefix("L ")
        model = TANDensity(
            conditional=p["conditional"], transformation=name,
            linear=p["transformation"] != name, n_components=p["n_components"],
            n_hidden=p["n_hidden"], n_steps=p["n_steps"], decay_steps=max(1, p["n_steps"] // 4),
            validate_every=max(1, p["n_steps"] // 10), seed=self.seed,
        )  # fmt: skip
        model.fit(train, progress=progress)
        logs = model.log_density(test)
        return {"log": float(logs.mean()), "error": float(logs.std(ddof=1) / len(logs) ** 0.5),
                "validation": -model.loss_}  # fmt: skip

    def _anomalies(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the average precision of densities and of a forest, over repeats."""
        from bagbasis.neural import TANDensity

        images, classes = load_digits(return_X_y=True)
        precisions: dict[str, list[float]] = defaultdict(list)
        for i in counted(range(p["n_repeats"]), progress):
            rng = self.rng(i, 5)
            usual = rng.permutation(np.flatnonzero(np.isin(classes, USUAL)))
            strange = rng.permutation(np.flatnonzero(np.isin(classes, STRANGE)))
            half = len(usual) // 2
            chosen = strange[: round(_SHARE * half)]
            test = np.concatenate([usual[half:], chosen])
            planted = np.isin(test, chosen)
            pca = PCA(N_COMPONENTS_PCA, random_state=0).fit(images[usual[:half]])
            x, y = (pca.transform(images[rows]) for rows in (usual[:half], test))
            model = TANDensity(
                n_hidden=p["n_hidden"], n_components=5, n_steps=p["n_steps"], batch_size=64,
                validate_every=max(1, p["n_steps"] // 20), seed=self.seed,
            ).fit(x)  # fmt: skip
            gaps = y - x.mean(axis=0)
            precision = np.linalg.inv(np.cov(x.T))
            scores = {
                "TAN": -model.score_samples(y),
                "isolation forest": -IsolationForest(random_state=0).fit(x).score_samples(y),
                "normal distribution": np.einsum("ni,ij,nj->n", gaps, precision, gaps),
            }
            for name, score in scores.items():
                precisions[name].append(float(average_precision_score(planted, score)))
        return {"precision": {name: float(np.mean(values)) for name, values in precisions.items()}}
