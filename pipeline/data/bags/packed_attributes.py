"""Decoding of stored numbers by CF attributes, in HDF5, netCDF, Zarr and xarray.

Stored numbers become values in this order: unsigned, missing, out of the valid range, scaled,
times. See the CF conventions, sections 2.5, 4.4 and 8.1, and the netCDF User's Guide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import needing_extra
from .format_rules import FormatRules

if TYPE_CHECKING:
    from xarray import Dataset, Variable

HONOURED = {
    "_FillValue": "equal values are missing",
    "missing_value": "equal values are missing; it may be a list",
    "valid_range, valid_min, valid_max": "values outside are missing",
    "scale_factor": "numbers are multiplied by it, as float64",
    "add_offset": "added to numbers after scale_factor",
    "_Unsigned": "integers are read as unsigned, or as signed",
    "units": "numbers `since` a date are times: days since 1970-01-01, as everywhere",
    "calendar": "standard, gregorian and proleptic_gregorian",
}
REFUSED = {
    "calendar": "a 360_day or noleap year has no dates: compute the numbers that you need",
    "attribute of another type": "correct the attribute, or delete it",
}
IGNORED = {
    "units without `since`": "numbers stay in their units",
    "flag_values, flag_meanings": "codes stay numbers",
    "long_name, standard_name, axis": "they change no values",
}
_KEYS = ("_FillValue", "missing_value", "valid_range", "valid_min", "valid_max")
_SCALES = ("scale_factor", "add_offset")
CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
DAY = np.timedelta64(1, "D")

XARRAY_RULES = FormatRules(
    name="xarray data sets (netCDF, Zarr)",
    calls=("BagStore.from_xarray", "ingest_frame"),
    honoured={
        **HONOURED,
        "sample_dimension": "the variable counts the points of each bag (from_xarray)",
        "cf_role": "the variable has the ids of the bags (from_xarray)",
        "coordinates": "latitude, longitude and times along the points are coordinates",
    },
    refused={
        **REFUSED,
        "complex numbers": "choose the real part, the imaginary part or the modulus",
    },
    warned={"other variables": "name them in a data set with the variables that you need"},
    ignored=IGNORED,
)


def has_meaning(attributes: Mapping[str, Any]) -> bool:
    """Return whether attributes change stored numbers."""
    return (
        any(name in attributes for name in (*_KEYS, *_SCALES, "_Unsigned"))
        or " since " in f"{attributes.get('units', '')}"
    )


def unpacked(
    values: NDArray[Any], attributes: Mapping[str, Any], rules: FormatRules, place: str
) -> np.ma.MaskedArray[Any, Any]:
    """Decode stored values to numbers, times or texts, masked where they are missing.

    Parameters
    ----------
    values : ndarray
        Stored numbers or texts, of any shape.
    attributes : mapping from str to object
        Attributes of the array.
    rules : FormatRules
        Rules of the format, for refusals.
    place : str
        Name of the file and the array, for messages.

    Raises
    ------
    DataError
        If an attribute has another type than the values, or a calendar has no dates.
    """
    values = _signed(values, attributes)
    scales = [_number(name, attributes, rules, place) for name in _SCALES]
    mask = np.zeros(values.shape, dtype=bool)
    for name in _KEYS[:2]:
        for fill in np.ravel(attributes.get(name, ())):
            mask |= _equal(values, fill, name, rules, place)
    is_scaled = any(scale is not None for scale in scales)
    result = values
    if is_scaled:
        factor, offset = scales
        result = values.astype(np.float64) * (1.0 if factor is None else factor)
        result += 0.0 if offset is None else offset
    lo, hi = _valid_range(attributes, rules, place)
    for bound, is_outside in ((lo, np.less), (hi, np.greater)):
        if bound is not None:
            if values.dtype.kind == "u" and isinstance(bound, int) and bound < 0:
                bound += 2 ** (8 * values.dtype.itemsize)  # stored as signed, as the values were
            packed = not is_scaled or not isinstance(bound, float) or values.dtype.kind == "f"
            compared = values if packed else result
            kind = compared.dtype.type if compared.dtype.kind == "f" else type(bound)
            mask |= is_outside(compared, kind(bound))
    if " since " in f"{attributes.get('units', '')}":
        result = _times(result, mask, attributes, rules, place)
        mask = mask | np.isnat(result)
    return np.ma.MaskedArray(result, mask)


def decoded_dataset(dataset: Dataset) -> Dataset:
    """Return an xarray data set with decoded values; NaN marks missing values.

    The result is the same for data sets that were opened with and without decoding.

    Raises
    ------
    DataError
        As `unpacked`; complex numbers, or dates of a calendar without dates.
    """
    changed = {}
    for name, variable in dataset.variables.items():
        place = f"variable {name!r}"
        _check_kind(variable, place)
        if not has_meaning(variable.attrs):
            continue
        attributes = _of_stored(variable)
        values = unpacked(np.asarray(variable.values), attributes, XARRAY_RULES, place)
        removed = {*_KEYS, *_SCALES, "_Unsigned"}
        if values.dtype.kind == "M":
            removed |= {"units", "calendar"}
        others = {key: value for key, value in variable.attrs.items() if key not in removed}
        changed[name] = (variable.dims, filled(values), others)
    indexes = [name for name in changed if name in dataset.xindexes]
    dataset = dataset.drop_indexes(indexes) if indexes else dataset
    coordinates = {name: of for name, of in changed.items() if name in dataset.coords}
    rest = {name: of for name, of in changed.items() if name not in coordinates}
    result: Dataset = dataset.assign_coords(coordinates).assign(rest)
    return result


def filled(values: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """Return an array with NaN, NaT or None where values are missing."""
    data, mask = np.ma.getdata(values), np.ma.getmaskarray(values)
    if not mask.any():
        return data
    if data.dtype.kind in "biu":
        data = data.astype(np.float64)
    elif data.dtype.kind not in "fM":
        data = data.astype(object)
    missing = {"f": np.nan, "M": np.datetime64("NaT")}.get(data.dtype.kind)
    return _with(data, mask, missing)


def _with(data: NDArray[Any], mask: NDArray[np.bool_], missing: Any) -> NDArray[Any]:  # noqa: ANN401
    result = data.copy()
    result[mask] = missing
    return result


def days_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return dates as days since 1970-01-01 and durations as days; other values as they are."""
    if values.dtype.kind == "M":
        values = values - np.datetime64("1970-01-01")
    if values.dtype.kind != "m":
        return values
    days = values / DAY
    days[np.isnat(values)] = np.nan
    return days


def _check_kind(variable: Variable, place: str) -> None:
    if variable.dtype.kind == "c":
        raise XARRAY_RULES.refusal("complex numbers", place, "numbers are complex")
    if variable.dtype.kind == "O" and variable.size:
        first = variable.values.flat[0]
        if type(first).__module__.split(".")[0] == "cftime":
            calendar = getattr(first, "calendar", "unknown")
            raise XARRAY_RULES.refusal("calendar", place, f"times are of the calendar {calendar!r}")


def _of_stored(variable: Variable) -> dict[str, Any]:
    """Return attributes that fit the current values, for variables that are already decoded."""
    attributes, packing = dict(variable.attrs), variable.encoding
    scales = {name: packing[name] for name in _SCALES if name in packing}
    if not scales or any(name in attributes for name in _SCALES):
        return attributes
    packed = np.dtype(packing.get("dtype", variable.dtype)).kind in "iu"
    for name in _KEYS[2:]:
        if name in attributes and not (packed and np.asarray(attributes[name]).dtype.kind == "f"):
            bounds = np.asarray(attributes[name], np.float64) * scales.get("scale_factor", 1.0)
            bounds = bounds + scales.get("add_offset", 0.0)
            slack = abs(scales.get("scale_factor", 1.0)) / 4  # of the rounding of decoded values
            lower = name == "valid_min" or (np.array([1, 0]) if name == "valid_range" else 0)
            attributes[name] = bounds + slack * (1 - 2 * np.asarray(lower, np.float64))
    return attributes


def _signed(values: NDArray[Any], attributes: Mapping[str, Any]) -> NDArray[Any]:
    wanted = {"true": "u", "false": "i"}.get(f"{attributes.get('_Unsigned', '')}".lower())
    if wanted is None or values.dtype.kind not in "iu":
        return values
    return values.view(f"{values.dtype.byteorder}{wanted}{values.dtype.itemsize}")


def _number(
    name: str, attributes: Mapping[str, Any], rules: FormatRules, place: str
) -> float | None:
    if name not in attributes:
        return None
    value = np.ravel(attributes[name])
    if value.size != 1 or value.dtype.kind not in "iuf":
        problem = f"{name} is {np.asarray(attributes[name]).tolist()!r}, not a number"
        raise rules.refusal("attribute of another type", place, problem)
    return float(value[0])


def _equal(
    values: NDArray[Any],
    fill: Any,  # noqa: ANN401 - of any type
    name: str,
    rules: FormatRules,
    place: str,
) -> NDArray[np.bool_]:
    """Return where values equal a fill value, whose type may have another width."""
    fill = fill.decode() if isinstance(fill, bytes) else fill
    kind = values.dtype.kind
    if isinstance(fill, str) != (kind in "OSUT"):
        problem = f"{name} is {np.asarray(fill).item()!r}, the values are {values.dtype}"
        raise rules.refusal("attribute of another type", place, problem)
    if kind in "SUOT":
        texts = np.array([x.decode() if isinstance(x, bytes) else x for x in values.flat], object)
        return np.asarray(texts == fill, dtype=bool).reshape(values.shape)
    with np.errstate(over="ignore"):
        as_stored = values.dtype.type(fill) if kind == "f" else np.asarray(fill).item()
    if kind in "iu" and isinstance(as_stored, int):
        bits = 8 * values.dtype.itemsize
        if kind == "u" and as_stored < 0:  # a signed fill value of unsigned numbers
            as_stored += 2**bits
        if kind == "i" and 2 ** (bits - 1) <= as_stored < 2**bits:
            as_stored -= 2**bits
        info = np.iinfo(values.dtype)
        if not info.min <= as_stored <= info.max:
            return np.zeros(values.shape, dtype=bool)
    return np.asarray(values == as_stored, dtype=bool)


def _valid_range(attributes: Mapping[str, Any], rules: FormatRules, place: str) -> tuple[Any, Any]:
    """Return the smallest and the largest valid value as Python numbers; None if not given."""
    ends: list[Any] = []
    for j, name in enumerate(("valid_min", "valid_max")):
        limit = np.ravel(attributes.get(name, ()))
        pair = np.ravel(attributes.get("valid_range", ()))
        is_wrong = limit.size > 1 or pair.size not in (0, 2)
        if is_wrong or limit.dtype.kind not in "iuf" or pair.dtype.kind not in "iuf":
            shown = {key: attributes[key] for key in _KEYS[2:] if key in attributes}
            raise rules.refusal("attribute of another type", place, f"there is {shown}")
        end = limit if limit.size else pair[j : j + 1]
        ends.append(end[0].item() if end.size else None)
    return ends[0], ends[1]


def _times(
    values: NDArray[Any],
    mask: NDArray[np.bool_],
    attributes: Mapping[str, Any],
    rules: FormatRules,
    place: str,
) -> NDArray[Any]:
    calendar = f"{attributes.get('calendar', 'standard')}".lower()
    if calendar not in CALENDARS:
        raise rules.refusal("calendar", place, f"times are of the calendar {calendar!r}")
    with needing_extra("xarray", place):
        import xarray  # noqa: PLC0415 - an extra
    numbers = np.where(mask, np.nan, values) if mask.any() else values
    units = f"{attributes['units']}"
    flat = xarray.Variable("rows", numbers.ravel(), {"units": units, "calendar": calendar})
    try:
        times = xarray.conventions.decode_cf_variable(place, flat).values
    except (ValueError, OverflowError, ImportError) as error:
        problem = f"units {units!r} cannot be read as times ({error})".splitlines()[0]
        raise rules.refusal("attribute of another type", place, problem) from error
    if times.dtype.kind != "M":
        raise rules.refusal("calendar", place, f"times of {units!r} lie outside of the calendar")
    result: NDArray[Any] = times.reshape(values.shape)
    return result
