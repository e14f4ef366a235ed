"""`evaluate`: the errors of models on labelled bags, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import numpy as np

from ..bags import Bags, BagStore
from ..bags.labelled import Batch, LabelledBags
from ..bases import project
from ..embeddings import ProjectionSpec
from ..errors import DataError
from ..execution import Progress
from ..execution.costs import SECONDS_PER_PRODUCT, Cost
from ..execution.passes import Reduction, run_pass
from ..parameters import Function, Instance, None_, Text, checked
from ..regression.fitted_model import (
    FittedEstimator,
    JudgedModel,
    ScoringModel,
    mean_of,
    model_of,
)
from ..regression.outcomes import Classes, Densities, Outcome, Reals
from ..regression.stored_predictions import check_predictable, natural_subsets, take_subset
from ..regression.weights import SampleWeight, Weights
from ..units import in_units
from .errors import (
    SAMPLED_TARGETS,
    ClassDetails,
    DensityDetails,
    Details,
    Errors,
    RealDetails,
    Rows,
    Sample,
    exponents_of,
)

T = TypeVar("T")

TOO_LARGE = "what is predicted is too large beside the labels, or these for numbers: divide them"
ROWS_PER_BLOCK = 2048  # bags whose features, coefficients and encoded labels are held at a time


@checked(
    data=Instance("BagStore") | Instance("LabelledBags"),
    subset=Text | None_,
    progress=Function | None_,
)
def evaluate(
    model: FittedEstimator[JudgedModel],
    data: BagStore | LabelledBags,
    *,
    subset: str | None = None,
    sample_weight: SampleWeight = None,
    progress: Progress | None = None,
) -> Errors:
    """Return the errors of a model on labelled bags, on the open cluster or in this process.

    Parameters
    ----------
    model : fitted estimator
    data : BagStore or LabelledBags
        A store with the targets that the model was fitted to, or with responses.
    subset : {"all", "holdout", "train"}, optional
        Bags that the model's ``holdout`` left out of fitting, or the others. None: those held out
        of the store that the model was fitted to, if there are any; all bags of any other.
    sample_weight : str or array, shape (n_bags,), optional
        A column of the store, or one number ≥ 0 per bag: how much it counts in every mean.
    progress : callable (bags done, bags in all), optional

    Raises
    ------
    DataError
        The store lacks a target of the model, no bag of the subset is labelled, or weights that
        are missing, negative or all 0.
    ModelError
        Bags of another dimension, or subset="holdout" where the model held nothing out.
    """
    fitted = model_of(model)
    check_predictable(fitted, data, subset or "all")
    bags = fitted.outcome.take_labels(data) if isinstance(data, BagStore) else data
    weights = Weights.of_bags(bags.data, sample_weight)

    def judge(chosen: LabelledBags) -> Errors | None:
        errors = evaluate_together([fitted], chosen, progress, weights)[0]
        if errors.n and not errors.weight:
            raise DataError(f"{bags.url or 'bags in memory'}: the weights of all bags are 0")
        return errors if errors.n else None

    name, errors = find_subset(fitted, bags, subset, judge)
    return replace(errors, subset=name)


def find_subset(
    model: JudgedModel,
    bags: LabelledBags,
    subset: str | None,
    use: Callable[[LabelledBags], T | None],
) -> tuple[str, T]:
    """Return the given subset, or the one that is fair to a model, and ``use`` of its bags.

    Raises
    ------
    DataError
        Nothing, for no bag is labelled.
    """
    subsets = (subset,) if subset else natural_subsets(model, bags)
    for name in subsets if bags.n_bags else ():
        found = use(take_subset(bags, model, name))
        if found is not None:
            return name, found
    where = bags.url or "bags in memory"
    raise DataError(f"{where}: no labelled bag among the {subsets[-1]} bags; nothing to measure")


def evaluate_together(
    models: Sequence[ScoringModel],
    bags: LabelledBags,
    progress: Progress | None = None,
    weights: Weights | None = None,
) -> list[Errors]:
    """Return the errors of models of one kind on the same bags, which are read once.

    Each model is judged by its own outcome: a class that it does not know is an error.

    Parameters
    ----------
    models : fitted estimators
    bags : LabelledBags
        At least one.
    weights : Weights, optional
        Of the bags.
    """
    reduction = Reduction(
        name="errors",
        collector=partial(_Sums, [Judge(model, bags, weights) for model in models]),
        merge=_add_each,
        cost=sum((judging_cost(model) for model in models), Cost()),
        rows_per_block=ROWS_PER_BLOCK,
    )
    found = run_pass(bags, reduction, progress=progress)
    for errors in found:
        errors.outcome.check_finite(errors.losses[None], "the squared error", TOO_LARGE)
        if isinstance(errors.details, RealDetails):
            errors.outcome.check_finite(errors.details.absolute[None], "the error", TOO_LARGE)
    return found


class Judge:
    """Computes the errors of one model batch by batch; travels to workers with its model.

    Parameters
    ----------
    model : fitted estimator
    bags : LabelledBags
        All bags that the model is judged on: names and boxes are looked up once.
    weights : Weights, optional
    """

    def __init__(
        self, model: ScoringModel, bags: LabelledBags, weights: Weights | None = None
    ) -> None:
        self.model, self.weights = model, weights
        self.outcome = model.outcome
        numbers = range(1, self.outcome.n_targets + 1)
        self.names = self.outcome.names or tuple(f"target {number}" for number in numbers)
        self.class_names = tuple(bags.class_names.get(self.names[0], ()))
        self.box = bags.box

    @np.errstate(over="ignore", invalid="ignore")  # refused by name when all is added
    def judge(self, batch: Batch, targets: Rows) -> Errors:
        """Return the errors on a batch, whose encoded labels are ``targets``."""
        scores = self.model.decision_rows(batch.bags)
        w = None if self.weights is None else self.weights.of(batch.index, targets)
        details, true, predicted = DETAILS[type(self.outcome)](self, batch, scores, targets, w)
        exponents = exponents_of(self.outcome, targets, scores)
        targets, scores = in_units(targets, exponents), in_units(scores, exponents)
        n = float(len(batch) if w is None else w.sum())
        least = n or 1.0
        # The mean in two steps: a long sum of numbers far from zero has lost the last digits,
        # which the sum of the small gaps gives back.
        first = _sum(targets, w) / least
        gaps = targets - first
        rest = _sum(gaps, w) / least
        return Errors(
            self.outcome,
            len(batch),
            batch.n_unlabelled,
            exponents,
            _sum(self.outcome.losses(scores, targets), w),
            first + rest,
            np.maximum(0.0, _sum(gaps**2, w) - n * rest**2),
            details,
            Sample(batch.index, true, predicted),
            weights=None if w is None else n,
        )


def _sum(rows: Rows, weights: Rows | None) -> Rows:
    """Σ w r over the rows (n, k), in double."""
    if weights is None:
        return np.asarray(rows.sum(axis=0, dtype=np.float64))
    return np.asarray(weights @ rows)


Found = tuple[Details, Rows, Rows]  # with true and predicted values for pictures, shape (n, ≤ 9)


def _detail_numbers(
    judge: Judge, batch: Batch, scores: Rows, targets: Rows, weights: Rows | None
) -> Found:
    gaps, shown = scores - targets, slice(SAMPLED_TARGETS)
    details = RealDetails(judge.names, _sum(np.abs(gaps), weights), _sum(gaps, weights))
    return details, batch.labels[:, shown].astype(np.float64), scores[:, shown]


def _detail_classes(
    judge: Judge, batch: Batch, scores: Rows, targets: Rows, weights: Rows | None
) -> Found:
    codes = cast(Classes, judge.outcome).codes
    true, predicted = batch.labels[:, 0].astype(np.float64), codes[scores.argmax(axis=1)]
    given = (judge.names[0], judge.class_names, codes, true, predicted, weights)
    details = ClassDetails.count(*given)
    shares = judge.outcome.predict(scores).probabilities
    assert shares is not None
    brier = ((shares - targets) ** 2).sum(axis=1) + (1 - targets.sum(axis=1))  # no class of ours: 0
    return details, true[:, None], np.column_stack([predicted, shares.max(axis=1), brier])


def _detail_densities(
    judge: Judge, batch: Batch, scores: Rows, targets: Rows, weights: Rows | None
) -> Found:
    spec, own = cast(Densities, judge.outcome).spec, np.nan
    if judge.box == spec.box:
        coefficients = np.empty_like(targets)
        _project(spec, batch.bags, coefficients)
        own = float(_sum((coefficients - targets) ** 2, weights).sum())
    average = float(_sum((mean_of(judge.model) - targets) ** 2, weights).sum())
    noise = sampling_noise(spec, batch.labels.present, targets, weights)
    details = DensityDetails(average, own, noise)
    return details, np.empty((len(batch), 0)), np.empty((len(batch), 0))


DETAILS = {Reals: _detail_numbers, Classes: _detail_classes, Densities: _detail_densities}


def sampling_noise(
    spec: ProjectionSpec, responses: Bags, coefficients: Rows, weights: Rows | None = None
) -> float:
    """Sum w Σ_α Var(φ_α) / m over the responses that have m ≥ 2 points, estimated from these."""
    squares = np.empty_like(coefficients)
    _project(spec, responses, squares, drop=spec.out_of_box == "drop", squared=True)
    several = responses.sizes > 1
    variance = (squares - coefficients**2)[several].sum(axis=1)
    noise = variance / (responses.sizes[several] - 1)
    return float(_sum(noise, None if weights is None else weights[several]))


def _project(spec: ProjectionSpec, bags: Bags, out: Rows, **options: bool) -> None:
    project(bags, spec.indices, spec.groups, spec.basis, spec.box, out, **options)


class _Sums:
    """A `Collector` of the errors of several models."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self.judges = judges
        self.total: list[Errors] | None = None

    def add(self, batch: Batch) -> None:
        """Count a batch; labels are encoded once for all models that learnt the same."""
        encoded: dict[Outcome, Rows] = {}
        found = []
        for judge in self.judges:
            if judge.outcome not in encoded:
                encoded[judge.outcome] = judge.outcome.encode(batch.labels)[0]
            found.append(judge.judge(batch, encoded[judge.outcome]))
        self.total = found if self.total is None else _add_each(self.total, found)

    def finish(self) -> list[Errors]:
        """Return the errors in the order of the models."""
        assert self.total is not None  # each range of bags has a batch, maybe an empty one
        return self.total


def _add_each(ours: list[Errors], theirs: list[Errors]) -> list[Errors]:
    return [a + b for a, b in zip(ours, theirs, strict=True)]


def judging_cost(model: ScoringModel) -> Cost:
    """Return the cost of predicting bags and of the rows that are compared."""
    features, k = model.features, model.outcome.n_targets
    rows = 8 * (features.n_features + 4 * k)
    return features.cost + Cost(0.0, features.n_features * k * SECONDS_PER_PRODUCT, rows)
