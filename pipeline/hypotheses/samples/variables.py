"""Variables of an independence test: numbers, classes, times or bags, as paired rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays import Floats, Integers, as_array, missing_in
from ...core.errors import DataError, shown
from ...data.bags.bags import Bags, as_bags
from ...data.bags.frames import is_groups, is_table
from ...data.store.store import BagStore
from .samples import (
    Sample,
    as_sample,
    as_sample_points,
    is_bags,
    label_codes,
    read_samples,
)

VariableLike = ArrayLike | Sequence[ArrayLike] | Bags | BagStore | tuple[BagStore, int, int]
"""Numbers (n,) or (n, d), texts (n,) that name classes, datetimes (n,), or bags."""

MIN_PAIRED_ROWS = 4  # which the unbiased HSIC needs
_MAX_CLASSES = 1024  # classes of a variable: one column each


def read_variables(data: dict[str, VariableLike], groups: ArrayLike | None, seed: int) -> list[Any]:
    """Return the rows of each variable, and then the sample whose units they share.

    Bags become rows by their mean maps (`samples.read_samples`). If the first variable is a store,
    a string as a variable names a target of the store. Pairs whose bag is too small or has no
    target are left out.

    Raises
    ------
    DataError
        If variables have different lengths, a value cannot be used, or there are fewer than four
        units.
    """
    first = next(iter(data.values()))
    rows, complete, lengths, unit = {}, {}, {}, "point"
    for name, variable in data.items():
        values = as_bags(variable) if is_groups(variable) else variable  # type: ignore[arg-type]
        if is_bags(values):
            sample: Sample = read_samples({name: values}, seed=seed)[0]
            rows[name], complete[name], unit = sample.rows, sample.positions, "bag"
            lengths[name] = _count(values)
            continue
        if isinstance(values, str):
            rows[name] = _target(values, name, first)
        else:
            rows[name] = as_rows(values, name)
        lengths[name] = len(rows[name])
        complete[name] = np.flatnonzero(~np.isnan(rows[name]).any(axis=1))
        rows[name] = rows[name][complete[name]]
    if len(set(lengths.values())) > 1:
        raise DataError(
            "variables of different lengths: " + ", ".join(f"{k} {v}" for k, v in lengths.items())
        )
    paired = complete[next(iter(complete))]
    for positions in complete.values():
        paired = np.intersect1d(paired, positions, assume_unique=True)
    variables = [rows[name][np.searchsorted(complete[name], paired)] for name in data]
    for name, values in zip(data, variables, strict=True):
        if len(values) > 1 and (values == values[0]).all():
            raise DataError(f"{name}: all rows are alike, so that nothing can depend on it")
    n_given = next(iter(lengths.values()))
    sample = as_sample("the pairs", variables[0], unit, groups, paired, n_given)
    if sample.n_units < MIN_PAIRED_ROWS:
        raise DataError(
            f"{sample.n_units} pairs of {unit}s; a test of independence needs {MIN_PAIRED_ROWS}"
        )
    return [*variables, sample]


def strata_of(within: ArrayLike, sample: Sample) -> Integers:
    """Return the number of each pair's label, shape (n,).

    Raises
    ------
    DataError
        If there is not one label per pair, a label is missing, or labels differ within a group.
    """
    n_given = len(sample) + sample.n_left_out
    unit = "point" if sample.unit == "group" else sample.unit
    strata = label_codes("labels of within", within, sample.positions, n_given, unit)
    of_unit = np.zeros(sample.n_units, np.int64)
    of_unit[sample.units] = strata
    mixed = of_unit[sample.units] != strata
    if mixed.any():
        raise DataError(
            f"the group of pair {int(sample.positions[np.argmax(mixed)])} has several labels of "
            "within; the pairs of a group share one"
        )
    return strata


def as_rows(values: Any, name: str) -> Floats:  # noqa: ANN401 - it may be anything
    """Return numbers as they are, classes as columns of 0 and 1, times in seconds.

    Raises
    ------
    DataError
        If a value is of another kind or missing.
    """
    array = as_array(name, values)
    if array.dtype.kind == "O":
        if n_missing := int(missing_in(array).sum()):
            raise DataError(f"{name}: {n_missing:,} values are missing; leave their pairs out")
        if array.ndim == 1 and len(array) and all(isinstance(v, datetime) for v in array):
            array = np.array([_utc(v) for v in array], dtype="M8[us]")
        elif array.ndim == 1 and len(array) and all(isinstance(v, date) for v in array):
            array = array.astype("M8[D]")
        elif array.ndim == 1 and any(isinstance(v, str) for v in array):
            for other in (v for v in array if not isinstance(v, str)):
                raise DataError(f"{name} has texts and {shown(other)}; make all texts or numbers")
    if array.dtype.kind == "O" and array.ndim == 1 and all(isinstance(v, str) for v in array):
        array = array.astype(str)
    if array.ndim == 1 and array.dtype.kind in "UST":
        classes, codes = np.unique(array, return_inverse=True)
        if len(classes) == len(array) >= MIN_PAIRED_ROWS:
            raise DataError(
                f"{name} has a class for each value, such as {shown(str(classes[0]))}, so that "
                "nothing can depend on it; give numbers, as by astype(float), or larger classes"
            )
        return class_columns(classes, codes, name)
    if array.ndim == 1 and array.dtype.kind == "M":
        if np.isnat(array).any():
            raise DataError(f"{name}: time {int(np.argmax(np.isnat(array)))} is missing (NaT)")
        micros = array.astype("M8[us]")
        passed = (micros - micros.min()).astype(np.float64) / 1e6
        finer = (array - micros).astype("m8[ns]").astype(np.float64) / 1e9  # no overflow
        seconds: Floats = (passed + (finer - finer[np.argmin(array)]))[:, None]
        return seconds
    return as_sample_points(values if is_table(values) else array, name)


def _utc(moment: datetime) -> datetime:
    """Return a time of UTC without its zone."""
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def class_columns(classes: Sequence[Any] | NDArray[Any], codes: NDArray[Any], name: str) -> Floats:
    """Return a column of 0 and 1 per class; NaN where the code is NaN."""
    if len(classes) > _MAX_CLASSES:
        raise DataError(
            f"{name} has {len(classes):,} classes; at most {_MAX_CLASSES:,} are compared"
        )
    columns: Floats = np.equal.outer(codes, np.arange(len(classes))).astype(np.float64)
    columns[np.isnan(codes)] = np.nan
    return columns


def target_rows(store: BagStore, target: str, values: Floats) -> Floats:
    """Return the rows of a target's values (n, 1): columns of classes, or the numbers."""
    classes = store.meta.class_names.get(target)
    return values if classes is None else class_columns(classes, values[:, 0], target)


def _target(target: str, name: str, first: VariableLike) -> Floats:
    parts = first if isinstance(first, tuple) else (first, 0, None)
    store = parts[0]
    if not isinstance(store, BagStore):
        raise DataError(f"{name} is {shown(target)}, the name of a target, but x is not a BagStore")
    start, stop = int(parts[1]), store.n_bags if parts[2] is None else int(parts[2])
    return target_rows(store, target, store.targets(start, stop, names=(target,)))


def _count(bags: Any) -> int:  # noqa: ANN401 - any of VariableLike that is bags
    if isinstance(bags, tuple) and isinstance(bags[0], BagStore):
        return int(bags[2]) - int(bags[1])
    return bags.n_bags if isinstance(bags, BagStore) else len(bags)
