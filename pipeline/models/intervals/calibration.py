"""Intervals with a guaranteed coverage from errors of held-out bags (split conformal prediction).

Let a new bag and the m calibration bags be exchangeable. Then the error of the new bag is at most
the ⌈(m + 1) c⌉-th smallest calibration error with a probability of at least c, for any model and
any distribution of the bags (Vovk et al. 2005; Lei et al. 2018). Errors are divided by a scale that
is predicted for each bag, see `ErrorScale`. The scale is learnt from other bags, so that the
guarantee holds. Bags of one group are not exchangeable with bags of another group. With groups, one
bag of each group is used, and the guarantee is for a bag of a new group (Dunn et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from typing_extensions import override

from ...core import Fraction
from ...core.arrays import Bools, Floats, Integers
from ...core.errors import DataError, ParameterError
from ...data.labelled.columns import Column
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.splits import N_FOLDS, hash_index
from ...data.store.changes import ListedBags
from ...data.store.sampling import spread_rows
from ...execution.costs import Cost
from ...execution.passes import rows_of, run_pass
from ...execution.progress import Progress
from ..fitted_model import ScoringModel
from ..fitting.feature_map import FeatureMap
from ..model_state import ModelState, OptionalPart
from ..outcomes.base import Outcome
from .error_scale import MAX_SCALED_TARGETS, MIN_SCALE_ROWS, ErrorRows, ErrorScale, rows_to_learn

CALIBRATION_SEED = 4  # of the hash that takes one bag per group, and no more than are needed
_SCALE, _SCALED = "scale", "scaled_"  # a field of calibrations, and the prefix of their saved key
CURVED = "curved_"  # the prefix where the scale has a curve, too
SCALE_ARRAYS = {_SCALED: ErrorScale.arrays, CURVED: (*ErrorScale.arrays, *ErrorScale.of_curve)}
MAX_COVERED_BAGS = 10_000  # the coverage of more differs from the nominal one by less than .003


class CalibratedModel(ScoringModel, Protocol):
    """A model that can have intervals."""

    @property
    def features(self) -> FeatureMap:
        """The embedding and the random features."""
        ...

    @property
    def precision(self) -> str:
        """Precision of features."""
        ...


@dataclass(frozen=True, eq=False)
class ScaledPart(OptionalPart):
    """Errors in units of a scale; without a scale, absolute errors.

    A part with a scale is saved under another key. Versions that do not know scales then find no
    intervals, instead of mistaking the errors for absolute errors. A scale with a curve has a third
    key.
    """

    scale: ErrorScale | None = field(default=None, kw_only=True)

    @override
    def state(self) -> ModelState:
        base = super().state()
        values, arrays = dict(base.attributes[self.key]), base.arrays
        del values[_SCALE]
        if self.scale is None:
            return ModelState({self.key: values}, arrays)
        values["scale_sizes"] = list(self.scale.sizes)
        prefix = CURVED if self.scale.is_curved else _SCALED
        of_scale = {
            f"{self.key}_scale_{name}": getattr(self.scale, name) for name in SCALE_ARRAYS[prefix]
        }
        return ModelState({prefix + self.key: values}, {**arrays, **of_scale})

    @classmethod
    @override
    def array_names(cls, attributes: dict[str, Any]) -> list[str]:
        prefix = cls._prefix(attributes)
        if prefix is None:
            return super().array_names(attributes)
        of_scale = [f"{_SCALE}_{name}" for name in SCALE_ARRAYS[prefix]]
        return [f"{cls.key}_{name}" for name in (*cls.arrays, *of_scale)]

    @classmethod
    @override
    def from_state(cls, state: ModelState, n_targets: int, n_features: int) -> Self | None:
        prefix = cls._prefix(state.attributes)
        if prefix is None:
            return super().from_state(state, n_targets, n_features)
        values = dict(state.attributes[prefix + cls.key])
        sizes = values.pop("scale_sizes")
        arrays = {name: state.arrays[f"{cls.key}_scale_{name}"] for name in SCALE_ARRAYS[prefix]}
        if any(np.isnan(array).any() for array in arrays.values()):
            raise ValueError(f"a chunk of its {cls.key} is missing")
        part = super().from_state(
            ModelState({cls.key: values}, state.arrays), n_targets, n_features
        )
        assert part is not None
        if prefix == _SCALED:
            shape = arrays["intercept"].shape
            arrays |= {"knots": np.empty((*shape, 0)), "bends": np.zeros((*shape, 2))}
        scale = ErrorScale(**arrays, sizes=sizes)
        scale.check(part.n_scales, n_targets, n_features)
        return replace(part, scale=scale)

    @classmethod
    def _prefix(cls, attributes: dict[str, Any]) -> str | None:
        """Return the prefix of the key that a part with a scale is saved under; None: no scale."""
        return next((prefix for prefix in SCALE_ARRAYS if prefix + cls.key in attributes), None)

    @property
    def n_scales(self) -> int:
        """Number of folds with a separate scale."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Calibration(ScaledPart):
    """Errors of bags that the model was not fitted to.

    Attributes
    ----------
    errors : float64, shape (m, k)
        Absolute errors of each of k targets, in units of the scale, ascending. With groups, one bag
        per group.
    scale : ErrorScale or None
        Scale of the errors of each bag; None: all bags have the scale 1.
    """

    errors: Floats

    key: ClassVar[str] = "calibration"
    arrays: ClassVar[tuple[str, ...]] = ("errors",)
    uses_fitted: ClassVar[bool] = False  # errors of bags fitted, none of those held out

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        if self.errors.ndim != 2 or self.errors.shape[1] != n_targets or not len(self.errors):
            raise ValueError(f"errors of held-out bags have shape {self.errors.shape}")

    @property
    @override
    def n_scales(self) -> int:
        return 1

    @property
    def description(self) -> str:
        """Source of the intervals, in words."""
        return f"the errors of {len(self.errors):,} bags held out"

    def rank(self, coverage: float) -> int:
        """Return the rank of the error, in ascending order, that bounds intervals of a coverage."""
        return rank_of(len(self.errors), coverage)

    def margins(self, coverage: float) -> Floats:
        """Return half the width of intervals of each target, in units of the scale, shape (k,).

        Raises
        ------
        ParameterError
            If there are too few bags for the coverage.
        """
        margins: Floats = self.errors[self.rank(coverage) - 1]
        return margins

    def ends(
        self, rows: Floats, of_folds: Floats, coverage: float, scales: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return lower and upper ends for predictions (n, k) and scales (n, k, 1).

        Predictions of folds are not used.
        """
        margins = self.margins(coverage)
        if scales is not None:
            margins = margins * scales[:, :, 0]
        return rows - margins, rows + margins


@dataclass(frozen=True, eq=False)
class SetCalibration(Calibration):
    """Nonconformity scores of the true classes of bags that the model was not fitted to.

    Attributes
    ----------
    errors : float64, shape (m, 1)
        1 minus the probability of the true class, ascending. With groups, one bag per group.
    """

    key: ClassVar[str] = "set_calibration"

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        super().check(1, n_features)

    def sets(self, unlikely: Floats, of_folds: Floats, coverage: float) -> Bools:
        """Return which classes are in the set of each bag, shape (n, n_classes).

        ``unlikely`` is 1 minus the probability of each class. Predictions of folds are not used.
        """
        return count_below(self.errors[:, 0], unlikely) < self.rank(coverage)


def calibration_of(
    model: CalibratedModel,
    bags: LabelledBags,
    groups: Column | None = None,
    progress: Progress | None = None,
    scale: ErrorScale | None = None,
    learns_scale: bool = True,
) -> Calibration | None:
    """Return the calibration of a regressor or classifier; None without labelled bags.

    Parameters
    ----------
    model : RidgeModel
    bags : LabelledBags
        Calibration bags, of which at most `MAX_COVERED_BAGS` are used.
    groups : Column, optional
        Groups of the bags: a value for every bag of the data.
    progress : callable, optional
    scale : ErrorScale, optional
        Scale that was learnt from other bags.
    learns_scale : bool
        Whether to learn a missing scale from a third of the bags, if there are enough bags. The
        errors of these bags are not used for calibration.

    Raises
    ------
    DataError
        If the number of targets is not that of the model, or a bag is refused.
    """
    k = model.outcome.n_labels
    chosen = choose_calibrating(bags, k, groups)
    if chosen is None:
        return None
    if scale is None and learns_scale and can_have_scale(model.outcome):
        scale, chosen = _learn_from_third(model, chosen)
    cost = model.prediction_cost
    if scale is not None:
        cost += model.features.cost_in(model.precision)
    rows = rows_of("calibrate", partial(_scaled_errors_of, model, scale), cost, k)
    errors = np.sort(run_pass(chosen, rows, progress=progress), axis=0)
    kind = SetCalibration if model.outcome.has_sets else Calibration
    return kind(errors, scale=scale)


def can_have_scale(outcome: Outcome) -> bool:
    """Return whether errors can have a scale: the targets are a few numbers."""
    return outcome.has_intervals and outcome.n_targets <= MAX_SCALED_TARGETS


def count_below(errors: Floats, values: Floats) -> Integers:
    """Return the number of errors below each value; the errors are ascending."""
    return np.searchsorted(errors, values, side="left")


def rank_of(m: int, coverage: float) -> int:
    """Return the rank among m ascending errors that a new error exceeds with 1 − coverage at most.

    Raises
    ------
    ParameterError
        If there are too few bags for the coverage.
    """
    Fraction.check("coverage", coverage)
    rank = int(np.ceil((m + 1) * coverage - 1e-9))
    if rank > m:
        raise ParameterError(
            f"coverage is {coverage:g}, which takes {int(np.ceil(coverage / (1 - coverage)))} "
            f"held-out bags (or groups), and there are {m}: at most {m / (m + 1):.3g} can be "
            "promised"
        )
    return rank


def choose_calibrating(
    bags: LabelledBags, n_labels: int, groups: Column | None
) -> LabelledBags | None:
    """Return the labelled bags for calibration, at most `MAX_COVERED_BAGS`; None if there are none.

    With ``groups``, one bag of each group is chosen by a hash.

    Raises
    ------
    DataError
        If the number of targets is not ``n_labels``.
    """
    blocks = []
    for (start, _), some, labels in bags.label_blocks():
        blocks.append(start + some)
        if labels.shape[1] != n_labels:
            raise DataError(f"there are {labels.shape[1]} targets, the model has {n_labels}")
    rows = np.concatenate(blocks)
    rows = rows[np.argsort(hash_index(rows.astype(np.uint64), CALIBRATION_SEED))]
    if groups is not None:
        in_order = np.sort(rows)
        values = groups.at(in_order)[np.searchsorted(in_order, rows)]
        rows = rows[np.unique(values, return_index=True)[1]]
        # again, for the larger a group, the earlier one of its bags came
        rows = rows[np.argsort(hash_index(rows.astype(np.uint64), CALIBRATION_SEED + 1))]
    if not len(rows):
        return None
    return replace(bags, left_out=None, only=ListedBags(np.sort(rows[:MAX_COVERED_BAGS])))


def _learn_from_third(
    model: CalibratedModel, chosen: LabelledBags
) -> tuple[ErrorScale | None, LabelledBags]:
    """Return a scale that is learnt from a third of the bags, and the other bags."""
    assert isinstance(chosen.only, ListedBags)
    index, d = chosen.only.index, model.features.n_features
    learning = spread_rows(index[1::3], rows_to_learn(d))
    if len(learning) < MIN_SCALE_ROWS:
        return None, chosen
    cost = model.prediction_cost + model.features.cost_in(model.precision)
    cost += Cost(bytes_per_bag=8 * (1 + d))
    k = model.outcome.n_targets
    columns = rows_of("scale of errors", partial(_rows_to_learn, model), cost, k + 1 + d)
    rows = run_pass(replace(chosen, only=ListedBags(learning)), columns)
    folds = np.arange(len(rows)) % N_FOLDS
    scale = ErrorScale.learnt(ErrorRows(folds, rows[:, :k], rows[:, k], rows[:, k + 1 :]))
    if scale is None:
        return None, chosen
    return scale, replace(chosen, only=ListedBags(np.setdiff1d(index, learning)))


def _errors_of(model: ScoringModel, batch: Batch) -> Floats:
    """Return the errors of the bags of a batch, a row each."""
    targets, _ = model.outcome.encode(batch.labels)
    return model.outcome.nonconformity(model.decision_rows(batch.bags), targets)


def _scaled_errors_of(model: CalibratedModel, scale: ErrorScale | None, batch: Batch) -> Floats:
    """Return the errors of the bags of a batch in units of a scale, a row each."""
    errors, sizes = _errors_of(model, batch), batch.bags.sizes
    if scale is not None:
        for start, features, _ in model.features.blocks(batch.bags, model.precision):
            rows = slice(start, start + len(features))
            errors[rows] /= scale.of(features, sizes[rows])[:, :, 0]
    return errors


def _rows_to_learn(model: CalibratedModel, batch: Batch) -> Floats:
    """Return a row per bag: its errors, its number of points, and its features."""
    blocks = model.features.blocks(batch.bags, model.precision)
    features = np.concatenate([block.copy() for _, block, _ in blocks])
    return np.column_stack([_errors_of(model, batch), batch.bags.sizes, features])
