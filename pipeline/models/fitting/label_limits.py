"""Outliers among labels, which a fit ignores if the bags do not predict them.

With squared errors, a single label of a hundred times the usual spread dominates a fit. Such labels
are ignored if their bags do not differ from other bags. Far labels that bags predict, and the long
tail of a skewed distribution, are fitted unchanged, because the model has to predict their mean.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ...core.arrays import Floats
from ...core.errors import warn
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.weights import Weights
from ..bag_summaries import MomentsAndExtremes
from ..outcomes.reals import Reals
from .choice.sample import count_labelled
from .fit_parameters import FOLDED_BAGS, FitParameters
from .problem import Problem

_MIN_LABELS = 20  # with fewer labels, quartiles mean little
# Interquartile ranges beyond the quartiles (Tukey 1977): between the fences a label is outside,
# beyond the outer one far outside. One in 430,000 labels of a normal distribution is far outside.
INNER_FENCE, OUTER_FENCE = 1.5, 3.0
MAX_FAR_FRACTION = 0.1  # fraction of all labels: more of them are a part of the distribution
# The far labels of a long tail follow on many that are outside. Outliers stand apart: there are at
# most half as many labels between the fences, and the farthest is twice as far as the fence.
MAX_BETWEEN, MIN_APART = 0.5, 2.0
# Far labels of a symmetric long tail are at least so many, and their sum is within so many standard
# errors of 0.
MIN_BALANCED, BALANCE = 4, 2.0
# Predictions of far labels must lie on the side of these labels: by standard errors of their mean,
# and, as several outliers do by chance, by a fraction of the deviation of all predictions.
PREDICTED, _MIN_SHARE = 1.5, 0.75
_MAX_COLUMNS = 16  # columns with outliers: each takes a forest
_N_TREES = 100
_SEED = 0


def ignoring_outliers(problem: Problem, parameters: FitParameters) -> Problem:
    """Return the problem with limits of labels, if some are outliers; else the problem itself.

    Labels have limits only if they are numbers, the penalty is chosen automatically, and there are
    at most 4,096 bags, because with more bags outliers average out. They have no limits if more
    than `_MAX_COLUMNS` columns have outliers, because each column needs a forest. A warning names
    the ignored labels.
    """
    source, weights = problem.fitted, problem.weights or Weights()
    is_asked = parameters.has_automatic_penalty and isinstance(problem.outcome, Reals)
    if not is_asked or weights.limits is not None or count_labelled(source) > FOLDED_BAGS:
        return problem
    blocks = [problem.outcome.encode(labels)[0] for _, _, labels in source.label_blocks()]
    if not blocks:
        return problem
    y = np.concatenate(blocks).astype(np.float64)
    limits = _limits_of(y)
    beyond = (y < limits[0]) | (y > limits[1])
    if not 0 < np.count_nonzero(beyond.any(axis=1)) <= MAX_FAR_FRACTION * len(y):
        return problem
    if np.count_nonzero(beyond.any(axis=0)) > _MAX_COLUMNS:
        return problem
    inputs = _summaries(source)
    for j in np.flatnonzero(beyond.any(axis=0)):
        if _is_predicted(inputs, y[:, j], beyond[:, j]):
            limits[:, j], beyond[:, j] = [-np.inf, np.inf], False
            continue
        low, high = limits[:, j]
        n = np.count_nonzero(beyond[:, j])
        warn(
            f"{problem.outcome.call(int(j))}: {n:,} of {len(y):,} labels are outliers, below "
            f"{low:.3g} or above {high:.3g}, and their bags do not predict them; the fit ignores "
            "them: correct the labels, or give alpha='folds' to fit all of them"
        )
    if not beyond.any():
        return problem
    return replace(problem, weights=replace(weights, limits=limits))


def _limits_of(y: Floats) -> Floats:
    """Return the outer fences of columns with outliers, shape (2, k), and infinities for others."""
    limits = np.tile([[-np.inf], [np.inf]], (1, y.shape[1]))
    if len(y) < _MIN_LABELS:
        return limits
    with np.errstate(over="ignore", invalid="ignore"):
        quartiles = np.quantile(y, [0.25, 0.75], axis=0)
        ranges = quartiles[1] - quartiles[0]
        distances = np.maximum(quartiles[0] - y, y - quartiles[1])
        for j in np.flatnonzero(np.isfinite(ranges) & (ranges > 0)):
            signed = np.where(y[:, j] > quartiles[1, j], 1.0, -1.0) * distances[:, j] / ranges[j]
            if _are_outliers(signed):
                fence = OUTER_FENCE * ranges[j]
                limits[:, j] = quartiles[0, j] - fence, quartiles[1, j] + fence
    return limits


def _are_outliers(distances: Floats) -> bool:
    """Return whether labels have outliers, by interquartile ranges beyond the nearest quartile."""
    sizes = np.abs(distances)
    is_beyond = distances[sizes > OUTER_FENCE]
    n = len(is_beyond)
    if n == 0 or n > MAX_FAR_FRACTION * len(distances):
        return False
    n_between = np.count_nonzero((sizes > INNER_FENCE) & (sizes <= OUTER_FENCE))
    if n_between <= MAX_BETWEEN * n and np.abs(is_beyond).max() > MIN_APART * OUTER_FENCE:
        return True
    balanced = abs(is_beyond.sum()) <= BALANCE * np.sqrt((is_beyond**2).sum())
    return bool(n >= MIN_BALANCED and balanced and (is_beyond > 0).any() and (is_beyond < 0).any())


def _summaries(source: LabelledBags) -> Floats:
    """Return moments and extremes of the labelled bags, in the order of their labels."""
    summaries = MomentsAndExtremes(source.n_dims)
    return np.concatenate([summaries.of(batch.bags) for batch in source.batches() if len(batch)])


def _is_predicted(inputs: Floats, y: Floats, beyond: NDArray[np.bool_]) -> bool:
    """Return whether out-of-bag predictions of trees are on the side of the far labels.

    Trees are fitted to ranks of labels, so that far labels do not dominate the splits.
    """
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 - most fits have no outliers

    ranks = rankdata(y) / len(y) - 0.5
    forest = ExtraTreesRegressor(
        _N_TREES, min_samples_leaf=2, bootstrap=True, oob_score=True, random_state=_SEED
    )
    with np.errstate(over="ignore"):
        inputs = np.clip(inputs, -1e30, 1e30)
    expected = forest.fit(inputs, ranks).oob_prediction_
    expected = expected - expected.mean()
    sides = np.sign(ranks[beyond]) * expected[beyond]
    least = max(PREDICTED / np.sqrt(len(sides)), _MIN_SHARE)
    return bool(sides.mean() > least * expected.std())
