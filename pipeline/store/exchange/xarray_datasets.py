"""Bags as data sets of xarray, in CF's contiguous ragged layout, and back.

CF conventions, §9.3.3: a variable counts the samples of each instance and names their dimension in
its attribute ``sample_dimension``. A store holds offsets; counts are their differences.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats
from ...bags import COUNTS, Bags, Box, Responses, offsets_of, ragged_dataset
from ...errors import DataError, shown
from ..snapshot import Snapshot

if TYPE_CHECKING:
    from xarray import Dataset, Variable

KEPT = "bagbasis"  # the attribute with all of a store that CF has no words for


class Parts(NamedTuple):
    """What a store is made of: arguments of `BagStore.create` and of `append`."""

    options: dict[str, Any]
    bags: Bags
    targets: Floats | None
    ids: NDArray[Any]
    responses: Responses | None


def dataset_of(store: Snapshot, start: int, stop: int | None) -> Dataset:
    """Return bags ``start:stop`` without the removed ones; see `BagStore.to_xarray`."""
    kept = store.present(start, stop)
    bags = store.read(start, stop)[np.flatnonzero(kept)]
    ids = store.ids(start, stop)[kept]
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {"id": ("bag", _as_objects(ids))}
    if store.target_names:
        values = store.targets(start, stop)[kept]
        variables["targets"] = (("bag", "target"), values)
        coordinates["target"] = ("target", np.array(store.target_names, dtype=object))
    if store.response_dims is not None:
        answers = store.responses(start, stop)[np.flatnonzero(kept)]
        variables["responses"] = (("response_point", "response_coordinate"), answers.points)
        counts = {COUNTS: "response_point", "long_name": "number of points of the response"}
        variables["response_row_size"] = ("bag", answers.sizes, counts)
    attributes = {
        "n_dims": store.n_dims,
        "box": store.box.bounds,
        "class_names": store.meta.class_names,
        "dtype": store.stored_dtype.name,
        "response_dims": store.response_dims,
        "response_box": None if store.response_box is None else store.response_box.bounds,
    }
    found: Dataset = (
        ragged_dataset(bags.points, bags.sizes).assign(variables).assign_coords(coordinates)
    )
    return found.assign_attrs({KEPT: json.dumps(attributes)})


def parts_of(dataset: Dataset) -> Parts:
    """Return the arrays from which a store of a data set is made; see `BagStore.from_xarray`.

    Raises
    ------
    DataError
        No variable counts samples, or variables do not fit; names it.
    """
    if not hasattr(dataset, "data_vars") or not hasattr(dataset, "coords"):
        raise DataError(f"dataset is {shown(dataset)}; expected an xarray.Dataset")
    counts = {
        str(variable.attrs[COUNTS]): variable
        for variable in dataset.variables.values()
        if COUNTS in variable.attrs
    }
    kept = _kept(dataset)
    of_points = "point" if "point" in counts else next(iter(counts), None)
    if of_points is None:
        raise DataError(
            f"no variable has the attribute {COUNTS!r}, which counts the points of each bag; there "
            f"are {shown(sorted(map(str, dataset.variables)))}"
        )
    instance = counts[of_points].dims
    if len(instance) != 1:
        raise DataError(f"the counts of {of_points!r} have dimensions {instance}; expected one")
    bags = Bags(*_ragged(dataset, of_points, counts[of_points]))
    responses = None
    if kept.get("response_dims") is not None and "response_point" in counts:
        responses = Responses(*_ragged(dataset, "response_point", counts["response_point"]))
    names, targets, classes = _targets(dataset, instance[0], kept)
    ids = dataset.variables["id"].values if "id" in dataset.variables else np.arange(len(bags))
    box = kept.get("box") or Box.around(bags.points.min(axis=0), bags.points.max(axis=0)).bounds
    options = {
        "n_dims": bags.n_dims,
        "target_names": names,
        "box": box,
        "class_names": classes,
        "dtype": kept.get("dtype", bags.points.dtype.name),
        "response_dims": kept.get("response_dims"),
        "response_box": kept.get("response_box"),
    }
    if ids.dtype.kind not in "iu":
        ids = np.array([str(one) for one in ids.tolist()], dtype=object)
    return Parts(options, bags, targets, ids, responses)


def _kept(dataset: Dataset) -> dict[str, Any]:
    text = dataset.attrs.get(KEPT)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise DataError(f"the attribute {KEPT!r} is {shown(text)}; expected JSON of a store")
    return found


def _ragged(
    dataset: Dataset, dimension: str, counts: Variable
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return points and offsets: a variable of two dimensions, or several of one, side by side."""
    along = {
        name: variable
        for name, variable in dataset.data_vars.items()
        if variable.dims[:1] == (dimension,) and variable.dtype.kind in "biuf"
    }
    wide = [variable.values for variable in along.values() if variable.ndim == 2]
    columns = [variable.values for variable in along.values() if variable.ndim == 1]
    if len(wide) != 1 and not (columns and not wide):
        raise DataError(
            f"along {dimension!r} there are {shown(sorted(map(str, along)))}; expected one "
            "variable with a column per coordinate, or variables of one dimension"
        )
    points = wide[0] if wide else np.column_stack(columns)
    offsets = offsets_of(np.asarray(counts.values, dtype=np.int64))
    if offsets[-1] != len(points):
        raise DataError(
            f"{dimension!r} has {len(points)} rows, but its counts add up to {offsets[-1]}"
        )
    return points, offsets


def _targets(
    dataset: Dataset, instance: Hashable, kept: Mapping[str, Any]
) -> tuple[list[str], Floats | None, dict[str, list[str]]]:
    """Return names, values and classes of targets: ``targets``, or columns of the instances."""
    if kept:
        if "targets" not in dataset.data_vars:
            return [], None, {}
        names = [str(name) for name in dataset.coords["target"].values]
        return names, dataset["targets"].values, dict(kept.get("class_names", {}))
    found = {
        str(name): variable.values.astype(np.float64)
        for name, variable in dataset.data_vars.items()
        if variable.dims == (instance,)
        and variable.dtype.kind in "biuf"
        and COUNTS not in variable.attrs
    }
    return list(found), np.column_stack([*found.values()]) if found else None, {}


def _as_objects(ids: NDArray[Any]) -> NDArray[Any]:
    return ids if ids.dtype.kind == "i" else ids.astype(object)
