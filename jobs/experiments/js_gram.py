"""`JSGram`: how well the embeddings give the kernel exp(−d² / 2σ²) of the true densities.

001, §5.1, Appendix A, Figure 6 and Table 2, which have the Jensen-Shannon divergence; here the
other distances too. 2σ² is twice the median of the true d².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.special import rel_entr

from bagbasis import Bags, HDDEmbedding, RandomFourierFeatures
from bagbasis.densities import estimate_densities

from ..terminal import Callback
from .data.truncated_mixtures import truncated_mixtures
from .experiment import Experiment, Point, Result, Table
from .js_gram_report import draw_agreement, draw_scatter, gram_table

Floats = NDArray[np.float64]

DISTANCES = ("js", "hellinger", "tv", "chi2")
FLOOR = 1e-3  # of densities whose logarithm is taken; the uniform density is 1


@dataclass(frozen=True)
class Settings:
    """A scale: how many data sets, mixtures in each, points a bag, D, and the distances for which
    orthogonal frequencies are tried too (of TV's 4,000 coefficients they take longest)."""

    n_seeds: int
    n_mixtures: int
    n_points: int
    n_features: int
    orthogonal: tuple[str, ...]


SETTINGS = {
    "small": Settings(1, 50, 2500, 7000, ("js", "hellinger")),
    "paper": Settings(10, 50, 2500, 7000, DISTANCES),
}


class JSGram(Experiment[Settings]):
    """See the module; a point is a data set of its own seed."""

    name = "js-gram"
    title = "Kernel matrices of densities"
    source = "001, §5.1 and Appendix A"
    scales = SETTINGS

    def __init__(self, scale: str, seed: int, out_dir: Path) -> None:
        super().__init__(scale, seed, out_dir)
        self._drawn: tuple[int, Floats, dict[str, Floats]] | None = None

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_seeds} data sets of {s.n_mixtures} mixtures, {s.n_points:,} points each, "
            f"D = {s.n_features:,}: the paper's size, which has one data set."
        )

    def points(self) -> list[Point]:
        first = self.settings.n_seeds * self.seed
        return [
            Point(f"data set {seed}", {**vars(self.settings), "data_seed": seed})
            for seed in range(first, first + self.settings.n_seeds)
        ]

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for done, distance in enumerate(DISTANCES):
            true, estimates = self.kernels(distance, point.params["data_seed"])
            if distance == "js":
                self._drawn = point.params["data_seed"], true, estimates
            values[distance] = {
                name: agreement(true, estimate) for name, estimate in estimates.items()
            }
            progress(done + 1, len(DISTANCES))
        return values

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [gram_table(results)]

    def draw(self, results: Sequence[Result]) -> list[Path]:
        last = results[-1]
        seed = last.point.params["data_seed"]
        if self._drawn is None or self._drawn[0] != seed:
            self._drawn = seed, *self.kernels("js", seed)
        return [
            draw_scatter(self.out_dir / "scatter.png", *self._drawn[1:], last),
            draw_agreement(self.out_dir / "agreement.png", results),
        ]

    def kernels(self, distance: str, data_seed: int) -> tuple[Floats, dict[str, Floats]]:
        """The true kernel of all pairs of different mixtures, and estimates of it by name.

        All of shape (N (N − 1) / 2,). The estimate from entropies is that of JS alone.
        """
        s = self.settings
        bags, densities = truncated_mixtures(data_seed, s.n_mixtures, s.n_points)
        pairs = np.triu_indices(s.n_mixtures, 1)
        true = true_distances(distance, densities)[pairs]
        variance = float(np.median(true))
        embeddings = HDDEmbedding(distance, dtype="float64").fit_transform(bags)
        squares = {"coefficients": pdist(embeddings, "sqeuclidean")}
        if distance == "js":
            squares = {"entropies": entropy_divergences(bags)[pairs], **squares}
        kernels = {name: np.exp(-square / (2 * variance)) for name, square in squares.items()}
        ways = {"random features": False}
        if distance in s.orthogonal:
            ways["orthogonal features"] = True
        for name, orthogonal in ways.items():
            features = RandomFourierFeatures(
                s.n_features, scale=variance**0.5, orthogonal=orthogonal, seed=data_seed
            )
            z = features.fit_transform(embeddings)
            kernels[name] = (z @ z.T)[pairs]
        return np.exp(-true / (2 * variance)), kernels


def true_distances(distance: str, densities: Floats) -> Floats:
    """d²(p, q) = ∫ κ(p, q) of all pairs, in nats, shape (N, N); κ as in `hdd_measures`.

    Parameters
    ----------
    distance : {"js", "hellinger", "tv", "chi2"}
    densities : shape (N, m)
        Above 0, on midpoints of the unit square.
    """
    squares = np.empty((len(densities),) * 2)
    for i, p in enumerate(densities):
        if distance == "js":
            middle = 0.5 * (p + densities)
            values = 0.5 * (rel_entr(p, middle) + rel_entr(densities, middle))
        elif distance == "hellinger":
            values = 0.5 * (np.sqrt(p) - np.sqrt(densities)) ** 2
        elif distance == "tv":
            values = np.abs(p - densities)
        else:
            values = (p - densities) ** 2 / (p + densities)
        squares[i] = values.mean(axis=1)
    return squares


def entropy_divergences(bags: Bags) -> Floats:
    """JS of all pairs from means of log p̂ (001, Appendix A), shape (N, N).

    p̂ is the kernel estimate from a bag's second half, with the bandwidth of the leave-one-out
    score; the means are over first halves. (The sums that are printed lack 1 / n.)
    """
    halves = [np.array_split(np.asarray(bag), 2) for bag in bags]
    estimates = estimate_densities([half for _, half in halves], "kde", box=[(0, 1)] * 2)
    directed = np.empty((len(bags),) * 2)
    for i, (points, _) in enumerate(halves):
        values = np.maximum(estimates.at(points), FLOOR)
        directed[i] = np.log(2 * values[i] / (values[i] + values)).mean(axis=1)
    return 0.5 * (directed + directed.T)


def agreement(true: Floats, estimate: Floats) -> dict[str, float]:
    """R², the squared correlation, which is the paper's figure, and 1 − SSE/SST, which a wrong
    scale lowers too."""
    residual = ((true - estimate) ** 2).sum() / ((true - true.mean()) ** 2).sum()
    return {
        "r2": float(np.corrcoef(true, estimate)[0, 1] ** 2),
        "determination": float(1 - residual),
    }
