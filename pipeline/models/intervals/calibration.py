"""Intervals of a promised coverage from the errors of held-out bags (split conformal prediction).

If a new bag and the m calibration bags are exchangeable, its error is at most the ⌈(m + 1) c⌉-th
smallest of theirs with a probability of at least c, whatever the model and the distribution of the
bags (Vovk et al. 2005; Lei et al. 2018). Bags of one group are not exchangeable with those of
another: one bag of each group then counts, and the promise is to a bag of a new group (Dunn et al.
2023).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from typing_extensions import override

from ...core import Share
from ...core.arrays import Floats
from ...core.errors import DataError, ParameterError
from ...data.labelled.columns import Column
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.splits import hash_index
from ...data.store.changes import ListedBags
from ...execution.passes import Reduction, run_pass
from ...execution.progress import Progress
from ..fitted_model import ScoringModel
from ..model_state import OptionalPart

CALIBRATION_SEED = 4  # of the hash that takes one bag per group, and no more than serve
MOST_BAGS = 10_000  # the coverage of more differs from what is promised by less than .003


@dataclass(frozen=True, eq=False)
class Calibration(OptionalPart):
    """Absolute errors of bags that the model was not fitted to.

    Attributes
    ----------
    errors : float64, shape (m, k)
        Errors of each of k targets, ascending; one bag per group where bags have groups.
    """

    errors: Floats

    key: ClassVar[str] = "calibration"
    arrays: ClassVar[tuple[str, ...]] = ("errors",)
    uses_fitted: ClassVar[bool] = False  # errors of bags fitted, none of those held out

    @classmethod
    def of(
        cls,
        model: ScoringModel,
        bags: LabelledBags,
        groups: Column | None = None,
        progress: Progress | None = None,
    ) -> Calibration | None:
        """Return the errors of the labelled bags, of at most `MOST_BAGS`; None if there are none.

        ``groups`` has a value for every bag of the data.

        Raises
        ------
        DataError
            Another number of targets than the model's, or a bag that is refused.
        """
        chosen = choose_calibrating(bags, model.outcome.n_targets, groups)
        if chosen is None:
            return None
        cost = model.prediction_cost
        reduction = Reduction(partial(_Errors, model), join_rows, cost, name="calibrate")
        return cls(np.sort(run_pass(chosen, reduction, progress=progress), axis=0))

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        if self.errors.ndim != 2 or self.errors.shape[1] != n_targets or not len(self.errors):
            raise ValueError(f"errors of held-out bags have shape {self.errors.shape}")

    @property
    def told(self) -> str:
        """Where the intervals come from, in words."""
        return f"the errors of {len(self.errors):,} bags held out"

    def rank(self, coverage: float) -> int:
        """See `rank_of`."""
        return rank_of(len(self.errors), coverage)

    def margins(self, coverage: float) -> Floats:
        """Return half the width of intervals of each target, shape (k,).

        Raises
        ------
        ParameterError
            Too few bags for the coverage.
        """
        margins: Floats = self.errors[self.rank(coverage) - 1]
        return margins

    def ends(self, rows: Floats, of_folds: Floats, coverage: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends for predictions (n, k); there are no folds."""
        margins = self.margins(coverage)
        return rows - margins, rows + margins


def rank_of(m: int, coverage: float) -> int:
    """Return which of m errors, in ascending order, a new one exceeds with the share left over.

    Raises
    ------
    ParameterError
        Too few bags for the coverage.
    """
    Share.check("coverage", coverage)
    rank = int(np.ceil((m + 1) * coverage - 1e-9))
    if rank > m:
        raise ParameterError(
            f"coverage is {coverage:g}, which takes {int(np.ceil(coverage / (1 - coverage)))} "
            f"held-out bags (or groups), and there are {m}: at most {m / (m + 1):.3g} can be "
            "promised"
        )
    return rank


def choose_calibrating(
    bags: LabelledBags, n_targets: int, groups: Column | None
) -> LabelledBags | None:
    """Return the labelled bags whose errors count, at most `MOST_BAGS`; None if there are none.

    One of each group, where bags have ``groups``; a hash decides.

    Raises
    ------
    DataError
        Another number of targets than ``n_targets``.
    """
    found = []
    for (start, _), some, labels in bags.label_blocks():
        found.append(start + some)
        if labels.shape[1] != n_targets:
            raise DataError(f"there are {labels.shape[1]} targets, the model has {n_targets}")
    rows = np.concatenate(found)
    rows = rows[np.argsort(hash_index(rows.astype(np.uint64), CALIBRATION_SEED))]
    if groups is not None:
        in_order = np.sort(rows)
        values = groups.at(in_order)[np.searchsorted(in_order, rows)]
        rows = rows[np.unique(values, return_index=True)[1]]
        # again, for the larger a group, the earlier one of its bags came
        rows = rows[np.argsort(hash_index(rows.astype(np.uint64), CALIBRATION_SEED + 1))]
    if not len(rows):
        return None
    return replace(bags, left_out=None, only=ListedBags(np.sort(rows[:MOST_BAGS])))


class _Errors:
    """A `Collector` of the absolute errors of a range of bags."""

    def __init__(self, model: ScoringModel) -> None:
        self._model = model
        self._found = [np.empty((0, model.outcome.n_targets))]

    def add(self, batch: Batch) -> None:
        if len(batch):
            targets, _ = self._model.outcome.encode(batch.labels)
            self._found.append(np.abs(self._model.decision_rows(batch.bags) - targets))

    def finish(self) -> Floats:
        return join_rows(*self._found)


def join_rows(*parts: Floats) -> Floats:
    """Return rows one after the other."""
    joined: Floats = np.concatenate(parts)
    return joined
