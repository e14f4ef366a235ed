"""Bags as data sets of xarray, in CF's contiguous ragged layout, and back.

CF conventions, §9.3.3: a variable counts the samples of each instance and names their dimension in
its attribute ``sample_dimension``. A store holds offsets; counts are their differences.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.arrays import Floats
from ....core.errors import DataError, shown
from ...bags.bags import Bags, offsets_of
from ...bags.box import Box
from ...bags.checks import check_finite
from ...bags.frames import COUNTS, ragged_dataset, with_names
from ...bags.ids import comparable
from ...bags.packed_attributes import XARRAY_RULES, days_of, decoded_dataset
from ...bags.responses import Responses
from ..schema import COORDINATES, RESPONSE_COORDINATES
from ..snapshot import Snapshot

if TYPE_CHECKING:
    from xarray import Dataset, Variable

_MAX_AXES = 2  # axes of a variable along the points
_KEPT = "bagbasis"  # attribute for the properties of a store that CF does not cover


# names of coordinates in data sets of ours, by their key in `StoreMeta.source`
_NAMES = {COORDINATES: "coordinate_name", RESPONSE_COORDINATES: "response_coordinate_name"}


class Parts(NamedTuple):
    """Contents of a store: arguments of `BagStore.create` and of `append`."""

    options: dict[str, Any]
    bags: Bags
    targets: Floats | None
    ids: NDArray[Any]
    responses: Responses | None
    source: dict[str, Any]


def dataset_of(store: Snapshot, start: int, stop: int | None) -> Dataset:
    """Return bags ``start:stop`` without the removed ones; see `BagStore.to_xarray`."""
    present = store.present(start, stop)
    bags = store.read(start, stop)[np.flatnonzero(present)]
    ids = store.ids(start, stop)[present]
    variables: dict[str, Any] = {}
    of_ids = {"long_name": "id of the bag", "cf_role": "profile_id"}
    coordinates: dict[str, Any] = {"id": ("bag", comparable(ids), of_ids)}
    if store.target_names:
        values = store.targets(start, stop)[present]
        variables["targets"] = (("bag", "target"), values, {"long_name": "targets of the bag"})
        names = np.array(store.target_names, dtype=object)
        coordinates["target_name"] = ("target", names, {"long_name": "name of the target"})
    if store.response_dims is not None:
        answers = store.responses(start, stop)[np.flatnonzero(present)]
        of_points = {"long_name": "points of the response"}
        dimensions = ("response_point", "response_coordinate")
        variables["responses"] = (dimensions, answers.points, of_points)
        counts = {COUNTS: "response_point", "long_name": "number of points of the response"}
        variables["response_row_size"] = ("bag", answers.sizes, counts)
    attributes = {
        "n_dims": store.n_dims,
        "box": None if store.meta.is_measured else store.box.bounds,
        "class_names": store.meta.class_names,
        "dtype": store.stored_dtype.name,
        "response_dims": store.response_dims,
        "response_box": (
            None
            if store.response_box is None or store.meta.measures_responses
            else store.response_box.bounds
        ),
    }
    dataset: Dataset = ragged_dataset(bags.points, bags.sizes, store.coordinate_names)
    dataset = dataset.assign(variables).assign_coords(coordinates)
    if store.response_dims is not None:
        dataset = with_names(dataset, "response_coordinate", store.response_coordinate_names)
    return dataset.assign_attrs({_KEPT: json.dumps(attributes)})


def parts_of(dataset: Dataset) -> Parts:
    """Return the arrays from which a store of a data set is made; see `BagStore.from_xarray`.

    Raises
    ------
    DataError
        If no variable counts samples, or a variable does not fit. The message names the variable.
    """
    if not hasattr(dataset, "data_vars") or not hasattr(dataset, "coords"):
        raise DataError(f"dataset is {shown(dataset)}; expected an xarray.Dataset")
    counts = {
        str(variable.attrs[COUNTS]): variable
        for variable in dataset.variables.values()
        if COUNTS in variable.attrs
    }
    own_attributes = _kept(dataset)
    dataset = dataset if own_attributes else decoded_dataset(dataset)
    of_points = "point" if "point" in counts else next(iter(counts), None)
    if of_points is None:
        raise DataError(
            f"no variable has the attribute {COUNTS!r}, which counts the points of each bag; there "
            f"are {shown(sorted(map(str, dataset.variables)))}"
        )
    instance = counts[of_points].dims
    if len(instance) != 1:
        raise DataError(f"the counts of {of_points!r} have dimensions {instance}; expected one")
    points, offsets, coordinates = _ragged(dataset, of_points, counts[of_points])
    check_finite(points, offsets, names=coordinates)
    bags = Bags(points, offsets)
    responses = None
    if own_attributes.get("response_dims") is not None and "response_point" in counts:
        answers = _ragged(dataset, "response_point", counts["response_point"])
        responses = Responses(*answers[:2])
    ids_name = _name_of_ids(dataset, instance[0])
    names, targets, classes = _targets(dataset, instance[0], own_attributes, ids_name)
    ids = np.arange(len(bags)) if ids_name is None else dataset.variables[ids_name].values
    if not own_attributes:
        used = {*coordinates, *names, ids_name}
        _warn_of_others(dataset, of_points, instance[0], used)
    box = own_attributes.get("box")
    if "box" not in own_attributes:
        box = Box.around(bags.points.min(axis=0), bags.points.max(axis=0)).bounds
    options = {
        "n_dims": bags.n_dims,
        "target_names": names,
        "box": box,
        "class_names": classes,
        "dtype": own_attributes.get("dtype", bags.points.dtype.name),
        "response_dims": own_attributes.get("response_dims"),
        "response_box": own_attributes.get("response_box"),
    }
    if ids.dtype.kind not in "iu":
        texts = [
            bag_id.decode() if isinstance(bag_id, bytes) else str(bag_id) for bag_id in ids.tolist()
        ]
        ids = np.array(texts, dtype=object)
    source = {COORDINATES: _column_names(dataset, coordinates, of_points)}
    if own_attributes:
        source = {
            key: [str(name) for name in dataset[variable].values]
            for key, variable in _NAMES.items()
            if variable in dataset.coords
        }
    return Parts(options, bags, targets, ids, responses, source)


def _kept(dataset: Dataset) -> dict[str, Any]:
    text = dataset.attrs.get(_KEPT)
    if text is None:
        return {}
    try:
        attributes = json.loads(text)
    except (TypeError, ValueError):
        attributes = None
    if not isinstance(attributes, dict):
        raise DataError(f"the attribute {_KEPT!r} is {shown(text)}; expected JSON of a store")
    return attributes


def _ragged(
    dataset: Dataset, dimension: str, counts: Variable
) -> tuple[NDArray[Any], NDArray[np.int64], list[str]]:
    """Return points, offsets, and the variables that are the points' coordinates, side by side.

    Positions and times come first where CF has them as coordinates of the data set.
    """
    along = _along(dataset, dimension)
    if not along:
        others = [str(name) for name, of in dataset.variables.items() if dimension in of.dims]
        raise DataError(
            f"along {dimension!r} there are {shown(sorted(others))}; expected variables of numbers "
            "or times, with a column per coordinate or of one dimension"
        )
    blocks = [dataset.variables[name].transpose(dimension, ...) for name in along]
    columns = [days_of(block.values) for block in blocks]
    points = columns[0] if len(columns) == 1 and columns[0].ndim == 2 else np.column_stack(columns)
    sizes = np.asarray(counts.values)
    if sizes.dtype.kind not in "biuf" or not np.isfinite(sizes).all() or (sizes % 1 != 0).any():
        raise DataError(
            f"the counts of {dimension!r} are {shown(sizes.tolist())}; expected a whole number of "
            "points for each bag"
        )
    offsets = offsets_of(sizes.astype(np.int64))
    if offsets[-1] != len(points):
        raise DataError(
            f"{dimension!r} has {len(points)} rows, but its counts add up to {offsets[-1]}"
        )
    return points, offsets, along


def _along(dataset: Dataset, dimension: str) -> list[str]:
    """Return the numeric and time variables along the points; positions come first."""
    names = [name for name in dataset.coords if name != dimension]
    return [
        str(name)
        for name in [*names, *dataset.data_vars]
        if dimension in (variable := dataset.variables[name]).dims
        and variable.ndim <= _MAX_AXES
        and variable.dtype.kind in "biufmM"
    ]


def _column_names(dataset: Dataset, variables: Sequence[str], dimension: str) -> list[str]:
    """Return the names of coordinates: of a variable with several columns, ``name[0]``, ...."""
    names: list[str] = []
    for name in variables:
        variable = dataset.variables[name].transpose(dimension, ...)
        several = [f"{name}[{j}]" for j in range(variable.shape[-1])]
        names += [name] if variable.ndim == 1 else several
    return names


def _name_of_ids(dataset: Dataset, instance: Hashable) -> str | None:
    """Return the variable of the ids: ``id``, one with a cf_role, or the index of the bags."""
    of_instances = [
        str(name) for name, variable in dataset.variables.items() if variable.dims == (instance,)
    ]
    roles = [name for name in of_instances if dataset.variables[name].attrs.get("cf_role")]
    if len(roles) > 1:
        raise DataError(f"several variables have a cf_role: {shown(roles)}; leave it with one")
    wide = [
        str(name)
        for name, variable in dataset.variables.items()
        if variable.attrs.get("cf_role") and str(name) not in roles
    ]
    if wide and not roles and "id" not in of_instances:
        raise DataError(
            f"{wide[0]!r} has a cf_role and dimensions {dataset.variables[wide[0]].dims}; expected "
            f"one id for each {instance!r}: join its characters by xarray.decode_cf"
        )
    candidates = [name for name in ("id", *roles, str(instance)) if name in of_instances]
    return candidates[0] if candidates else None


def _warn_of_others(
    dataset: Dataset, dimension: str, instance: Hashable, used: Collection[str | None]
) -> None:
    """Log which variables of the points and of the bags are not part of the store."""
    others = [
        f"{name} ({variable.dtype}, {', '.join(map(str, variable.dims))})"
        for name, variable in dataset.variables.items()
        if name not in used
        and name not in (dimension, instance)
        and COUNTS not in variable.attrs
        and {dimension, instance} & {*variable.dims}
    ]
    if others:
        XARRAY_RULES.warn("other variables", "from_xarray", f"left out: {', '.join(others)}")


def _targets(
    dataset: Dataset, instance: Hashable, own_attributes: Mapping[str, Any], ids: str | None
) -> tuple[list[str], Floats | None, dict[str, list[str]]]:
    """Return names, values and classes of targets: ``targets``, or columns of the instances."""
    if own_attributes:
        if "targets" not in dataset.data_vars:
            return [], None, {}
        # earlier versions gave the names to the dimension itself
        column = "target_name" if "target_name" in dataset.coords else "target"
        names = [str(name) for name in dataset.coords[column].values]
        return names, dataset["targets"].values, dict(own_attributes.get("class_names", {}))
    columns = {
        str(name): days_of(variable.values).astype(np.float64)
        for name, variable in dataset.variables.items()
        if variable.dims == (instance,)
        and variable.dtype.kind in "biufmM"
        and COUNTS not in variable.attrs
        and name not in (ids, instance)
    }
    return list(columns), np.column_stack([*columns.values()]) if columns else None, {}
