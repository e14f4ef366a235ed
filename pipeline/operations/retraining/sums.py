"""The statistics of a sliding window of bags, and the models that are solved from them.

Statistics of the same features can be added and subtracted. When the window slides, a new model
therefore costs a pass over the bags that came and those that left, not over all bags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from sklearn.base import clone

from ...data.bags.coordinates import Names
from ...data.labelled.holdout import Holdout, HoldoutLike
from ...data.labelled.labelled import take_range
from ...data.labelled.splits import Membership
from ...data.labelled.weights import Weights
from ...data.store.plan import Range
from ...data.store.store import BagStore
from ...execution.progress import Progress
from ...models.base import DoubleBasis, fit_parameters_of, with_model
from ...models.fit import make_model
from ...models.fitted_model import model_of, names_fitted
from ...models.fitting.accumulate import FitStatistics
from ...models.fitting.checkpoints import Checkpoints
from ...models.fitting.feature_map import FeatureMap
from ...models.fitting.fit_parameters import FitParameters
from ...models.fitting.plan import FitPlan
from ...models.fitting.planning import choose_features, decide_automatic, plan_of
from ...models.fitting.problem import Problem, pose_problem
from ...models.fitting.solver import check_summable
from ...models.outcomes.base import Outcome
from ...models.ridge.sums import RidgeStatistics

# Relative differences that rounding does not reach, by the precision of the products: blocks of
# float32 products are cut differently each time, so their sums differ in the last digits.
ROUNDING_BOUNDS = {"float32": 1e-5, "float64": 1e-9}

INFINITE = 1e300  # stands for infinity, which JSON does not have

CountSums = Callable[[Range], FitStatistics]


@dataclass(frozen=True)
class ModelSequence:
    """What the models of a sequence share: each is solved from the sums of its own bags.

    Attributes
    ----------
    estimator : estimator
        With the parameters of all; never fitted itself.
    features : FeatureMap
        The fitted embedding and random-feature map.
    outcome : Outcome
        Outcome that is learnt.
    holdout : Holdout
        The bags that enter no model.
    weights : Weights, optional
        Weights of the bags.
    coordinates : sequence of str, optional
        Names of the coordinates of the bags of the first round, whose order all rounds have.
    """

    estimator: DoubleBasis
    features: FeatureMap
    outcome: Outcome
    holdout: Holdout
    weights: Weights | None = None
    coordinates: Names = None

    @classmethod
    def begin(
        cls,
        estimator: DoubleBasis,
        store: BagStore,
        bags: Range,
        target: str | Sequence[str] | None,
        holdout: HoldoutLike,
        sample_weight: str | None = None,
    ) -> ModelSequence:
        """Decide features and classes as a fit to these bags of the store does.

        Labels that are outliers count: those of a later round may be as far.

        Raises
        ------
        DataError, ParameterError, StoreError
            As `DoubleBasisRegressor.fit`.
        """
        parameters = fit_parameters_of(estimator)
        problem = pose_problem(
            parameters,
            store,
            target=target,
            sample_weight=sample_weight,
            holdout=holdout,
            bags=bags,
        )
        decided, _ = decide_automatic(problem, parameters)
        features = choose_features(problem, decided)
        if parameters.has_automatic_penalty:  # all rounds choose it in the way of the first
            estimator = clone(estimator).set_params(alpha=decided.alpha)
        names = problem.source.coordinate_names
        return cls(estimator, features, problem.outcome, problem.holdout, problem.weights, names)

    @classmethod
    def of(cls, model: DoubleBasis) -> ModelSequence:
        """Return the sequence of a model that was fitted to a store."""
        fitted = model_of(model)
        weights = Weights.from_dict(fitted.weights) if fitted.weights else None
        if weights is not None:  # labels of later rounds may be elsewhere
            weights = replace(weights, limits=None)
        holdout = Holdout.of(fitted.holdout)
        names = names_fitted(fitted.report)
        return cls(clone(model), fitted.features, fitted.outcome, holdout, weights, names)

    def statistics(
        self,
        store: BagStore,
        bags: Range,
        progress: Progress | None = None,
        checkpoints: Checkpoints | None = None,
        only: Membership | None = None,
    ) -> FitStatistics:
        """One pass over these bags of the store, on the open cluster or in this process.

        Bags that are not among ``only`` are counted as if they were held out.
        """
        plan = self._plan(store, bags)
        plan = replace(plan, bags=replace(plan.bags, only=only))
        check_summable(plan, self._parameters)
        has_bags = bags[1] > bags[0]  # a round may have no new ones
        return plan.run(progress, checkpoints.store_of(plan) if checkpoints and has_bags else None)

    def model(self, statistics: FitStatistics, store: BagStore, bags: Range) -> DoubleBasis:
        """Return the fitted estimator of these bags, from their statistics.

        Raises
        ------
        DataError
            None of the bags has a label.
        """
        plan = self._plan(store, bags)
        return with_model(self.estimator, make_model(plan, statistics, self._parameters))

    @property
    def _parameters(self) -> FitParameters:
        return fit_parameters_of(self.estimator)

    def _plan(self, store: BagStore, bags: Range) -> FitPlan:
        """Return the plan of a fit to these bags, with the labels of the sequence's outcome."""
        source = take_range(self.outcome.take_labels(store), bags)
        source = source.in_order_of(self.coordinates, "the models of earlier rounds were fitted on")
        weights = self.weights and self.weights.bound(store)
        problem = Problem(source, self.outcome, weights, self.holdout)
        return plan_of(problem, self._parameters, self.features)


@dataclass(frozen=True)
class Check:
    """How far running sums differ from a new count of the same bags.

    Attributes
    ----------
    differences : dict
        For each array, the largest difference, relative to the largest value that its entries may
        have (by the Cauchy-Schwarz inequality, from Σz² and Σy²); ``counts`` is 0 or 1.
    bound : float
        Rounding stays below it.
    """

    differences: dict[str, float]
    bound: float

    @property
    def passed(self) -> bool:
        """Whether rounding can explain all differences."""
        return all(value <= self.bound for value in self.differences.values())


@dataclass(frozen=True)
class WindowSums:
    """The statistics of a window, and what it took to get them.

    Attributes
    ----------
    statistics : FitStatistics
    passes : dict
        Bags that went through both bases, by purpose: new, changed (as they were, and as they are),
        leaving, recomputation.
    n_outside : dict
        Points of the new bags outside the boxes, of bags and responses; where ``passes`` names no
        new ones, of all.
    why : str or None
        Why all bags of the window were counted; None if they were not.
    check : Check or None
        None if nothing was compared.
    """

    statistics: FitStatistics
    passes: dict[str, int]
    n_outside: dict[str, int]
    why: str | None = None
    check: Check | None = None


def sum_window(window: Range, count: CountSums, purpose: str, why: str) -> WindowSums:
    """Count all bags of a window; ``purpose`` and ``why`` are for the report."""
    sums = count(window)
    return WindowSums(sums, {purpose: window[1] - window[0]}, _outside(sums), why)


def slide_window(before: Range, sums: FitStatistics, window: Range, count: CountSums) -> WindowSums:
    """Add the bags that came since the last window, and subtract those that left it.

    If fewer bags stay than leave, those that stay are counted again instead. Every bag is counted
    at most once.
    """
    (first, last), (start, stop) = before, window
    if start >= last:
        return sum_window(window, count, "new", "no bag of the window before stays")
    new = count((last, stop))
    passes = {"new": stop - last}
    if start - first > last - start:
        overlap = count((start, last))
        passes["recomputation"] = last - start
        why = "fewer bags stay in the window than leave it"
        return WindowSums(overlap + new, passes, _outside(new), why)
    if start > first:
        sums = sums - count((first, start))
        passes["leaving"] = start - first
    return WindowSums(sums + new, passes, _outside(new))


def recount_and_compare(
    before: Range, sums: FitStatistics, window: Range, count: CountSums, bound: float
) -> WindowSums:
    """Count all bags of this window and of the last one, each once.

    The stored sums of the last window are compared with the new ones, and then dropped.
    """
    (first, last), (start, stop) = before, window
    middle = min(start, last)
    passes = {}
    again: FitStatistics | None = None
    if middle > first:
        again = count((first, middle))
        passes["leaving"] = middle - first
    overlap = count((middle, last)) if last > middle else None
    if overlap is not None:
        again = overlap if again is None else again + overlap
        passes["recomputation"] = last - middle
    new = count((max(start, last), stop))
    passes["new"] = stop - max(start, last)
    assert again is not None
    check = Check(gaps_of_sums(sums, again), bound)
    sums = new if overlap is None else overlap + new
    return WindowSums(sums, passes, _outside(new), "periodic check", check)


def _outside(statistics: FitStatistics) -> dict[str, int]:
    return {"points": statistics.n_outside, "response points": statistics.n_responses_outside}


def gaps_of_sums(a: FitStatistics, b: FitStatistics) -> dict[str, float]:
    """Compare sums of the same bags, of which ``b`` are right; see `Check`."""
    gaps = {"counts": float(_counts(a) != _counts(b))}
    for part in ("train", "validation"):
        ours, theirs = getattr(a, part), getattr(b, part)
        if ours is None or theirs is None:
            gaps["counts"] = max(gaps["counts"], float(ours is not theirs))
            continue
        exponents = np.maximum(ours.exponents, theirs.exponents)
        ours, theirs = ours.in_units(exponents), theirs.in_units(exponents)
        for name, scale in _scales(theirs).items():
            gap = np.abs(getattr(ours, name) - getattr(theirs, name)).max(initial=0.0)
            key = name if part == "train" else f"{part}.{name}"
            gaps[key] = _relative(float(gap), scale)
    return gaps


def _relative(gap: float, scale: float) -> float:
    if not np.isfinite(gap):
        return INFINITE
    return gap / scale if scale > 0 else (0.0 if gap == 0 else INFINITE)


def _scales(statistics: RidgeStatistics) -> dict[str, float]:
    """Return the largest absolute value that entries of each array may have."""
    z = float(statistics.diagonal.max(initial=0.0)) ** 0.5
    y = float(statistics.sum_yy.max(initial=0.0)) ** 0.5
    n = float(statistics.weight) ** 0.5
    return {"sum_z": n * z, "gram": z * z, "sum_y": n * y, "cross": z * y, "sum_yy": y * y}


def _counts(statistics: FitStatistics) -> list[int]:
    values = (getattr(statistics, field.name) for field in fields(statistics))
    return [int(getattr(value, "n", value)) for value in values if value is not None]
