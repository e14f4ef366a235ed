"""`JSGram`: how well the embeddings approximate the kernel exp(−d² / 2σ²) of the true densities.

001, §5.1, Appendix A, Figure 6 and Table 2, and other distances. 2σ² is twice the median true d².
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import rel_entr

from bagbasis import Bags, HDDEmbedding, RandomFourierFeatures
from bagbasis.core.arrays import Floats
from bagbasis.densities import estimate_densities

from ..data.samples import truncated_mixtures
from ..kit import Callback, Experiment, GroupedBars, Measure, Params, counted

_DISTANCES = ("js", "hellinger", "tv", "chi2")
_FLOOR = 1e-3  # of densities whose logarithm is taken; the uniform density is 1


class JSGram(Experiment):
    name = "js-gram"
    title = "Kernel matrices of densities"
    source = "001, §5.1 and Appendix A"
    pictures = (GroupedBars("agreement.png", "*.r2", label="R²"),)

    def measures(self) -> list[Measure]:
        first = self.settings.n_seeds * self.seed
        over = {"data_seed": range(first, first + self.settings.n_seeds)}
        return [Measure("", self._agreements, "data set {data_seed}", over, vars(self.settings))]

    def _agreements(self, p: Params, progress: Callback) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for distance in counted(_DISTANCES, progress):
            true, estimates = self.kernels(distance, p["data_seed"])
            values[distance] = {name: agreement(true, each) for name, each in estimates.items()}
        return values

    def kernels(self, distance: str, data_seed: int) -> tuple[Floats, dict[str, Floats]]:
        """Return the true kernel of all pairs of different mixtures, and estimates by name."""
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
                n_features=s.n_features, scale=variance**0.5, orthogonal=orthogonal, seed=data_seed
            )
            z = features.fit_transform(embeddings)
            kernels[name] = (z @ z.T)[pairs]
        return np.exp(-true / (2 * variance)), kernels


def true_distances(distance: str, densities: Floats) -> Floats:
    """d²(p, q) = ∫ κ(p, q) of all pairs, in nats, shape (N, N); κ as in `hdd_measures`."""
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
    """Estimate JS of all pairs from means of log p̂ (001, Appendix A), shape (N, N).

    p̂ is the kernel estimate from a bag's second half, with the bandwidth of the leave-one-out
    score; the means are over first halves. (The sums that are printed lack 1 / n.)
    """
    halves = [np.array_split(np.asarray(bag), 2) for bag in bags]
    estimates = estimate_densities([half for _, half in halves], "kde", box=[(0, 1)] * 2)
    directed = np.empty((len(bags),) * 2)
    for i, (points, _) in enumerate(halves):
        values = np.maximum(estimates.at(points), _FLOOR)
        directed[i] = np.log(2 * values[i] / (values[i] + values)).mean(axis=1)
    return 0.5 * (directed + directed.T)


def agreement(true: Floats, estimate: Floats) -> dict[str, float]:
    """Return the squared correlation, as in the paper, and 1 − SSE/SST, for which scale matters."""
    residual = ((true - estimate) ** 2).sum() / ((true - true.mean()) ** 2).sum()
    return {
        "r2": float(np.corrcoef(true, estimate)[0, 1] ** 2),
        "determination": float(1 - residual),
    }
