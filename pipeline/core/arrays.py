"""Named array types, checks of arrays from callers, and conversion for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .errors import DataError, ParameterError, shown

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
EitherPrecision = tuple[NDArray[np.float32], NDArray[np.float64]]
"""A pair of a single-precision and a double-precision array, one of which is empty."""


_MISSING = ("None", "nan", "NaN", "NaT", "<NA>")  # how None, NaN and the pandas scalars print


def is_missing(value: object) -> bool:
    """Return whether a value is missing: None, NaN, NaT, pandas' NA, or empty text."""
    return not value if isinstance(value, (str, bytes)) else str(value) in _MISSING


def missing_in(values: NDArray[Any]) -> Bools:
    """Return which values of an array are missing, see `is_missing`."""
    kind = values.dtype.kind
    missing: Bools = np.zeros(values.shape, bool)
    if kind in "fc":
        missing = np.isnan(values)
    elif kind in "mM":
        missing = np.isnat(values)
    elif kind in "UST":
        missing = np.strings.str_len(values) == 0
    elif kind == "O":
        missing = np.reshape([is_missing(value) for value in values.flat], values.shape)
    return missing


def first_not_a_number(array: NDArray[Any], row: str, column: str) -> str:
    """Return the first value of an array of objects that is not a number, with its place.

    It is text in brackets for the end of a message, in which ``row`` and ``column`` name the axes;
    empty if all are numbers.
    """
    for place, value in np.ndenumerate(array) if array.dtype.kind == "O" and array.ndim else ():
        if not isinstance(value, Number):
            at = f", {column} {place[1]}" if array.ndim > 1 and array.shape[1] > 1 else ""
            return f" ({row} {place[0]}{at}: {shown(value)})"
    return ""


def by_precision(array: NDArray[Any]) -> EitherPrecision:
    """Return the array as a pair (float32, float64); the array of the other dtype has no rows.

    A kernel that takes such a pair is compiled once instead of once for each dtype.
    """
    shape = (0, *array.shape[1:])
    if array.dtype == np.float32:
        return array, np.empty(shape, np.float64)
    return np.empty(shape, np.float32), array


def check_dtype(name: str, value: object, *more: DTypeLike) -> np.dtype[Any]:
    """Return the dtype if it is float32, float64 or one ``more``.

    Raises
    ------
    ParameterError
        If the dtype is another one.
    """
    try:
        dtype: np.dtype[Any] | None = np.dtype(value) if value is not None else None  # type: ignore[call-overload]
        if hasattr(value, "dtype") and not isinstance(value, type):
            dtype = None  # values, whose dtype numpy takes
    except (TypeError, ValueError):
        dtype = None
    names = [np.dtype(kind).name for kind in (np.float32, np.float64, *more)]
    if dtype is not None and dtype.isnative and dtype.name in names:
        return dtype
    expected = f"{', '.join(names[:-1])} or {names[-1]}"
    raise ParameterError(f"{name} is {shown(value)}; expected {expected}")


def as_array(name: str, value: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return ``value`` as a NumPy array, without a copy if it is an array already.

    Raises
    ------
    DataError
        If lists have different lengths, or values are masked, have a unit, or are not of ``dtype``.
    """
    if type(value) is not np.ndarray:  # only a subclass is masked or has a unit
        _refuse_lossy(name, value)
    try:
        array = np.asarray(value)
        if array.dtype.kind in "US" and isinstance(value, (list, tuple)):
            array = _as_written(array, value)
        if dtype is None:
            return array
        if array.dtype.kind in "USTcmM":
            raise TypeError(f"it holds {array.dtype}")
        if has_texts(array):
            raise TypeError("it holds texts")
        return array.astype(dtype, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        kind = "" if dtype is None else f" of {np.dtype(dtype)}"
        if not isinstance(value, Sequence | np.ndarray) and not hasattr(value, "__array__"):
            raise DataError(f"{name} is {shown(value)}, not an array{kind}") from error
        raise DataError(f"{name} is not an array{kind} ({error})") from error


def _refuse_lossy(name: str, value: ArrayLike) -> None:
    """Raise DataError for values of which NumPy would drop a part, such as a mask or a unit."""
    refuse_masked(name, value)
    refuse_promise(name, value)
    refuse_unit(name, value)
    refuse_annotated(name, value)
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise DataError(f"{name} is a sparse matrix; pass its .toarray()")
    if isinstance(value, tuple) and len(value) == 2 and hasattr(value[1], "iloc"):
        raise DataError(
            f"{name} is a key with its group, as a groupby yields them; pass the groupby itself, "
            "of one column groupby(...)[['column']], or the groups without their keys"
        )


def refuse_promise(name: str, value: object) -> None:
    """Raise DataError for a delayed value or a future of Dask, which has no values yet."""
    if type(value).__module__ == "dask.delayed":
        raise DataError(f"{name} is delayed (Dask); compute it first, by dask.compute(values)[0]")
    if callable(getattr(value, "add_done_callback", None)):
        raise DataError(f"{name} is a Future; pass its .result(), or client.gather(values)")


def refuse_annotated(name: str, value: object) -> None:
    """Raise DataError for annotated cells (AnnData), which are tables of several kinds."""
    if hasattr(value, "obsm") and hasattr(value, "var_names"):
        raise DataError(
            f"{name} is annotated data; pass one of its arrays, such as .obsm['X_pca'], for each "
            "bag, or make a store of bags by bagbasis.ingest.ingest_anndata"
        )


def _as_written(texts: NDArray[Any], values: ArrayLike) -> NDArray[Any]:
    """Return lists as objects if numpy's texts differ: NaN is "nan" there, and 1 is "1"."""
    objects = np.array(values, dtype=object)
    if objects.shape != texts.shape or all(
        isinstance(item, (str, bytes)) and item[-1:] not in ("\0", b"\0") for item in objects.flat
    ):
        return texts
    return objects


def has_texts(array: NDArray[Any]) -> bool:
    """Return whether an array of objects has a text: NumPy would read 7 from "007"."""
    return array.dtype.kind == "O" and any(isinstance(v, (str, bytes)) for v in array.flat)


def refuse_not_numbers(name: str, value: object) -> None:
    """Raise DataError for values of which NumPy would make other numbers without an error.

    These are masked values, values with a unit, texts ("007" would be 7), and dates, times and
    durations (which would be counts of a unit that depends on the library). Columns of a table are
    named in the message.
    """
    refuse_masked(name, value)
    refuse_unit(name, value)
    dtypes = getattr(value, "dtypes", None)
    if hasattr(dtypes, "items"):  # a frame of pandas, which keeps the names of its columns
        columns = value.items()  # type: ignore[attr-defined]
        for label, column in columns:
            _refuse_kind(f"{name}: column {label!r}", column.to_numpy())
    elif hasattr(value, "__array__") or isinstance(value, (list, tuple)):
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):  # lists of several lengths, which the caller refuses
            return
        _refuse_kind(name, array)


def _refuse_kind(name: str, array: NDArray[Any]) -> None:
    kind = array.dtype.kind
    if kind in "UST" or has_texts(array):
        raise DataError(f"{name} has texts; expected numbers, such as those of astype(float)")
    if kind in "mM":
        what = "days since a date" if kind == "M" else "seconds"
        raise DataError(f"{name} has dtype {array.dtype}; expected numbers, such as {what}")


def refuse_unit(name: str, value: object) -> None:
    """Raise DataError for values with a unit, because NumPy drops units: km would equal m.

    Such values are quantities of astropy, pint and unyt. Dimensionless quantities are numbers.
    """
    if not hasattr(value, "to_value") and not hasattr(value, "magnitude"):
        return
    unit = getattr(value, "unit", getattr(value, "units", None))
    if unit is not None and str(unit) not in ("", "dimensionless"):
        raise DataError(
            f"{name} has the unit {unit}, which is not kept; give numbers, in the same unit in "
            f"each call, such as to_value({str(unit)!r}) of astropy or to(...).magnitude of pint"
        )


def refuse_masked(name: str, value: object) -> None:
    """Raise DataError for masked values, because NumPy would use the hidden values as data.

    Masked values of pandas arrays become NaN or NA instead.
    """
    if np.ma.is_masked(value) and not hasattr(value, "isna"):
        raise DataError(f"{name}: {np.ma.count_masked(value)} values are masked; leave them out")
