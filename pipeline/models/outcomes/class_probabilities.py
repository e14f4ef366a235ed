"""`ProbabilityMap`: probabilities of classes from the scores of a ridge on their indicators.

Scores estimate P(class | bag) by least squares, but some are negative, and with a large penalty
they are too even. The map turns them into probabilities in the same order, p ∝ f(s), with
f(s) = log(1 + exp(t s))^c. For large t, f is the power c of the positive part; for small t, it is
an exponential. t and c maximise the likelihood of bags that the model was not fitted to.

Few bags of a class are often separated from other classes without an error. The likelihood would
then be largest for probabilities of 0 and 1. Therefore half a bag of each class counts as a bag of
the other classes (a whole bag in Platt 1999). Half a bag that has all classes in equal parts is
added to the n bags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ...core.arrays import Floats
from ...core.saved import Saved
from ...data.store.sampling import spread_rows

_SHARPNESS = 2.0 ** np.arange(-1, 6)
_POWERS = 2.0 ** np.arange(-2, 6.25, 0.5)
MAX_CALIBRATION_ROWS = 2000  # two numbers are fitted
MISTAKEN_BAGS = 0.5  # bags of each class that count as bags of the others, at most half of them
ADDED_BAGS = 0.5  # bags added to every class alike


@dataclass(frozen=True)
class ProbabilityMap(Saved):
    """A map from scores to probabilities.

    Attributes
    ----------
    n_bags : float
        Number of bags from which the map is known.
    sharpness, power : float, optional
        Parameters t and c. None: the positive parts of the scores are divided by their sum.
    n_added : float, optional
        Number of added bags that have all classes in equal parts. None: one bag of each class.
    """

    OMITTED: ClassVar = ("n_added",)

    n_bags: float
    sharpness: float | None = None
    power: float | None = None
    n_added: float | None = None

    @classmethod
    def fitted(cls, scores: Floats, targets: Floats, weights: Floats | None = None) -> Self:
        """Return the map of largest likelihood.

        Parameters
        ----------
        scores, targets : float64, shape (n, K)
            Scores by models that were not fitted to these bags, and indicators of classes.
        weights : float64, shape (n,), optional
        """
        weights = np.ones(len(scores)) if weights is None else weights
        rows = np.flatnonzero((targets.sum(axis=1) > 0) & (weights > 0))
        n_bags = float(len(rows))
        rows = spread_rows(rows, MAX_CALIBRATION_ROWS)
        if not len(rows):
            return cls(n_bags)
        scores, targets = scores[rows], weights[rows, None] * _with_mistakes(targets[rows])

        def likelihood(made: ProbabilityMap) -> float:
            return float(np.vdot(targets, np.log(made(scores))))

        maps = [cls(n_bags, float(t), float(c), ADDED_BAGS) for c in _POWERS for t in _SHARPNESS]
        return max(maps, key=likelihood)

    def __call__(self, scores: Floats) -> Floats:
        """Return probabilities, shape (n, K): rows add up to 1, and no entry is 0 or 1."""
        shares: Floats
        k = scores.shape[1]
        if self.sharpness is None or self.power is None:
            shares = positive_shares(scores)
        else:
            logs = self.power * np.log(np.logaddexp(0.0, self.sharpness * scores) + _SMALLEST)
            shares = np.exp(logs - logs.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
        if k == 1:
            return shares
        n_added = k if self.n_added is None else self.n_added
        shares = (self.n_bags * shares + n_added / k) / (self.n_bags + n_added)
        return shares


_SMALLEST = 1e-300  # a number whose logarithm is finite


def _with_mistakes(targets: Floats) -> Floats:
    """Return indicators (n, K): `MISTAKEN_BAGS` bags of a class are divided among the others."""
    k = targets.shape[1]
    if k == 1:
        return targets
    shares = np.minimum(MISTAKEN_BAGS / np.maximum(targets.sum(axis=0), 1.0), 0.5)
    mistaken = (targets @ shares)[:, None]
    smoothed: Floats = targets * (1 - mistaken) + (1 - targets) * mistaken / (k - 1)
    return smoothed


def positive_shares(scores: Floats) -> Floats:
    """Return scores clipped at 0 and divided by their sum; equal values if no score is positive."""
    positive = np.maximum(scores, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    even = np.full_like(positive, 1.0 / positive.shape[1])
    shares: Floats = np.divide(positive, total, out=even, where=total > 0)
    return shares
