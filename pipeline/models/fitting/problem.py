"""`Problem`: labelled bags as a model is fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ...core import Real
from ...core.arrays import Floats
from ...core.errors import ParameterError, shown
from ...data.labelled.column_splits import GroupFolds, GroupSplit
from ...data.labelled.columns import Column
from ...data.labelled.frame_columns import from_frame
from ...data.labelled.holdout import NO_HOLDOUT, Holdout, HoldoutLike
from ...data.labelled.inputs import BagsLike, LabelsLike
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.labels import Targets
from ...data.labelled.leaks import warn_of_copies_held_out, warn_of_leaks
from ...data.labelled.splits import N_FOLDS, VALIDATION_SEED, Folds, IndexFolds, Membership
from ...data.labelled.weights import SampleWeight, Weights
from ...data.labelled.wide_bags import warn_of_wide_response
from ...data.store.plan import Range
from ..outcomes.base import Outcome, Target
from ..outcomes.classes import Classes
from ..outcomes.densities import DensityOutcome
from .feature_map import in_embedded_order
from .fit_parameters import FitParameters
from .solver import check_solver

Groups = str | ArrayLike | None
"""Groups of bags that are not independent: a column of a store, or one value per bag."""

TrainingBags = BagsLike | LabelledBags

MAX_FOLDS = 100  # each fold has sums of its own


@dataclass(frozen=True)
class Problem:
    """The labelled bags of a fit, with their weights, holdout and groups.

    Attributes
    ----------
    source : LabelledBags
        Labelled bags, including held-out bags.
    outcome : Outcome
        Kind of the labels, as far as the labels alone decide it.
    weights : Weights, optional
    holdout : Holdout
        Which bags are left out, resolved for these bags.
    grouped_by : Column, optional
        Groups: bags with equal values are not independent. None: the groups of ``holdout``.
    columns : tuple of str
        Columns of a frame that gave labels, groups or weights, and are not coordinates.
    """

    source: LabelledBags
    outcome: Outcome
    weights: Weights | None = None
    holdout: Holdout = NO_HOLDOUT
    grouped_by: Column | None = None
    columns: tuple[str, ...] = ()

    @property
    def fitted(self) -> LabelledBags:
        """The bags that are not held out."""
        return replace(self.source, left_out=self.holdout.split(self.source))

    @property
    def groups(self) -> Column | None:
        """Group of each bag; None if all bags are independent."""
        name = self.holdout.groups
        if self.grouped_by is not None or name is None:
            return self.grouped_by
        return Column.of(self.source.data, "groups", name)

    def folds(self, parameters: FitParameters) -> Folds | None:
        """Return the folds that choose the penalty: of whole groups, or of single bags.

        GCV assumes independent bags; with groups, folds replace it. None if GCV or held-out bags
        choose the penalty, and with a baseline.
        """
        holds_none_out = parameters.is_path and not parameters.is_judged
        if not holds_none_out or parameters.baseline is not None:
            return None
        if self.groups is not None and not _is_one_group(self.groups):
            return GroupFolds.of_column(self.groups)
        return IndexFolds(N_FOLDS) if parameters.is_folded else None

    def validation(self, parameters: FitParameters) -> Membership | None:
        """Return the held-out bags that choose the penalty; None if there are no such bags."""
        if not parameters.is_judged:
            return None
        share = parameters.validation_fraction
        if self.grouped_by is not None:  # groups that no holdout knows
            column = GroupFolds.of_column(self.grouped_by).column
            return GroupSplit(column, share, VALIDATION_SEED)
        return self.holdout.validation(share, self.source)


def pose_problem(
    parameters: FitParameters,
    X: TrainingBags,
    labels: LabelsLike = None,
    target: Target = None,
    *,
    sample_weight: SampleWeight = None,
    holdout: HoldoutLike = 0.0,
    bags: Range | None = None,
    groups: Groups = None,
) -> Problem:
    """Return the problem for an estimator with these parameters.

    Parameters
    ----------
    parameters : FitParameters
    X, labels, target, sample_weight, holdout
        Arguments of ``fit`` of the estimator.
    bags : (start, stop), optional
        A range of a store's bags; None means all of them.
    groups : str or array, shape (n_bags,), optional
        Groups of bags: a column of a store, or one value per bag. Every choice leaves whole groups
        out.

    Raises
    ------
    DataError, ParameterError
        In the same cases as ``fit``.
    """
    parameters.check(holdout)
    check_solver(parameters)
    if sample_weight is not None and parameters.alpha == "projected":
        raise ParameterError("alpha='projected' takes no sample_weight: use 'validation'")
    third = parameters.response_embedding
    taken = from_frame(X, labels, target, groups=groups, sample_weight=sample_weight)
    groups, sample_weight = taken.values["groups"], taken.values["sample_weight"]
    source, outcome = parameters.learns.from_labels(taken.X, taken.y, taken.target, bags, third)
    source = in_embedded_order(source, parameters.embedding)
    warn_of_leaks(source, isinstance(outcome, Classes))
    if taken.names:
        assert isinstance(source.labels, Targets)
        source = replace(source, labels=replace(source.labels, names=taken.names))
        outcome = outcome.named(taken.names)
    held, column = Holdout.of(holdout), None
    if isinstance(groups, str) and not source.in_memory and held.after is None:
        if held.groups not in (None, groups):
            raise ParameterError(f"groups is {groups!r}, and holdout has groups {held.groups!r}")
        Column.of(source.data, "groups", groups)  # where nothing is chosen, it is not read
        held = replace(held, groups=groups)
    elif groups is not None:
        column = Column.of(source.data, "groups", groups)
        if held.groups is not None:
            raise ParameterError(
                f"groups are values, and holdout has groups {held.groups!r}; leave one of them out"
            )
        held = held.with_groups(column, source)
    out = held.resolve(source)
    if (held_out := out.split(source)) is not None:
        warn_of_copies_held_out(source, held_out)
    weights = Weights.of_bags(source.data, sample_weight)
    if weights is not None:
        source = replace(source, weightless=weights.without_weight(source.start, source.end))
        if isinstance(outcome, DensityOutcome):
            warn_of_wide_response(source, outcome.spec.box)
    problem = Problem(source, outcome, weights, out, column, taken.columns)
    parameters.check_targets(source.n_bags, outcome.n_targets)
    if parameters.class_weight is None:
        return problem
    by_class = _weights_of_classes(problem, parameters.class_weight)
    return replace(problem, weights=replace(problem.weights or Weights(), by_class=by_class))


def _is_one_group(groups: Column) -> bool:
    """Return whether values in memory are all equal, so that no group can be left out."""
    labels = groups.values
    return labels is not None and len(labels) > 0 and bool((labels == labels[0]).all())


def _weights_of_classes(problem: Problem, class_weight: str | Mapping[Any, float]) -> Floats:
    outcome = cast(Classes, problem.outcome)
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.zeros(outcome.n_targets)
        for _, _, labels in problem.fitted.label_blocks():
            counts += outcome.encode(labels)[0].sum(axis=0)
        return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1)))
    if not isinstance(class_weight, Mapping):
        what = "'balanced', a mapping from class to number, or None"
        raise ParameterError(f"class_weight is {shown(class_weight)}; expected {what}")
    names = [str(value) for value in outcome.values]  # a saved model has its keys as text
    # models saved by earlier versions have the codes of classes
    known = {str(code): j for j, code in enumerate(outcome.classes)}
    known |= {name: j for j, name in enumerate(names)}
    weights = np.ones(len(names))
    equal = {code: j for j, code in enumerate(outcome.classes)}  # 1, 1.0 and True are one class
    for name, weight in class_weight.items():
        j = known.get(str(name), equal.get(name))
        if j is None:
            raise ParameterError(f"class_weight has class {name!r}; there are {names}")
        weights[j] = Real(ge=0).check(f"class_weight of {name!r}", weight)
    return weights
