"""`evaluate`: the errors of models on labelled bags, in one pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Protocol, cast

import numpy as np

from ..bags import Bags, BagStore
from ..bags.labelled import Batch, LabelledBags
from ..bases import project
from ..embeddings import ProjectionSpec
from ..errors import DataError
from ..execution import Progress
from ..execution.costs import SECONDS_PER_PRODUCT, Cost
from ..execution.passes import Reduction, run_pass
from ..regression.linear_model import FittedModel, ScoringModel
from ..regression.outcomes import Classes, Densities, Outcome, Reals
from ..regression.stored_predictions import check_predictable, take_subset
from .errors import (
    SAMPLED_TARGETS,
    ClassDetails,
    DensityDetails,
    Details,
    Errors,
    RealDetails,
    Rows,
    Sample,
)

ROWS_PER_BLOCK = 2048  # the coefficients of as many bags and responses are held at a time


def evaluate(
    model: FittedModel,
    data: BagStore | LabelledBags,
    *,
    subset: str = "all",
    progress: Progress | None = None,
) -> Errors:
    """The errors of a model on labelled bags, on the open cluster or in this process.

    Parameters
    ----------
    model : fitted estimator
    data : BagStore or LabelledBags
        A store with the targets that the model was fitted to, or with responses.
    subset : {"all", "holdout", "train"}
        Bags that the model's ``holdout`` left out of fitting, or the others.
    progress : callable (bags done, bags in all), optional

    Raises
    ------
    DataError
        The store lacks a target of the model, or no bag of the subset is labelled.
    ModelError
        Bags of another dimension, or subset="holdout" where the model held nothing out.
    """
    check_predictable(model, data, subset)
    bags = model.outcome_.take_labels(data) if isinstance(data, BagStore) else data
    chosen = take_subset(bags, model, subset)
    errors = evaluate_together([model], chosen, progress)[0] if chosen.n_bags else None
    if errors is None or errors.n == 0:
        where = bags.url or "bags in memory"
        raise DataError(f"{where}: no labelled bag among the {subset} bags; nothing to measure")
    return errors


class DensityModel(FittedModel, Protocol):
    """A fitted model of densities."""

    @property
    def mean_coefficients_(self) -> Rows:
        """Of the average response of the bags fitted, shape (k,)."""
        ...


def evaluate_together(
    models: Sequence[ScoringModel], bags: LabelledBags, progress: Progress | None = None
) -> list[Errors]:
    """The errors of models of one kind on the same bags, at least one, which are read once.

    Each model is judged by its own outcome: a class that it does not know is an error.
    """
    judges = tuple(JUDGES[type(model.outcome_)](model, bags) for model in models)
    reduction = Reduction(
        collector=partial(_Sums, judges),
        merge=_add_each,
        cost=sum((_cost(model) for model in models), Cost()),
        rows_per_block=ROWS_PER_BLOCK,
    )
    return run_pass(bags, reduction, progress=progress)


class _Judge(ABC):
    """The errors of one model, batch by batch; small enough to travel to workers."""

    def __init__(self, model: ScoringModel, bags: LabelledBags) -> None:
        self.model = model
        self.outcome = model.outcome_

    def judge(self, batch: Batch, targets: Rows) -> Errors:
        """The errors on the bags of a batch, whose encoded labels are ``targets``."""
        scores = self.model.decision_rows(batch.bags)
        true, predicted = self.pictured(batch, scores)
        n = len(batch)
        first = targets.sum(axis=0, dtype=np.float64) / max(1, n)
        gaps = targets - first
        rest = gaps.sum(axis=0) / max(1, n)  # what the rounding of a long sum has left
        return Errors(
            self.outcome,
            n,
            batch.n_unlabelled,
            self.outcome.losses(scores, targets).sum(axis=0, dtype=np.float64),
            first + rest,
            (gaps**2).sum(axis=0) - n * rest**2,
            self.details(batch, scores, targets),
            Sample(batch.index, true, predicted),
        )

    @abstractmethod
    def details(self, batch: Batch, scores: Rows, targets: Rows) -> Details:
        """What is counted beside the losses."""

    def pictured(self, batch: Batch, scores: Rows) -> tuple[Rows, Rows]:
        """True and predicted values for pictures, shape (n, at most nine)."""
        return np.empty((len(batch), 0)), np.empty((len(batch), 0))


class _RealJudge(_Judge):
    def __init__(self, model: ScoringModel, bags: LabelledBags) -> None:
        super().__init__(model, bags)
        numbers = range(1, self.outcome.n_targets + 1)
        self.names = self.outcome.names or tuple(f"target {number}" for number in numbers)

    def details(self, batch: Batch, scores: Rows, targets: Rows) -> RealDetails:
        gaps = scores - targets
        return RealDetails(self.names, np.abs(gaps).sum(axis=0), gaps.sum(axis=0))

    def pictured(self, batch: Batch, scores: Rows) -> tuple[Rows, Rows]:
        shown = slice(SAMPLED_TARGETS)
        return batch.labels[:, shown].astype(np.float64), scores[:, shown]


class _ClassJudge(_Judge):
    outcome: Classes

    def __init__(self, model: ScoringModel, bags: LabelledBags) -> None:
        super().__init__(model, bags)
        self.name = self.outcome.names[0] if self.outcome.names else "target"
        self.labels = _class_names(bags, self.name)

    def details(self, batch: Batch, scores: Rows, targets: Rows) -> ClassDetails:
        true, predicted = (values[:, 0] for values in self.pictured(batch, scores))
        return ClassDetails.count(self.name, self.labels, self.outcome.codes, true, predicted)

    def pictured(self, batch: Batch, scores: Rows) -> tuple[Rows, Rows]:
        predicted = self.outcome.codes[scores.argmax(axis=1)]
        return batch.labels[:, :1].astype(np.float64), predicted[:, None]


class _DensityJudge(_Judge):
    outcome: Densities

    def __init__(self, model: ScoringModel, bags: LabelledBags) -> None:
        super().__init__(model, bags)
        self.average = cast(DensityModel, model).mean_coefficients_
        self.shares_box = bags.box == self.outcome.spec.box

    def details(self, batch: Batch, scores: Rows, targets: Rows) -> DensityDetails:
        own = np.nan
        if self.shares_box:
            coefficients = np.empty_like(targets)
            _project(self.outcome.spec, batch.bags, coefficients)
            own = float(((coefficients - targets) ** 2).sum())
        average = float(((self.average - targets) ** 2).sum())
        return DensityDetails(
            average, own, sampling_noise(self.outcome.spec, batch.labels.present, targets)
        )


JUDGES: dict[type, type[_Judge]] = {
    Reals: _RealJudge,
    Classes: _ClassJudge,
    Densities: _DensityJudge,
}


def _class_names(bags: LabelledBags, target: str) -> tuple[str, ...]:
    """What people call the classes 0, 1, … of a store's target."""
    if isinstance(bags.data, BagStore):
        return tuple(map(str, bags.data.meta.class_names.get(target, ())))
    return ()


def sampling_noise(spec: ProjectionSpec, responses: Bags, coefficients: Rows) -> float:
    """Σ_α Var(φ_α) / m over the responses of two points or more, by their points."""
    squares = np.empty_like(coefficients)
    _project(spec, responses, squares, drop=spec.out_of_box == "drop", squared=True)
    several = responses.sizes > 1
    variance = (squares - coefficients**2)[several].sum(axis=1)
    return float((variance / (responses.sizes[several] - 1)).sum())


def _project(spec: ProjectionSpec, bags: Bags, out: Rows, **options: bool) -> None:
    project(bags, spec.indices, spec.groups, spec.basis, spec.box, out, **options)


class _Sums:
    """A `Collector` of the errors of several models."""

    def __init__(self, judges: Sequence[_Judge]) -> None:
        self.judges = judges
        self.total: list[Errors] | None = None

    def add(self, batch: Batch) -> None:
        encoded: dict[Outcome, Rows] = {}
        found = []
        for judge in self.judges:
            if judge.outcome not in encoded:
                encoded[judge.outcome] = judge.outcome.encode(batch.labels)[0]
            found.append(judge.judge(batch, encoded[judge.outcome]))
        self.total = found if self.total is None else _add_each(self.total, found)

    def finish(self) -> list[Errors]:
        assert self.total is not None  # each range of bags has a batch, maybe an empty one
        return self.total


def _add_each(ours: list[Errors], theirs: list[Errors]) -> list[Errors]:
    return [a + b for a, b in zip(ours, theirs, strict=True)]


def _cost(model: ScoringModel) -> Cost:
    """Of predicting bags and of the rows that are compared."""
    features, k = model.features_, model.outcome_.n_targets
    rows = 8 * (features.n_features + 4 * k)
    return features.cost + Cost(0.0, features.n_features * k * SECONDS_PER_PRODUCT, rows)
