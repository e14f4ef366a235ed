"""Stacks of a ridge, trees and a linear model, weighted by their out-of-fold predictions.

For each of K folds, the ridge, the trees and the linear model of summaries of bags predict the bags
that they were not fitted to. Their weights minimise the squared error of the weighted predictions
(stacking, Wolpert 1992; Breiman 1996), and are shrunk to equal weights if there are few bags.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import Floats, Integers
from ..core.saved import read_saved
from ..core.sums import Sums
from ..core.units import in_units, units_of_labels
from ..data.labelled.labelled import Batch
from ..data.labelled.splits import N_FOLDS, Folds
from ..execution.passes import Reduction, StackedRows, check_memory, run_pass
from ..execution.progress import Progress, note
from ..execution.worker_threads import kernel_threads
from .fitting.choice.sample import fold_rows
from .fitting.fit_parameters import FitParameters
from .fitting.fold_errors import FoldRows
from .fitting.problem import Problem
from .heads.linear import LinearHead, best_shares
from .heads.trees import TreeInputs, Trees
from .intervals.fold_calibration import FoldCalibration
from .outcomes.class_probabilities import ProbabilityMap
from .outcomes.classes import PROBABILITIES, Classes
from .ridge_model import RidgeModel

_RIDGE, STACK, TREES, _LINE = "ridge", "stack", "trees", "line"
_SEED = 0
MAX_RANDOMISED = 5000  # bags; more are boosted: a forest of them would take too much memory
N_RANDOMISED = 200
SPLIT_COLUMNS = 100  # columns tried at a split at most; a third if there are fewer
# size of all trees, which are saved and travel: leaves grow until they fit
_MAX_TREES_BYTES = 2**25
_NODE_BYTES = 48  # in addition to the values of a leaf
_BOOSTING = {"max_iter": 100, "learning_rate": 0.1, "min_samples_leaf": 20, "early_stopping": False}
_FAR_MEAN = 1e5  # standard deviations of labels, whose squares then lose eleven digits
COPIES = 3  # of the rows: the given ones, the joined ones, and those that trees make
_MIN_LEAD = 0.5  # standard errors by which a head has to lead to replace a cheaper one
_FEWER = "take fewer bags, a shorter embedding, or head='ridge'"


@dataclass(frozen=True, eq=False)
class HeadRows(Sums):
    """Rows that trees are fitted to.

    Attributes
    ----------
    index, folds : int64, shape (n,)
        Positions of the bags, and their folds.
    inputs : float32, shape (n, m)
        Inputs of the trees, see `TreeInputs`.
    y, of_ridge : float64, shape (n, k)
        Encoded labels, and out-of-fold predictions of the ridge.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("index", "folds", "inputs", "y", "of_ridge")
    index: Integers
    folds: Integers
    inputs: NDArray[np.float32]
    y: Floats
    of_ridge: Floats


def with_trees(
    model: RidgeModel,
    problem: Problem,
    parameters: FitParameters,
    progress: Progress | None = None,
) -> RidgeModel:
    """Return a model with trees, alone or in a stack, depending on ``parameters.head``.

    The entry "head" of its report has the ``errors`` of ridge, trees and stack by K folds, which
    keep groups whole. Errors are mean squared errors over the variance of the labels. The
    ``standard_errors`` are those of the difference to the least error. The entry also has the
    ``shares`` of ridge, trees and linear model in the stack, whether the linear model is of
    ``means`` or ``summaries``, the ``kind`` and number of the trees, and the numbers of bags and
    folds. For classes, ``probabilities`` has the map from scores to probabilities for each head.

    Raises
    ------
    DataError
        If all labelled bags are in one fold.
    ParameterError
        If the rows do not fit in memory.
    """
    if parameters.head == _RIDGE:
        return model
    source, inputs = problem.fitted, TreeInputs(model.features)
    n, m, k = source.n_bags, inputs.n_features, model.outcome.n_targets
    needed = COPIES * n * (4 * m + 16 * k)
    check_memory(f"trees on {m:,} numbers of each of {n:,} bags", needed, _FEWER)
    note(progress, "growing trees")
    without = model.folded(parameters.rounding).solve_without_each
    folded = without(source, N_FOLDS, problem.groups, problem.weights)
    cost = model.features.cost_in(model.precision) + inputs.cost
    none, of_labels = np.empty(0, np.int64), np.empty((0, k))
    no_rows = HeadRows(none, none, np.empty((0, m), np.float32), of_labels, of_labels)
    of_batch = partial(_rows_of, model, inputs, *folded)
    collector = partial(StackedRows, of_batch, no_rows, HeadRows.total)
    rows = run_pass(source, Reduction(collector, operator.add, cost, name="head"))
    judged = fold_rows(problem, rows.index, rows.y)[0]
    exponents = units_of_labels(rows.y, rows.of_ridge)
    rows = replace(rows, y=in_units(rows.y, exponents), of_ridge=in_units(rows.of_ridge, exponents))
    with kernel_threads() as n_cores:
        grown, of_trees = _grown_over_folds(rows, judged, exponents, n_cores)
        summaries = inputs.summaries(rows.inputs)
        line, of_line = LinearHead.fitted(
            summaries, model.features.n_dims, rows.y, judged, rows.folds
        )
    line = line.in_units(-exponents)
    members = {_RIDGE: rows.of_ridge, TREES: of_trees, _LINE: of_line}
    unit = np.sqrt(judged.units)
    comparable = [values / unit for values in members.values()]
    shares = best_shares(comparable, rows.y / unit, judged.weights, judged.clusters)
    stacked = np.tensordot(shares, np.array([*members.values()]), 1)
    predicted = {_RIDGE: rows.of_ridge, TREES: of_trees, STACK: stacked}
    report = {
        **_errors(predicted, rows.y, judged),
        "head": parameters.head,
        "shares": dict(zip(members, shares.tolist(), strict=True)),
        "line_of": "means" if line.coef.shape[1] == model.features.n_dims else "summaries",
        "kind": "randomised" if grown.divisor > 1 else "boosted",
        "n_trees": grown.n_trees,
        "n_bags": len(rows.y),
        "n_folds": len(np.unique(rows.folds)),
    }
    if isinstance(model.outcome, Classes):
        report[PROBABILITIES] = {
            name: ProbabilityMap.fitted(values, rows.y, judged.weights).to_dict()
            for name, values in predicted.items()
        }
    made = replace(model, trees=grown, line=line, report={**model.report, "head": report})
    return _with_shares(made, parameters.head)


def choose_head(model: RidgeModel, heads: Collection[str]) -> tuple[RidgeModel, str]:
    """Return a stack with the head of least error by its folds, and the name of the head.

    The cheapest of the ``heads`` within half a standard error of the least error is chosen. The
    ridge is cheaper than the trees, and the trees are cheaper than the stack.
    """
    report = model.report["head"]
    tried = [name for name in (_RIDGE, TREES, STACK) if name in heads]
    errors, spreads = report["errors"], report["standard_errors"]
    least = min(errors[name] for name in tried)
    chosen = next(name for name in tried if errors[name] <= least + _MIN_LEAD * spreads[name])
    made = replace(model, report={**model.report, "head": {**report, "head": chosen}})
    return _with_shares(made, chosen), chosen


def _with_shares(model: RidgeModel, head: str) -> RidgeModel:
    """Return the model of a head, with weights from its report and without unused parts."""
    maps = model.report["head"].get(PROBABILITIES)
    if maps is not None and isinstance(model.outcome, Classes):
        probability_map = read_saved(ProbabilityMap, maps[head])
        model = replace(model, outcome=replace(model.outcome, probability_map=probability_map))
    if head == _RIDGE:
        return replace(model, trees=None, line=None)
    assert model.trees is not None
    if head == TREES:
        return replace(model, trees=replace(model.trees, weight=1.0), line=None)
    assert model.line is not None
    shares = model.report["head"]["shares"]
    trees = replace(model.trees, weight=shares[TREES])
    return replace(model, trees=trees, line=replace(model.line, weight=shares[_LINE]))


def _grown_over_folds(
    rows: HeadRows, judged: FoldRows, exponents: Integers, n_cores: int
) -> tuple[Trees, Floats]:
    """Return trees of all rows, of labels times 2^``exponents``, and out-of-fold predictions."""
    of_trees, no_unit = np.empty(rows.y.shape), np.zeros_like(exponents)
    for j in np.unique(rows.folds):
        out = rows.folds == j
        grown = _grow(rows.inputs[~out], rows.y[~out], judged.weights[~out], no_unit, n_cores)
        of_trees[out] = grown.predict(rows.inputs[out])
    return _grow(rows.inputs, rows.y, judged.weights, exponents, n_cores), of_trees


def _errors(
    predicted: Mapping[str, Floats], y: Floats, judged: FoldRows
) -> dict[str, dict[str, float]]:
    """Return errors by head, and the standard errors of their differences to the least error."""
    losses = {
        name: ((predictions - y) ** 2 / judged.units).mean(axis=1)
        for name, predictions in predicted.items()
    }
    errors = {name: judged.mean(values) for name, values in losses.items()}
    best = losses[min(errors, key=lambda name: errors[name])]
    spreads = {name: judged.standard_error(values - best) for name, values in losses.items()}
    return {"errors": errors, "standard_errors": spreads}


def _grow(
    inputs: NDArray[np.float32], y: Floats, weights: Floats, unit: Integers, n_cores: int
) -> Trees:
    """Return trees that predict y 2^``unit``; labels are scaled so that none dominates the splits.

    The mean is subtracted if it is far from 0, because scikit-learn sums squares.
    """
    from sklearn.ensemble import (  # noqa: PLC0415 - most fits have no trees
        ExtraTreesRegressor,
        HistGradientBoostingRegressor,
    )

    mean = np.average(y, axis=0, weights=weights)
    spread = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=weights))
    exponents = np.where(spread > 0, np.frexp(spread)[1], 0).astype(np.int64)
    origin = np.where((spread > 0) & (np.abs(mean) > _FAR_MEAN * spread), mean, 0.0)
    scaled, sample_weight = (
        np.ldexp(y - origin, -exponents),
        None if (weights == weights[0]).all() else weights,
    )
    exponents, origin = exponents + unit, np.ldexp(origin, unit)
    if len(y) > MAX_RANDOMISED:
        boosted = [
            HistGradientBoostingRegressor(**_BOOSTING, random_state=_SEED).fit(
                inputs, target, sample_weight
            )
            for target in scaled.T
        ]
        return Trees.of_boosted(boosted, exponents, origin)
    node = _NODE_BYTES + 8 * y.shape[1]
    forest = ExtraTreesRegressor(
        N_RANDOMISED,
        min_samples_leaf=max(1, -(-2 * len(y) * N_RANDOMISED * node // _MAX_TREES_BYTES)),
        max_features=max(1, min(SPLIT_COLUMNS, inputs.shape[1] // 3)),
        random_state=_SEED,
        n_jobs=n_cores,
    )
    with warnings.catch_warnings():  # scikit-learn's threads race for the filters, and empty them
        forest.fit(inputs, scaled[:, 0] if y.shape[1] == 1 else scaled, sample_weight)
    return Trees.of_forest(forest, exponents, origin)


def _rows_of(
    model: RidgeModel,
    inputs: TreeInputs,
    made: FoldCalibration,
    folds: Folds,
    known: Integers,
    batch: Batch,
) -> HeadRows:
    """Return the rows of a batch, with the predictions of the ridge of each bag's fold."""
    y = np.asarray(model.outcome.encode(batch.labels)[0], np.float64)
    own = np.searchsorted(known, folds.of(batch.index))
    of_ridge = made.of_own_folds(model.features, model.precision, batch.bags, own)
    return HeadRows(batch.index, own, inputs.of(batch.bags), y, of_ridge)
