"""What a model has to beat: the best constant, and ridge regression on the bags' means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ..arrays import Floats
from ..bags import Bags
from ..errors import DataError, StoreError
from ..execution import Cost, Progress
from ..labelled import Holdout, LabelledBags, SampleWeight, Weights
from ..models import DoubleBasis, Errors, ScoringModel, evaluate_together, model_of, take_subset
from ..outcomes import Outcome
from ..store import BagStore, RunSample

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
    outcome : Outcome
        That of the model it is compared with.
    features : MeanFeatures
    ridge : Pipeline
        Fitted to means, shape (n_bags, d), and encoded labels, shape (n_bags, k), in ``units``.
    mean_targets, variances : float64, shape (k,)
        Of these labels.
    units : float64, shape (k,)
        What their errors are divided by where a penalty is chosen.
    """

    outcome: Outcome
    features: MeanFeatures
    ridge: Pipeline
    mean_targets: Floats
    variances: Floats
    units: Floats

    @classmethod
    def fit(
        cls, bags: LabelledBags, outcome: Outcome, weights: Weights | None = None
    ) -> MeansRidge | None:
        """Fit a sample of labelled bags; None without two of them that weigh anything."""
        means, rows, each = [], [], []
        for batch in bags.batches_of(FITTED_SAMPLE.ranges(bags.start, bags.end)):
            if len(batch):
                means.append(batch.bags.means)
                rows.append(outcome.encode(batch.labels)[0])
                ones = np.ones(len(batch))
                each.append(ones if weights is None else weights.of(batch.index, rows[-1]))
        w = np.concatenate([np.empty(0), *each])
        if np.count_nonzero(w) < 2:
            return None
        ridge = make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
        labels = np.concatenate(rows).astype(np.float64)
        mean = np.average(labels, axis=0, weights=w)
        variances, units = np.average((labels - mean) ** 2, axis=0, weights=w), outcome.units()
        if units is None:
            units = np.where(variances > 0, variances, 1.0)
        given = {"ridgecv__sample_weight": w} if weights else {}
        ridge.fit(np.concatenate(means), labels / np.sqrt(units), **given)
        return cls(outcome, MeanFeatures(bags.n_dims), ridge, mean, variances, units)

    @property
    def score(self) -> float:
        """Squared error of predictions of bags that were left out one by one, in ``units``."""
        return -float(self.ridge[-1].best_score_)

    def decision_rows(self, bags: Bags) -> Floats:
        """Return the raw rows that the outcome reads, shape (n_bags, k)."""
        if not len(bags):  # of a task that holds nothing out; scikit-learn takes no empty array
            return np.empty((0, len(self.units)))
        rows: Floats = self.ridge.predict(bags.means)
        return rows.reshape(len(bags), -1) * np.sqrt(self.units)


def judge_fit(
    model: DoubleBasis, store: BagStore, progress: Progress | None = None
) -> dict[str, Any] | None:
    """Return how good a model is, and what it has to beat.

    It is judged on the bags that its fit held out. If it held none out, the score that chose its
    penalty is used; as the least of several scores, it is a little too good.

    Parameters
    ----------
    model : fitted estimator
    store : BagStore
        That the model was fitted to.
    progress : callable (bags done, bags in all), optional

    Returns
    -------
    dict or None
        ``n`` bags, ``measure`` in words, ``error`` of the model, ``constant_error`` of the best
        constant for these bags, ``means_error`` of ridge regression on the bags' means. None where
        no labelled bag was kept out and the penalty was given.
    """
    return judge_with_errors(model, store, progress)[0]


def judge_with_errors(
    model: DoubleBasis, store: BagStore, progress: Progress | None = None
) -> tuple[dict[str, Any] | None, list[Errors]]:
    """Return what `judge_fit` does, and the errors of both models on held-out bags, if any."""
    fitted = model_of(model)
    bags = fitted.outcome.take_labels(store)
    held_out = Holdout.of(fitted.holdout).split(bags)
    weights = None
    if fitted.weights is not None and fitted.weights["column"] is not None:
        weights = Weights.of_bags(store, fitted.weights["column"])
    ridge = MeansRidge.fit(replace(bags, left_out=held_out), fitted.outcome, weights)
    if ridge is None:
        return None, []
    if held_out is not None:
        judged = replace(bags, only=held_out)
        both: list[ScoringModel] = [fitted, ridge]
        errors, of_means = evaluate_together(both, judged, progress, weights)
        if errors.weight:
            found = {
                "n": errors.n,
                "measure": f"{errors.measure} on bags held out",
                "error": errors.error,
                "constant_error": errors.constant_error,
                "means_error": of_means.error,
            }
            return found, [replace(one, subset="holdout") for one in (errors, of_means)]
    constant = float((ridge.variances / ridge.units).mean())
    score = float(fitted.solution.scores.min())
    if not np.isfinite(score) or not constant:
        return None, []
    kind = "bags held out for the penalty" if model.alpha == "validation" else "cross-validation"
    found = {
        "n": fitted.report["n_bags_fitted"],
        "measure": f"error by {kind}, relative to the best constant's",
        "error": (score / constant) ** 0.5,
        "constant_error": 1.0,
        "means_error": (ridge.score / constant) ** 0.5,
    }
    return found, []


def judge_means(
    model: DoubleBasis,
    store: BagStore,
    subset: str,
    progress: Progress | None = None,
    sample_weight: SampleWeight = None,
) -> Errors | None:
    """Return the errors of ridge regression on means, on the bags that a model was evaluated on.

    It is fitted to the same bags as the model; None if they are no longer there.
    """
    fitted = model_of(model)
    try:
        training = BagStore.open(fitted.report["data_url"])
        bags = fitted.outcome.take_labels(training)
    except (DataError, StoreError):
        return None
    if training.n_dims != store.n_dims:
        return None
    held_out = Holdout.of(fitted.holdout).split(bags)
    ridge = MeansRidge.fit(replace(bags, left_out=held_out), fitted.outcome)
    if ridge is None:
        return None
    judged = take_subset(fitted.outcome.take_labels(store), fitted, subset)
    weights = Weights.of_bags(store, sample_weight)
    return evaluate_together([ridge], judged, progress, weights)[0]
