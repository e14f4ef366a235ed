"""Predicting a whole store: block by block for evaluation, or written beside its ids."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import zarr
from numpy.typing import NDArray

from ..bags import BagStore
from ..bags.plan import Range
from ..bags.reading import iter_bags
from ..bags.splits import HOLDOUT_SEED, Split
from ..errors import ModelError, ParameterError, StoreError
from ..execution import Progress, Report, map_tasks
from ..storage.files import storage_errors, writing_folder
from ..storage.replacing import attributes_of, check_replaceable, holds_parts
from ..storage.urls import filesystem, normalize_url
from ..storage.zarr_stores import zarr_store
from .double_basis import FittedModel
from .feature_map import naming
from .outcomes import Prediction
from .prediction import prediction_ranges

SUBSETS = ("all", "holdout", "train")
FORMATS = ("zarr", "parquet")
FORMAT_VERSION = 1
ATTRIBUTE = "bagbasis_predictions"


@dataclass(frozen=True)
class PredictedBlock:
    """Predictions of the bags ``rows`` (indices in the store)."""

    rows: NDArray[np.int64]
    prediction: NDArray[Any]
    probabilities: NDArray[np.float64] | None

    @property
    def as_prediction(self) -> Prediction:
        return Prediction(self.prediction, self.probabilities)


@dataclass(frozen=True)
class _PredictTask:
    model: FittedModel
    store: BagStore
    subset: str

    def __call__(self, bag_range: Range, report: Report) -> PredictedBlock:
        values, probabilities, rows = [], [], []
        for (a, b), bags in iter_bags(self.store, *bag_range):
            keep = members(self.model, self.subset, a, b)
            if keep.any():
                chosen = bags if keep.all() else bags[keep]
                rows.append(a + np.flatnonzero(keep))
                with naming(self.store.url, rows[-1]):
                    predicted = self.model.predicted(chosen)
                values.append(predicted.values)
                if predicted.probabilities is not None:
                    probabilities.append(predicted.probabilities)
            report(b - bag_range[0])
        if not rows:
            return PredictedBlock(np.empty(0, dtype=np.int64), np.empty(0), None)
        return PredictedBlock(
            np.concatenate(rows),
            np.concatenate(values),
            np.concatenate(probabilities) if probabilities else None,
        )


@dataclass(frozen=True)
class _WriteTask:
    """Predict a range and write it; the range is its own rows, or its own file."""

    predict: _PredictTask
    url: str
    format: str

    def __call__(self, bag_range: Range, report: Report) -> int:
        start, stop = bag_range
        block = self.predict(bag_range, report)
        ids = self.predict.store.ids(start, stop)
        if self.format == "zarr":
            group = zarr.open_group(zarr_store(self.url), mode="r+", zarr_format=3)
            for name, values in block.as_prediction.arrays().items():
                group[name][start:stop] = values  # type: ignore[index]
            group["ids"][start:stop] = ids  # type: ignore[index]
        else:
            fs, path = filesystem(self.url)
            with fs.open(f"{path}/part-{start:012d}.parquet", "wb") as file:
                _frame(self.predict.model, ids, block).to_parquet(file, index=False)
        return stop - start


def iter_predictions(
    model: FittedModel, store: BagStore, *, subset: str = "all", progress: Progress | None = None
) -> Iterator[PredictedBlock]:
    """Blocks of predictions as they are done, on the open cluster or in this process.

    Parameters
    ----------
    model : fitted estimator
    store : BagStore
        The order of blocks is not that of the bags: use ``rows``.
    subset : {"all", "holdout", "train"}
        Bags that the model's ``holdout`` left out of fitting, or the others.

    Raises
    ------
    ModelError
        Bags of another dimension, or subset="holdout" where the model held nothing out.
    """
    check_predictable(model, store, subset)
    task = _PredictTask(model, store, subset)
    ranges = prediction_plan(model, store)
    for _, block in map_tasks(task, ranges, sizes=_sizes(ranges), progress=progress):
        if len(block.rows):
            yield block


def write_predictions(
    model: FittedModel,
    store: BagStore,
    url: str | os.PathLike[str],
    *,
    format: str = "zarr",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Predict every bag and write predictions with the bags' ids.

    Zarr: arrays ``ids`` (n_bags,), ``predictions`` (n_bags,) or (n_bags, n_targets), for
    classifiers ``probabilities`` (n_bags, n_classes), and names in the attributes. Parquet: a
    folder of files with the columns id, one a target (or ``prediction``), and ``p_<class>``.
    Predicted densities are written as their coefficients, columns ``a_<index>``; the response
    basis stands in Zarr's attributes.
    Workers write their own blocks; the result appears under its local name when it is whole
    (elsewhere the attributes are written last).

    Parameters
    ----------
    overwrite : bool
        Replace predictions that are there; nothing else is ever replaced.

    Raises
    ------
    ModelError
        Not fitted, bags of another dimension, something is stored at the URL, or writing failed.
    """
    if format not in FORMATS:
        raise ParameterError(f"format is {format!r}; expected one of {list(FORMATS)}")
    url = normalize_url(url)
    check_predictable(model, store, "all")
    task = _PredictTask(model, store, "all")
    check_replaceable(url, overwrite, "written predictions", _are_predictions)
    ranges = prediction_plan(model, store)
    with (
        storage_errors(url, "writing predictions failed", kind=ModelError, passing=StoreError),
        writing_folder(url, overwrite=overwrite) as place,
    ):
        _prepare(model, store, place, format, ranges[0][1] if ranges else 1)
        write = _WriteTask(task, place, format)
        for _ in map_tasks(write, ranges, sizes=_sizes(ranges), progress=progress):
            pass
        if format == "zarr":
            group = zarr.open_group(zarr_store(place), mode="r+", zarr_format=3)
            group.update_attributes(_attributes(model, store))


def prediction_plan(model: FittedModel, store: BagStore) -> list[Range]:
    """Ranges of a store's bags for prediction tasks."""
    return prediction_ranges(store, model.features_, 8 * model.outcome_.n_targets)


def _are_predictions(url: str) -> bool:
    return ATTRIBUTE in attributes_of(url) or holds_parts(url)


def _attributes(model: FittedModel, store: BagStore) -> dict[str, Any]:
    return {
        ATTRIBUTE: FORMAT_VERSION,
        "target_names": list(model.outcome_.names),
        "data_url": store.url,
        **model.outcome_.describe(),
    }


def _prepare(model: FittedModel, store: BagStore, url: str, format: str, step: int) -> None:
    if format == "parquet":
        fs, path = filesystem(url)
        fs.makedirs(path, exist_ok=True)
        return
    group = zarr.open_group(
        zarr_store(url), mode="w", zarr_format=3, attributes={ATTRIBUTE: FORMAT_VERSION}
    )
    n = store.n_bags
    ids = str if store.meta.id_kind == "str" else "int64"
    group.create_array("ids", shape=(n,), chunks=(step,), dtype=ids)
    for name, column in model.outcome_.stored().items():
        group.create_array(
            name,
            shape=(n, *column.tail),
            chunks=(step, *column.tail),
            dtype=_stored(column.dtype),
        )


def check_predictable(model: FittedModel, store: BagStore, subset: str) -> None:
    """Raise for a subset that is not there, a model not fitted, or bags of another dimension."""
    if subset not in SUBSETS:
        raise ParameterError(f"subset is {subset!r}; expected one of {list(SUBSETS)}")
    if not hasattr(model, "outcome_"):
        raise ModelError("the model is not fitted; call fit before predicting")
    if store.n_dims != model.features_.n_dims:
        raise ModelError(
            f"the model was fitted on bags of dimension {model.features_.n_dims}, {store.url} "
            f"holds dimension {store.n_dims}"
        )
    if subset == "holdout" and not model.holdout_:
        raise ModelError("the model held no bags out; fit with holdout= or evaluate another store")


def members(model: FittedModel, subset: str, start: int, stop: int) -> NDArray[np.bool_]:
    """Which of the bags start … stop − 1 are in the subset."""
    if subset == "all" or not model.holdout_:
        return np.ones(stop - start, dtype=bool)
    out = Split(model.holdout_, HOLDOUT_SEED).members(start, stop)
    return out if subset == "holdout" else ~out


def _frame(model: FittedModel, ids: NDArray[Any], block: PredictedBlock) -> pd.DataFrame:
    columns = model.outcome_.columns(block.as_prediction)
    return pd.DataFrame({"id": ids.tolist(), **columns})


def _stored(dtype: np.dtype[Any]) -> Any:
    return str if dtype.kind in "UT" else dtype


def _sizes(ranges: list[Range]) -> list[int]:
    return [stop - start for start, stop in ranges]
