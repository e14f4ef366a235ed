"""The protocols of a fitted model, which other modules use, and checks of bags against a model."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import xxhash

from ..core.arrays import Floats, Integers
from ..core.constraints import brief
from ..core.errors import ModelError, ParameterError, shown
from ..data.bags.bags import Bags
from ..data.bags.coordinates import Names, order_of
from ..data.bags.responses import Responses
from ..data.labelled.holdout import Holdout
from ..data.labelled.inputs import BagsLike
from ..data.labelled.labelled import LabelledBags
from ..data.storage.urls import is_same_place
from ..data.store.schema import OFFSETS, POINTS
from ..data.store.store import BagStore
from ..data.store.verify import checksum_of_first
from ..execution.costs import Cost
from .outcomes.base import Outcome, Prediction
from .posterior import BagScores

__all__ = ["BagsLike"]

COVERAGE = 0.9

OUTSIDE_COLUMN = "outside"  # fraction of a bag's points outside the box
POSTERIOR_COLUMNS = ("std", *BagScores._fields)  # columns that need a posterior
INTERVAL_COLUMNS = ("lower", "upper")  # columns that need a calibration
SET = "set"  # needs a calibration, too; for classes
# All columns that a prediction may have in addition.
PREDICTED_COLUMNS = (*POSTERIOR_COLUMNS, *INTERVAL_COLUMNS, SET, OUTSIDE_COLUMN)


class MoreColumns(NamedTuple):
    """Columns in addition to the prediction: their names, and the coverage of intervals."""

    names: Sequence[str] = ()
    coverage: float = COVERAGE


NO_COLUMNS = MoreColumns()


class PredictedRows(NamedTuple):
    """Raw predictions (n, k), and the other values from which columns are computed.

    Attributes
    ----------
    values : float64, shape (n, k)
        Raw predictions.
    scores : float64, shape (n, 2)
        Leverage and Mahalanobis distance; no rows if no column needs the posterior.
    spread : float64, shape (n, k)
        Variance of the predictions due to the sampling of a bag; no rows if no column needs the
        posterior.
    of_folds : float64, shape (n, k, K)
        Predictions by the models of the folds; no rows if no interval needs them.
    scales : float64, shape (n, k, K), or None
        Scales of the errors by folds; None if intervals have no scale.
    """

    values: Floats
    scores: Floats
    spread: Floats
    of_folds: Floats
    scales: Floats | None = None

    @classmethod
    def none(cls, k: int) -> PredictedRows:
        """Return the predictions for no bags."""
        return cls(np.empty((0, k)), np.empty((0, 2)), np.empty((0, k)), np.empty((0, k, 0)))


PredictionArray = Any
"""A numpy array for bags in memory, a lazy dask.array for a BagStore."""


FRAME_COLUMNS = "frame_columns"
"""In the report of a fit: columns of the frame that gave labels, groups or weights."""


class Features(Protocol):
    """The features of bags, in which a model is linear."""

    @property
    def n_dims(self) -> int:
        """Number of coordinates of a point."""
        ...

    @property
    def n_features(self) -> int:
        """Number of features of a bag."""
        ...

    @property
    def cost(self) -> Cost:
        """Cost of computing the features."""
        ...


class ScoringModel(Protocol):
    """A model whose errors can be computed."""

    @property
    def outcome(self) -> Outcome:
        """The outcome that was learnt."""
        ...

    @property
    def features(self) -> Features:
        """The features of a bag."""
        ...

    @property
    def mean_targets(self) -> Floats | None:
        """Mean of the encoded labels fitted, shape (k,); None if the outcome does not keep it."""
        ...

    @property
    def prediction_cost(self) -> Cost:
        """Cost of a prediction: that of `features`, and of other inputs of the model."""
        ...

    def decision_rows(self, bags: Bags) -> Floats:
        """Return the raw predictions for the outcome, shape (n_bags, k)."""
        ...


def mean_of(model: ScoringModel) -> Floats:
    """Return the mean of the encoded labels fitted; the outcome of the model must keep it."""
    assert model.mean_targets is not None
    return model.mean_targets


class JudgedModel(ScoringModel, Protocol):
    """A model that knows to which bags of a store it was fitted."""

    @property
    def holdout(self) -> float | dict[str, Any]:
        """Bags that were left out of the fit, see `Holdout`."""
        ...

    @property
    def report(self) -> dict[str, Any]:
        """Report of the fit; ``data_url`` is the URL of the store."""
        ...


class FittedModel(JudgedModel, Protocol):
    """A model that predicts the bags of a store."""

    def predicted(self, bags: Bags, columns: MoreColumns = NO_COLUMNS) -> Prediction:
        """Return the prediction for bags in memory, with more columns."""
        ...

    def with_columns(self, rows: PredictedRows, columns: MoreColumns) -> Prediction:
        """Return predictions of raw rows, with more columns."""
        ...


_Model = TypeVar("_Model", covariant=True)


class FittedEstimator(Protocol[_Model]):
    """An estimator with a fitted model."""

    @property
    def model_(self) -> _Model:
        """The fitted model."""
        ...


def model_of(estimator: FittedEstimator[_Model]) -> _Model:
    """Return the fitted model of an estimator; ModelError before a fit."""
    if not hasattr(estimator, "model_") and not hasattr(estimator, "fit"):
        hint = (
            "; load_model(url) reads a saved model"
            if isinstance(estimator, (str, os.PathLike))
            else ""
        )
        raise ParameterError(
            f"model is {brief(estimator)}; expected a fitted estimator, before the bags{hint}"
        )
    if not hasattr(estimator, "model_"):
        raise ModelError("the model is not fitted; call fit before predicting")
    return estimator.model_


MODEL_FITTED_ON = "the model was fitted on"
DIGEST = "data_digest"
"""In the report of a fit: counts and a hash of the bags."""
STORED = "stored"  # instead of the hash of points: a hash of a store's checksums
HASH = "xxh3_128"  # tells bags from others, and is no secret: a tenth of blake2b's time
_HASHES: dict[str, Callable[[bytes], Any]] = {  # by their key in a report
    HASH: xxhash.xxh3_128,
    "points": partial(hashlib.blake2b, digest_size=16),  # of models that were saved before
}
MAX_POINTS_COMPARED = 2**24  # points of a store that are read once more, in about a second
_BYTES_PER_DIGEST = 2**18  # bytes of float64 points that are hashed at a time
JUDGED_ON_FITTED = "The model was fitted to bags that it is judged on: errors are too small."


_COUNTS = (
    "n_bags_fitted",
    "n_bags_held_out",
    "n_bags_unlabelled",
    "n_points_seen",
    "n_points_outside_box",
)
_WEIGHTS = ("weight_fitted", "baseline_alpha")


def check_report(report: object) -> None:
    """Raise ValueError if a saved report lacks valid entries for predictions and summaries."""
    if not isinstance(report, Mapping):
        raise ValueError(f"its report is {shown(report)}; expected a mapping")
    names, columns = report.get("coordinates"), report.get(FRAME_COLUMNS, ())
    choice = report.get("choice")
    tried = choice.get("tried", ()) if isinstance(choice, Mapping) else None
    fits = {
        "coordinates": names is None or _is_list_of(str, names),
        FRAME_COLUMNS: _is_list_of(str, columns),
        "choice": choice is None or _is_list_of(Mapping, tried),
    }
    for key in (key for key in _COUNTS if key in report):
        fits[key] = type(report[key]) is int and report[key] >= 0
    for key in (key for key in _WEIGHTS if key in report):
        fits[key] = type(report[key]) in (int, float) and 0 <= report[key] < inf
    for key, does_fit in fits.items():
        if not does_fit:
            raise ValueError(f"{key!r} of its report is {shown(report[key])}")


def _is_list_of(kind: type, values: object) -> bool:
    return isinstance(values, (list, tuple)) and all(isinstance(value, kind) for value in values)


def names_fitted(report: Mapping[str, Any]) -> Names:
    """Return the names of the coordinates of the bags fitted; None if they had no names."""
    names: Names = report.get("coordinates")
    return names


def in_fitted_order(bags: Bags, report: Mapping[str, Any]) -> Bags:
    """Return bags with their coordinates in the order of the bags fitted.

    Raises
    ------
    ModelError
        If the coordinates have other names.
    """
    return bags.in_order_of(
        names_fitted(report), what="these bags", reference=MODEL_FITTED_ON, error=ModelError
    )


def check_names(report: Mapping[str, Any], data: Bags | BagStore | LabelledBags) -> None:
    """Raise ModelError for bags whose coordinates have other names than those fitted."""
    what = "these bags" if isinstance(data, Bags) else data.url or "these bags"
    order_of(data.coordinate_names, names_fitted(report), what, MODEL_FITTED_ON, ModelError)


def check_predictable(model: JudgedModel, data: BagStore | LabelledBags, subset: str) -> None:
    """Raise ModelError if bags have other dimensions or names, or the subset does not exist."""
    check_names(model.report, data)
    if data.n_dims != model.features.n_dims:
        raise ModelError(
            f"the model was fitted on bags of dimension {model.features.n_dims}, "
            f"{data.url or 'the data'} holds dimension {data.n_dims}"
        )
    if subset == "holdout" and not model.holdout:
        raise ModelError("the model held no bags out; fit with holdout= or evaluate another store")


def natural_subsets(model: JudgedModel, data: BagStore | LabelledBags) -> tuple[str, ...]:
    """Return the subsets to judge a model on; the first one with a labelled bag is used."""
    return ("holdout", "all") if model.holdout and is_fitted_to(model, data) else ("all",)


def is_fitted_to(model: JudgedModel, data: BagStore | LabelledBags) -> bool:
    """Whether the model was fitted to these data: to this store, or to bags with these points.

    A copy of the store is known by its checksums. A copy to which bags were appended, or whose
    coordinates have another order, is known if it has no other changes and at most
    `MAX_POINTS_COMPARED` points were fitted. False for bags in memory if an earlier version fitted
    the model without a holdout, or a later one has another hash.
    """
    digest = model.report.get(DIGEST)
    if data.url is not None:
        store: Any = data if isinstance(data, BagStore) else data.data
        if is_same_place(data.url, model.report.get("data_url")):
            return True
        return digest is not None and (
            digest == _digest_of_store(store) or _begins_with_fitted(store, model.report)
        )
    if digest is None or not isinstance(data, LabelledBags) or not isinstance(data.data, Bags):
        return False
    if (data.n_bags, data.n_points) != (digest["n_bags"], digest["n_points"]):
        return False
    return any(digest_of_bags(data, key) == digest[key] for key in _HASHES if key in digest)


def is_of_other_bags(report: Mapping[str, Any], store: BagStore) -> bool:
    """Whether a model was fitted to other bags than a store has; False where nothing tells."""
    digest, present = report.get(DIGEST), _digest_of_store(store)
    return None not in (digest, present) and digest != present


def digest_of_fitted(bags: LabelledBags) -> dict[str, Any]:
    """Return the entry of a report that identifies bags; empty for a store without checksums."""
    if isinstance(bags.data, BagStore):
        digest = _digest_of_store(bags.data)
        return {} if digest is None else {DIGEST: digest}
    sizes = {"n_bags": bags.n_bags, "n_points": bags.n_points}
    return {DIGEST: {**sizes, HASH: digest_of_bags(bags)}}


def _digest_of_store(store: BagStore) -> dict[str, Any] | None:
    """Return counts and checksums of the bags of a store, which its copies share; None without."""
    crcs = [array.checksum(store.meta) for array in (OFFSETS, POINTS)]
    return None if None in crcs else _digest_of_rows(store, crcs, store.n_bags, store.n_points)


def _digest_of_rows(
    store: BagStore,
    crcs: Sequence[int | None],
    n_bags: int,
    n_points: int,
    order: Integers | None = None,
) -> dict[str, Any]:
    """Return counts of a store's first bags, and a hash of the checksums of their rows.

    ``order`` are the positions of the coordinates whose checksum is given; None: all in order.
    """
    scale = store.box.bounds if store.meta.fractions else None  # the points are fractions of it
    if scale is not None and order is not None:
        scale = [scale[j] for j in order.tolist()]
    text = json.dumps([*crcs, store.n_dims, scale])
    digest = xxhash.xxh3_128(text.encode()).hexdigest()
    return {"n_bags": n_bags, "n_points": n_points, STORED: digest}


def _begins_with_fitted(store: BagStore, report: Mapping[str, Any]) -> bool:
    """Whether the first bags of a store are the fitted ones.

    Bags were then added to a copy, or its coordinates have another order.
    """
    digest, names, fitted = report[DIGEST], store.coordinate_names, names_fitted(report)
    n_bags, n_points = digest["n_bags"], digest["n_points"]
    if STORED not in digest or n_bags > store.n_bags or store.meta.n_changes:
        return False
    if names and fitted and {*names} != {*fitted}:
        return False
    order = order_of(names, fitted, store.url, MODEL_FITTED_ON, ModelError)
    if order is None and n_bags == store.n_bags:
        return False
    end = OFFSETS.leading + n_bags
    if n_points > MAX_POINTS_COMPARED or store.read_stored(OFFSETS, end - 1, end)[0] != n_points:
        return False
    crcs = [
        checksum_of_first(store, OFFSETS, end),
        checksum_of_first(store, POINTS, n_points, order),
    ]
    return bool(_digest_of_rows(store, crcs, n_bags, n_points, order) == digest)


def digest_of_bags(bags: LabelledBags, algorithm: str = HASH) -> str:
    """Return a hash of the points of bags in memory, and of their division into bags."""
    assert isinstance(bags.data, Bags)
    return digest_of_points(bags.ordered(bags.data), algorithm)


def digest_of_points(data: Bags | Responses, algorithm: str = HASH) -> str:
    """Return a hash of the points of bags or responses, and of their division.

    Equal numbers have equal hashes, whatever their dtype is. ``algorithm`` is the hash's key in
    the report of a fit.
    """
    digest = _HASHES[algorithm](data.sizes.astype("<i8").tobytes())
    step = max(1, _BYTES_PER_DIGEST // (8 * data.points.shape[1]))
    # one buffer that stays in the cache: new arrays take as long as the hash
    buffer = np.empty((min(step, data.n_points), data.points.shape[1]), "<f8")
    for start in range(0, data.n_points, step):
        block = data.points[start : start + step]
        rows = buffer[: len(block)]
        rows[:] = block
        digest.update(rows.data)
    return str(digest.hexdigest())


def take_subset(bags: LabelledBags, model: JudgedModel, subset: str) -> LabelledBags:
    """Return the subset of the bags: those held out by the model, those of the fit, or all."""
    held_out = None if subset == "all" else Holdout.of(model.holdout).split(bags)
    if held_out is None:
        return bags
    return replace(bags, only=held_out) if subset == "holdout" else replace(bags, left_out=held_out)
