"""Baselines of a model: the best constant, ridge on the means of bags, and a random forest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ...core import Instance, checked, documented
from ...core.arrays import Floats
from ...core.errors import DataError, StoreError
from ...data.labelled.holdout import Holdout
from ...data.labelled.inputs import BagsLike, LabelsLike
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.weights import SampleWeight, Weights
from ...data.store.store import BagStore
from ...execution.progress import Progress
from ..bag_summaries import Summaries
from ..base import DoubleBasis
from ..errors import Errors
from ..fit_summary import chosen_of, linear_of
from ..fitted_model import (
    FittedEstimator,
    JudgedModel,
    ScoringModel,
    is_fitted_to,
    model_of,
    take_subset,
)
from ..judging import evaluate, evaluate_together, labelled_for
from ..outcomes.base import Outcome
from ..outcomes.classes import Classes
from ..verdict import HELD_OUT, RELATIVE, optimism_of, root_spread
from .forest import MAX_LABEL_COLUMNS, ForestFeatures, MomentsForest
from .summaries import MeanFeatures, Rival, SampledRows, sample_rows

# For standardised means; GCV chooses one.
BASELINE_PENALTIES = tuple(np.logspace(-4, 4, 17).tolist())


@dataclass(frozen=True)
class MeansRidge(Rival):
    """Ridge regression on the means of bags.

    ``model`` has learnt from the means, shape (n_bags, d). ``variances`` are those of the encoded
    labels, float64, shape (k,).
    """

    variances: Floats

    @classmethod
    def of_sample(
        cls, sample: SampledRows, outcome: Outcome, n_dims: int, is_weighed: bool
    ) -> Self:
        """Return ridge regression fitted to the summaries "means" of a sample."""
        ridge = make_pipeline(StandardScaler(), RidgeCV(BASELINE_PENALTIES))
        mean, variances, units = sample.moments_and_units(outcome)
        options = {"ridgecv__sample_weight": sample.weights} if is_weighed else {}
        ridge.fit(sample.summaries["means"], sample.labels / np.sqrt(units), **options)
        return cls(outcome, MeanFeatures(n_dims), ridge, mean, units, variances)

    @property
    def score(self) -> float:
        """Squared error of predictions of bags that were left out one by one, in ``units``."""
        return -float(self.model[-1].best_score_)


@documented
@checked
def judge_fit(
    model: Annotated[DoubleBasis, Instance(example="DoubleBasisRegressor()")],
    X: Annotated[BagStore, Instance()],
    *,
    progress: Progress | None = None,
    forest: bool = False,
) -> dict[str, Any] | None:
    """Return the error of a model next to the errors of simple baselines.

    The model is judged on the bags that its fit held out. If the fit held out no bags, the score
    that chose the penalty is used. As the least of several scores, it is slightly optimistic.

    Parameters
    ----------
    model : fitted estimator
    X : BagStore
        Store that the model was fitted to.
    progress : callable (bags done, bags in all)
    forest
        Whether to compare the model on held-out bags with a random forest, too. The forest has 100
        trees on the means, covariances, minima, maxima and sizes of at most 20,480 bags. With many
        coordinates it uses fewer bags, so that it takes at most about half a minute of one core.

    Returns
    -------
    dict or None
        ``n``, the number of bags; ``measure`` in words; ``error`` of the model and its
        ``standard_error``, if known from held-out bags or from the folds that chose the embedding;
        ``constant_error`` of the best constant for these bags; ``means_error`` of ridge regression
        on the means of bags; and with ``forest`` also ``forest_error`` and ``forest_bags``, the
        number of bags that the forest was fitted to. None if no labelled bag was held out and the
        penalty was given.

    See Also
    --------
    bagbasis.evaluate : Errors on labelled bags.
    bagbasis.cross_val_score : Scores by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, DoubleBasisRegressor
    >>> from bagbasis.models import judge_fit
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['y']).append(X, y)
    >>> model = DoubleBasisRegressor('moments').fit(store, holdout=0.25)
    >>> sorted(judge_fit(model, store))
    ['constant_error', 'error', 'means_error', 'measure', 'n', 'standard_error']
    """
    return judge_with_errors(model, X, progress, forest=forest)[0]


def judge_with_errors(
    model: DoubleBasis, store: BagStore, progress: Progress | None = None, *, forest: bool = False
) -> tuple[dict[str, Any] | None, list[Errors]]:
    """Return the result of `judge_fit`, and errors of model, means and forest on held-out bags."""
    fitted, weights = model_of(model), None
    if fitted.weights is not None and fitted.weights["column"] is not None:
        weights = Weights.of_bags(store, fitted.weights["column"])
    bags = fitted.outcome.take_labels(store)
    return judge_labelled(model, bags, weights, progress, forest=forest)


def judge_labelled(
    model: DoubleBasis,
    bags: LabelledBags,
    weights: Weights | None,
    progress: Progress | None = None,
    *,
    forest: bool = False,
) -> tuple[dict[str, Any] | None, list[Errors]]:
    """Return the result of `judge_with_errors` for labelled bags of any kind and their weights."""
    fitted = model_of(model)
    comparison, errors, ridge = _judge_held_out(fitted, bags, weights, progress, forest)
    if comparison is not None or ridge is None:
        return comparison, errors
    constant = float((ridge.variances / ridge.units).mean())
    score = float(fitted.solution.scores.min())
    heads = fitted.report.get("head", {})
    if "errors" in heads:  # by folds
        score = constant * heads["errors"][heads["head"]]
    if not np.isfinite(score) or not constant:
        return None, []
    is_of_classes = isinstance(fitted.outcome, Classes)
    what = "error of the classes' probabilities" if is_of_classes else "error"
    kind = "bags held out for the penalty" if model.alpha == "validation" else "cross-validation"
    n_fitted = fitted.report["n_bags_fitted"]
    relative, means = score / constant + optimism_of(fitted.report), ridge.score / constant
    choice, by_folds = fitted.report.get("choice", {}), model.alpha != "validation"
    if by_folds and "errors" not in heads and choice.get("n_bags") == n_fitted and choice["tried"]:
        # of the same bags and folds: what `summary` shows
        relative = chosen_of(fitted.report)["error"]
        linear = linear_of(fitted.report)
        means = means if linear is None else linear["error"]
    comparison = {
        "n": n_fitted,
        "measure": f"{what} by {kind}{RELATIVE}",
        "error": relative**0.5,
        "constant_error": 1.0,
        "means_error": means**0.5,
    }
    if by_folds and choice.get("tried"):  # by the same folds
        spread = root_spread(comparison["error"], choice["tried"][0]["standard_error"])
        comparison |= {} if spread is None else {"standard_error": spread}
    return comparison, []


def judge_given(
    model: DoubleBasis, X: BagsLike | LabelledBags, y: LabelsLike = None
) -> tuple[LabelledBags, dict[str, Any] | None, list[Errors | None]]:
    """Return labelled bags, the result of `judge_labelled` for the bags of the fit, and the errors.

    There are no baselines for bags of other data, and after a fit without a holdout and without
    folds: then only the errors of the model on all bags are returned. Errors on the bags fitted
    have the subset "train".
    """
    bags = labelled_for(model.model_, X, y)
    is_fitted = is_fitted_to(model.model_, bags)
    if is_fitted:
        judged, errors = judge_labelled(model, bags, None, forest=True)
        if judged is not None:
            return bags, judged, [*errors]
    measured = evaluate(model, X, y)
    if is_fitted and measured.subset == "all":  # nothing was held out
        measured = replace(measured, subset="train")
    return bags, None, [measured, None]


def judge_held_out(
    model: FittedEstimator[JudgedModel], store: BagStore, progress: Progress | None = None
) -> tuple[dict[str, Any] | None, list[Errors]]:
    """Return the result of `judge_with_errors` for the held-out bags; (None, []) if there are none.

    The model can be of any kind, also a network.
    """
    fitted = model_of(model)
    bags = fitted.outcome.take_labels(store)
    comparison, errors, _ = _judge_held_out(fitted, bags, None, progress, False)
    return comparison, errors


def _judge_held_out(
    fitted: JudgedModel,
    bags: LabelledBags,
    weights: Weights | None,
    progress: Progress | None,
    forest: bool,
) -> tuple[dict[str, Any] | None, list[Errors], MeansRidge | None]:
    """Return the result of `judge_held_out`, and the ridge on means; None with too few labels."""
    held_out = Holdout.of(fitted.holdout).split(bags)
    fitted_to, has_forest = replace(bags, left_out=held_out), forest and held_out is not None
    rivals = fit_rivals(fitted_to, fitted.outcome, weights, forest=has_forest)
    if rivals is None:
        return None, [], None
    ridge, trees = rivals
    if held_out is not None:
        models: list[ScoringModel] = [fitted, ridge, *([] if trees is None else [trees])]
        judged = replace(bags, only=held_out)
        errors, of_means, *of_forest = evaluate_together(models, judged, progress, weights)
        if errors.weight:
            comparison = {
                "n": errors.n,
                "measure": f"{errors.measure}{HELD_OUT}",
                "error": errors.error,
                "constant_error": errors.constant_error,
                "means_error": of_means.error,
            }
            if errors.standard_error is not None:
                comparison["standard_error"] = errors.standard_error
            if trees is not None:
                comparison |= {"forest_error": of_forest[0].error, "forest_bags": trees.n_bags}
            every = [replace(error, subset="holdout") for error in (errors, of_means, *of_forest)]
            return comparison, every, ridge
    return None, [], ridge


def judge_rivals(
    model: FittedEstimator[JudgedModel],
    store: BagStore,
    subset: str,
    progress: Progress | None = None,
    sample_weight: SampleWeight = None,
) -> tuple[Errors | None, Errors | None]:
    """Return the errors of ridge regression on means, and of a forest, on the bags evaluated.

    Both baselines are fitted to the same bags as the model. An error is None if these bags are no
    longer there; for a forest, also with many targets.
    """
    fitted = model_of(model)
    try:
        is_fitted = is_fitted_to(fitted, store)  # or a copy, where the first one may be gone
        training = store if is_fitted else BagStore.open(fitted.report["data_url"])
        bags = fitted.outcome.take_labels(training)
    except (DataError, StoreError):
        return None, None
    if training.n_dims != store.n_dims:
        return None, None
    held_out = Holdout.of(fitted.holdout).split(bags)
    rivals = fit_rivals(replace(bags, left_out=held_out), fitted.outcome, None)
    if rivals is None:
        return None, None
    judged = take_subset(fitted.outcome.take_labels(store), fitted, subset)
    weights = Weights.of_bags(store, sample_weight)
    models = [rival for rival in rivals if rival is not None]
    means, *forest = evaluate_together(models, judged, progress, weights)
    return means, forest[0] if forest else None


def fit_rivals(
    bags: LabelledBags, outcome: Outcome, weights: Weights | None, *, forest: bool = True
) -> tuple[MeansRidge, MomentsForest | None] | None:
    """Fit ridge regression on means and, with at most `MAX_LABEL_COLUMNS` columns, a forest.

    Both are fitted to a sample of the bags. The result is None if too few bags are labelled.
    """
    has_forest = forest and outcome.n_targets <= MAX_LABEL_COLUMNS
    kinds: dict[str, Summaries] = {"means": MeanFeatures(bags.n_dims)}
    if has_forest:
        kinds["moments"] = ForestFeatures(bags.n_dims)
    sample = sample_rows(bags, outcome, kinds, weights)
    if sample is None:
        return None
    sampled = sample, outcome, bags.n_dims, weights is not None
    ridge = MeansRidge.of_sample(*sampled)
    return ridge, MomentsForest.fit(*sampled) if has_forest else None
