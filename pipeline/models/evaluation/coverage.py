"""`judge_intervals`: the coverage of a model's intervals on bags that it has not seen."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from ...core import Instance, checked
from ...core.arrays import Floats
from ...core.errors import DataError, ParameterError
from ...core.sums import Sums
from ...data.labelled.labelled import Batch
from ...data.store.store import BagStore
from ...execution.passes import Folded, Reduction, run_pass
from ...execution.progress import Progress
from ..fitted_model import FittedEstimator, JudgedModel, is_fitted_to, model_of, take_subset
from ..judging import judging_cost
from ..ridge_model import RidgeModel
from ..verdict import share_error

COVERAGES = (0.5, 0.8, 0.9, 0.95)


@checked
def judge_intervals(
    model: FittedEstimator[JudgedModel],
    store: Annotated[BagStore, Instance()],
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Return the fraction of labels in the intervals, and their mean width, for several coverages.

    For a classifier, the fraction of true classes in the prediction sets, and the mean size of the
    sets.

    Parameters
    ----------
    model : fitted estimator
    store : BagStore
        Store that the model was fitted to, whose held-out bags are judged; or another store with
        the targets of the model.
    progress : callable (bags done, bags in all), optional

    Returns
    -------
    list of dict
        A dict for each ``target`` and each ``coverage`` that can be guaranteed: the fraction of
        labels ``covered``, its ``standard_error``, the ``mean_width`` (for sets the ``mean_size``,
        in classes), and ``n``, the number of bags. The list is empty for a model without intervals
        or sets. It is also empty if all held-out bags were used for calibration, because their
        errors are part of the intervals.
    """
    fitted = model_of(model)
    if not isinstance(fitted, RidgeModel):  # a network
        return []
    calibration = fitted.calibration
    is_known = is_fitted_to(fitted, store)
    if calibration is None or (is_known and not (calibration.uses_fitted and fitted.holdout)):
        return []
    try:
        bags = fitted.outcome.take_labels(store)
    except DataError:  # a store without these targets
        return []
    promised = [c for c in COVERAGES if _can_promise(fitted, c)]
    counts = run_pass(
        take_subset(bags, fitted, "holdout") if is_known else bags,
        Reduction(
            partial(Folded, partial(_count, fitted, promised), operator.add, _Counts()),
            operator.add,
            judging_cost(fitted),
            name="coverage",
        ),
        progress=progress,
    )
    return counts.values(fitted, promised) if counts.n else []


def _can_promise(model: RidgeModel, coverage: float) -> bool:
    try:
        model.require_calibration().rank(coverage)
    except ParameterError:
        return False
    return True


@dataclass(frozen=True)
class _Counts(Sums):
    """Sums over n bags, shape (coverages, k): labels that are covered, and widths."""

    n: int = 0
    covered: Floats | float = 0.0
    widths: Floats | float = 0.0

    def values(self, model: RidgeModel, promised: list[float]) -> list[dict[str, Any]]:
        names, width = model.outcome.target_labels, "mean_width"
        if model.outcome.has_sets:
            names, width = model.outcome.scored_names, "mean_size"
        shares, widths = np.asarray(self.covered) / self.n, np.asarray(self.widths) / self.n
        return [
            {
                "target": name,
                "coverage": coverage,
                "covered": float(shares[i, j]),
                "standard_error": share_error(float(shares[i, j]), self.n),
                width: float(widths[i, j]),
                "n": self.n,
            }
            for j, name in enumerate(names)
            for i, coverage in enumerate(promised)
        ]


def _count(model: RidgeModel, promised: list[float], batch: Batch) -> _Counts:
    targets, _ = model.outcome.encode(batch.labels)
    rows = model.interval_rows(batch.bags)
    covered, widths = [], []
    for coverage in promised:
        if model.outcome.has_sets:
            sets = model.sets_of(rows, coverage)
            covered.append([(sets & (targets > 0)).sum()])
            widths.append([sets.sum()])
            continue
        lower, upper = model.require_calibration().ends(
            rows.values, rows.of_folds, coverage, rows.scales
        )
        covered.append(((lower <= targets) & (targets <= upper)).sum(axis=0))
        widths.append((upper - lower).sum(axis=0))
    return _Counts(len(batch), np.array(covered, dtype=float), np.array(widths, dtype=float))
