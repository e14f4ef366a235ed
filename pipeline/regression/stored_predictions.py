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
from .feature_map import naming
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


@dataclass(frozen=True)
class _PredictTask:
    model: Any
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
                    value, probability = _predicted(self.model, chosen)
                values.append(value)
                if probability is not None:
                    probabilities.append(probability)
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
            for name, values in _columns(block).items():
                group[name][start:stop] = values  # type: ignore[index]
            group["ids"][start:stop] = ids  # type: ignore[index]
        else:
            fs, path = filesystem(self.url)
            with fs.open(f"{path}/part-{start:012d}.parquet", "wb") as file:
                _frame(self.predict.model, ids, block).to_parquet(file, index=False)
        return stop - start


def iter_predictions(
    model: Any, store: BagStore, *, subset: str = "all", progress: Progress | None = None
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
    model: Any,
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


def prediction_plan(model: Any, store: BagStore) -> list[Range]:
    """Ranges of a store's bags for prediction tasks."""
    return prediction_ranges(store, model.features_, 8 * len(model.intercept_))


def _are_predictions(url: str) -> bool:
    return ATTRIBUTE in attributes_of(url) or holds_parts(url)


def _attributes(model: Any, store: BagStore) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        ATTRIBUTE: FORMAT_VERSION,
        "target_names": list(model.target_names_),
        "data_url": store.url,
    }
    if hasattr(model, "classes_"):
        attributes["classes"] = model.classes_.tolist()
    if hasattr(model, "response_spec_"):
        attributes["response"] = model.response_spec_.to_dict()
    return attributes


def _prepare(model: Any, store: BagStore, url: str, format: str, step: int) -> None:
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
    if hasattr(model, "classes_"):
        group.create_array(
            "predictions", shape=(n,), chunks=(step,), dtype=_stored(model.classes_.dtype)
        )
        k = len(model.classes_)
        group.create_array("probabilities", shape=(n, k), chunks=(step, k), dtype="float64")
    else:
        tail = () if getattr(model, "single_target_", False) else (len(model.intercept_),)
        group.create_array("predictions", shape=(n, *tail), chunks=(step, *tail), dtype="float64")


def check_predictable(model: Any, store: BagStore, subset: str) -> None:
    """Raise for a subset that is not there, a model not fitted, or bags of another dimension."""
    if subset not in SUBSETS:
        raise ParameterError(f"subset is {subset!r}; expected one of {list(SUBSETS)}")
    if not hasattr(model, "coef_"):
        raise ModelError("the model is not fitted; call fit before predicting")
    if store.n_dims != model.features_.n_dims:
        raise ModelError(
            f"the model was fitted on bags of dimension {model.features_.n_dims}, {store.url} "
            f"holds dimension {store.n_dims}"
        )
    if subset == "holdout" and not model.holdout_:
        raise ModelError("the model held no bags out; fit with holdout= or evaluate another store")


def members(model: Any, subset: str, start: int, stop: int) -> NDArray[np.bool_]:
    """Which of the bags start … stop − 1 are in the subset."""
    if subset == "all" or not model.holdout_:
        return np.ones(stop - start, dtype=bool)
    out = Split(model.holdout_, HOLDOUT_SEED).members(start, stop)
    return out if subset == "holdout" else ~out


def _predicted(model: Any, bags: Any) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    if hasattr(model, "response_spec_"):
        return model.coefficients(bags), None
    if not hasattr(model, "classes_"):
        return model.values(bags), None
    return model.classified(bags)


def _columns(block: PredictedBlock) -> dict[str, NDArray[Any]]:
    columns = {"predictions": block.prediction}
    if block.probabilities is not None:
        columns["probabilities"] = block.probabilities
    return columns


def _frame(model: Any, ids: NDArray[Any], block: PredictedBlock) -> pd.DataFrame:
    columns: dict[str, Any] = {"id": ids.tolist()}
    if block.prediction.ndim == 1:
        name = model.target_names_[0] if model.target_names_ else "prediction"
        columns[name] = block.prediction
    else:
        for j, name in enumerate(_column_names(model, block.prediction.shape[1])):
            columns[name] = block.prediction[:, j]
    if block.probabilities is not None:
        for j, label in enumerate(model.classes_.tolist()):
            columns[f"p_{label}"] = block.probabilities[:, j]
    return pd.DataFrame(columns)


def _column_names(model: Any, n: int) -> list[str]:
    if hasattr(model, "response_spec_"):
        return ["a_" + "_".join(map(str, alpha)) for alpha in model.response_spec_.indices.tolist()]
    return list(model.target_names_) or [f"prediction_{j}" for j in range(n)]


def _stored(dtype: np.dtype[Any]) -> Any:
    return str if dtype.kind in "UT" else dtype


def _sizes(ranges: list[Range]) -> list[int]:
    return [stop - start for start, stop in ranges]
