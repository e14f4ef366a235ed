"""`GramPeer`: the full kernel matrix of an estimated divergence, as in papers before 001."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sklearn.kernel_ridge import KernelRidge

from bagbasis import Bags
from bagbasis.core.arrays import Floats
from bagbasis.densities import PSDRepair, divergence_matrix, kernel_matrix, median_scale


@dataclass(frozen=True)
class GramPeer:
    """Kernel ridge regression with exp(−KL / 2σ²), KL symmetrised, from k-NN distances.

    001, §5 ("KL"): the fourth neighbour, indefinite matrices projected to the cone of positive
    semidefinite ones. scikit-learn's `KernelRidge` on centred targets, of which there may be
    several columns (one a class).

    Attributes
    ----------
    multipliers : sequence of float
        σ over the median, to choose from with a tenth of the training bags.
    alphas : sequence of float
        λ, to choose from likewise.
    """

    multipliers: Sequence[float] = (0.06, 0.125, 0.25, 0.5, 1.0, 2.0)
    alphas: Sequence[float] = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
    n_neighbours: int = 4

    def predict(self, training: Bags, targets: Floats, test: Bags) -> tuple[Floats, dict[str, Any]]:
        """Predict for the test bags, and say what was chosen.

        Parameters
        ----------
        targets : float64, shape (N, t)

        Returns
        -------
        predictions : float64, shape (n_test, t)
        choice : dict
        """
        k = self.n_neighbours
        own = divergence_matrix(training, divergence="symmetric_kl", k=k)
        cross = divergence_matrix(test, training, divergence="symmetric_kl", k=k)
        return self.predict_from(own, cross, targets)

    def predict_from(
        self, own: Floats, cross: Floats, targets: Floats
    ) -> tuple[Floats, dict[str, Any]]:
        """Predict from squared distances of any kind, see `predict`.

        Parameters
        ----------
        own : float64, shape (N, N)
            Divergences of the training bags from each other.
        cross : float64, shape (n_test, N)
        targets : float64, shape (N, t)
        """
        median, n_fit = median_scale(own), len(targets) - len(targets) // 10
        few, held_out = slice(None, n_fit), slice(n_fit, None)
        scores = {
            (multiplier, alpha): _errors(
                own[few, few],
                own[held_out, few],
                targets[few],
                targets[held_out],
                multiplier * median,
                alpha,
            )
            for multiplier, alpha in product(self.multipliers, self.alphas)
        }
        multiplier, alpha = min(scores, key=lambda each: scores[each])
        predictions = _predictions(own, cross, targets, multiplier * median, alpha)
        return predictions, {"multiplier": multiplier, "alpha": alpha}


def _predictions(own: Floats, cross: Floats, targets: Floats, scale: float, alpha: float) -> Floats:
    repair = PSDRepair("clip")
    kernel = repair.fit_transform(kernel_matrix(own, scale))
    rows = repair.transform(kernel_matrix(cross, scale))
    mean = targets.mean(axis=0)
    model = KernelRidge(alpha=alpha, kernel="precomputed").fit(kernel, targets - mean)
    predictions: Floats = model.predict(rows) + mean
    return predictions


def _errors(
    own: Floats, cross: Floats, targets: Floats, truth: Floats, scale: float, alpha: float
) -> float:
    return float(((_predictions(own, cross, targets, scale, alpha) - truth) ** 2).mean())
