"""What a model has to beat: the best constant, and ridge regression on the means of the bags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ..bags import Bags, BagStore
from ..bags.sampling import RunSample
from ..bags.splits import holdout_split
from ..execution import Progress
from ..execution.costs import Cost
from ..regression.linear_model import FittedModel
from ..regression.outcomes import Outcome
from .judging import evaluate_together

# A mean has a few coordinates: more bags than these 20,480 change nothing of their ridge.
FITTED_SAMPLE = RunSample(64, 320)
PENALTIES = tuple(np.logspace(-4, 4, 17).tolist())  # of standardised means, chosen by GCV
SECONDS_PER_MEAN = 2e-9  # of a coordinate of a point


@dataclass(frozen=True)
class MeanFeatures:
    """The means of bags in R^d: what `MeansRidge` is linear in."""

    n_dims: int

    @property
    def n_features(self) -> int:
        """A mean has as many coordinates as a point."""
        return self.n_dims

    @property
    def cost(self) -> Cost:
        """What the means of bags take."""
        return Cost(SECONDS_PER_MEAN * self.n_features, 1e-7, 8 * self.n_features)


@dataclass(frozen=True)
class MeansRidge:
    """Ridge regression on the means of bags; a `ScoringModel`.

    Parameters
    ----------
    outcome_ : Outcome
        That of the model it is compared with.
    features_ : MeanFeatures
    ridge : Pipeline
        Fitted to means, shape (n_bags, d), and encoded labels, shape (n_bags, k).
    mean_coefficients_ : float64, shape (k,)
        The mean of these labels.
    """

    outcome_: Outcome
    features_: MeanFeatures
    ridge: Pipeline
    mean_coefficients_: NDArray[np.float64]

    @classmethod
    def fit(cls, store: BagStore, model: FittedModel) -> MeansRidge | None:
        """Fit a sample of the bags that the model was fitted to; None without two labels."""
        left_out = holdout_split(model.holdout_)
        bags = replace(model.outcome_.take_labels(store), left_out=left_out)
        means, rows = [], []
        for batch in bags.batches_of(FITTED_SAMPLE.ranges(0, store.n_bags)):
            if len(batch):
                means.append(means_of(batch.bags))
                rows.append(model.outcome_.encode(batch.labels)[0])
        if sum(map(len, rows)) < 2:
            return None
        ridge = make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
        labels = np.concatenate(rows)
        ridge.fit(np.concatenate(means), labels)
        return cls(model.outcome_, MeanFeatures(store.n_dims), ridge, labels.mean(axis=0))

    def decision_rows(self, bags: Bags) -> NDArray[np.float64]:
        """Return the raw rows that the outcome reads, shape (n_bags, k)."""
        if not len(bags):  # of a task that holds nothing out; scikit-learn takes no empty array
            return np.empty((0, len(self.mean_coefficients_)))
        rows: NDArray[np.float64] = self.ridge.predict(means_of(bags))
        return rows.reshape(len(bags), -1)


def means_of(bags: Bags) -> NDArray[np.float64]:
    """Return the mean of each bag, float64, shape (n_bags, d)."""
    sums = np.add.reduceat(bags.points, bags.offsets[:-1], axis=0, dtype=np.float64)
    return sums / bags.sizes[:, None]


def judge_held_out(
    model: FittedModel, store: BagStore, progress: Progress | None = None
) -> dict[str, Any] | None:
    """Judge a model on the bags that its fit kept out, beside what it has to beat.

    Parameters
    ----------
    model : fitted estimator
    store : BagStore
        That the model was fitted to.
    progress : callable (bags done, bags in all), optional

    Returns
    -------
    dict or None
        ``n``, ``measure``, ``error`` of the model, ``constant_error`` of the best constant for
        these bags, ``means_error`` of ridge regression on the bags' means. None where no labelled
        bag was kept out.
    """
    held_out = holdout_split(model.holdout_)
    ridge = None if held_out is None else MeansRidge.fit(store, model)
    if ridge is None:
        return None
    bags = replace(model.outcome_.take_labels(store), only=held_out)
    errors, of_means = evaluate_together([model, ridge], bags, progress)
    if not errors.n:
        return None
    return {
        "n": errors.n,
        "measure": errors.measure,
        "error": errors.error,
        "constant_error": errors.constant_error,
        "means_error": of_means.error,
    }
