"""`Problem`: labelled bags as a model is fitted to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats
from ..bags import Responses
from ..bags.holdout import NO_HOLDOUT, Holdout, HoldoutLike
from ..bags.inputs import BagsLike
from ..bags.labelled import LabelledBags
from ..bags.plan import Range
from ..bags.splits import Membership
from ..errors import ParameterError, shown
from ..parameters import Real
from .fit_parameters import FitParameters
from .outcome_base import Target
from .outcomes import Classes, Outcome
from .weights import SampleWeight, Weights

Labels = ArrayLike | Sequence[ArrayLike | None] | Responses | None
"""Of bags in memory: targets, or one response per bag."""

TrainingBags = BagsLike | LabelledBags


@dataclass(frozen=True)
class Problem:
    """What a model is fitted to.

    Attributes
    ----------
    source : LabelledBags
        The labelled bags, those held out among them.
    outcome : Outcome
        What their labels are, as far as these alone decide it.
    weights : Weights, optional
    holdout : Holdout
        Which bags are left out, resolved for these bags.
    """

    source: LabelledBags
    outcome: Outcome
    weights: Weights | None = None
    holdout: Holdout = NO_HOLDOUT

    @property
    def fitted(self) -> LabelledBags:
        """The bags without those that are held out."""
        return replace(self.source, left_out=self.holdout.split(self.source))

    def validation(self, parameters: FitParameters) -> Membership | None:
        """Return the bags that the penalty is chosen on; None if it is chosen otherwise."""
        if not parameters.is_judged:
            return None
        return self.holdout.validation(parameters.validation_fraction, self.source)


def pose_problem(
    parameters: FitParameters,
    X: TrainingBags,
    labels: Labels = None,
    target: Target = None,
    *,
    sample_weight: SampleWeight = None,
    holdout: HoldoutLike = 0.0,
    bags: Range | None = None,
) -> Problem:
    """Return what an estimator with these parameters is fitted to.

    Parameters
    ----------
    parameters : FitParameters
    X, labels, target, sample_weight, holdout
        As ``fit`` of the estimator takes them.
    bags : (start, stop), optional
        A range of a store's bags; None means all of them.

    Raises
    ------
    DataError, ParameterError
        As ``fit``.
    """
    parameters.check(holdout)
    if sample_weight is not None and parameters.alpha == "projected":
        raise ParameterError("alpha='projected' takes no sample_weight: use 'validation'")
    third = parameters.response_embedding
    source, outcome = parameters.learns.from_labels(X, labels, target, bags, third)
    out = Holdout.of(holdout).resolve(source)
    problem = Problem(source, outcome, Weights.of_bags(source.data, sample_weight), out)
    if parameters.class_weight is None:
        return problem
    by_class = _weights_of_classes(problem, parameters.class_weight)
    return replace(problem, weights=replace(problem.weights or Weights(), by_class=by_class))


def _weights_of_classes(problem: Problem, given: str | Mapping[Any, float]) -> Floats:
    outcome = cast(Classes, problem.outcome)
    if isinstance(given, str) and given == "balanced":
        counts = np.zeros(outcome.n_targets)
        for _, _, labels in problem.fitted.label_blocks():
            counts += outcome.encode(labels)[0].sum(axis=0)
        return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1)))
    if not isinstance(given, Mapping):
        what = "'balanced', a mapping from class to number, or None"
        raise ParameterError(f"class_weight is {shown(given)}; expected {what}")
    names = [str(one) for one in outcome.values]  # a saved model has its keys as text
    # models saved by earlier versions have the codes of classes
    known = {str(code): j for j, code in enumerate(outcome.classes)}
    known |= {name: j for j, name in enumerate(names)}
    weights = np.ones(len(names))
    for name, weight in given.items():
        if str(name) not in known:
            raise ParameterError(f"class_weight has class {name!r}; there are {names}")
        label = f"class_weight of {name!r}"
        weights[known[str(name)]] = Real(ge=0).check(label, weight)
    return weights
