"""Bags in the arrays of an .npz file."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import fsspec
import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, shown
from ..data.bags.bags import Bags, offsets_of
from ..data.bags.format_rules import FormatRules
from ..data.bags.responses import Responses, as_responses
from ..data.storage.files import check_local
from ..data.storage.urls import normalize_url
from ..execution.memory import available_memory

NPZ_RULES = FormatRules(
    name="npz files",
    calls=("ingest_npz",),
    honoured={
        "points": "coordinates, a row per point",
        "offsets": "the first point of each bag, and the number of points",
        "sizes": "numbers of points of the bags",
        "ids": "integers or texts",
        "targets": "numbers, or texts, which are classes",
        "response_points": "points of the responses, with response_offsets or response_sizes",
    },
    refused={
        "offsets and sizes": "leave one out",
        "pickled objects": "save plain numbers or text",
        "other arrays": "known: ['points', 'offsets', 'sizes', 'ids', 'targets'",
    },
)

RESPONSE_PREFIX = "response_"
_ARRAYS = (
    *("points", "offsets", "sizes", "ids", "targets"),
    *("response_points", "response_offsets", "response_sizes"),
)
HEADERS = {  # by the version of the format; a third one is for names of fields
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class NpzBags(NamedTuple):
    """The arrays of an .npz file; None for missing arrays."""

    bags: Bags
    ids: NDArray[Any] | None
    targets: NDArray[Any] | None
    responses: Responses | None


def read_npz(file: str) -> NpzBags:
    """Return the bags of an .npz file; see `ingest_npz` for its arrays.

    Raises
    ------
    DataError
        If the file cannot be read, or an array is missing or cannot be used. The message names the
        array.
    """
    arrays = _load(file)
    bags = Bags(_array(arrays, "points"), _offsets(arrays, ""))
    ids = arrays.get("ids")
    if ids is not None and ids.shape != (len(bags),):
        raise DataError(f"array 'ids' has shape {ids.shape}; expected ({len(bags)},)")
    return NpzBags(bags, ids, arrays.get("targets"), _responses(arrays, len(bags)))


def _responses(arrays: Mapping[str, NDArray[Any]], n_bags: int) -> Responses | None:
    if not any(name.startswith(RESPONSE_PREFIX) for name in arrays):
        return None
    points = _array(arrays, RESPONSE_PREFIX + "points")
    try:
        return as_responses(Responses(points, _offsets(arrays, RESPONSE_PREFIX)), n_bags)
    except DataError as error:
        raise DataError(f"array '{RESPONSE_PREFIX}points': {error}") from error


def _load(file: str) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    check_local(normalize_url(file), DataError)
    try:
        with fsspec.open(file, "rb") as handle:
            npz = np.load(handle, allow_pickle=False)
            if not isinstance(npz, np.lib.npyio.NpzFile):
                raise DataError(f"{file}: one .npy array; save several by name with numpy.savez")
            for name in npz.files:
                if name not in _ARRAYS:
                    raise DataError(f"{file}: unknown array {name!r}; known: {list(_ARRAYS)}")
                arrays[name] = _load_array(npz, name, file)
    except DataError:
        raise
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{file}: cannot be read ({error or type(error).__name__})") from error
    return arrays


def _load_array(npz: Any, name: str, file: str) -> NDArray[Any]:
    _check_size(npz.zip, name, file)
    try:
        return np.asarray(npz[name])
    except MemoryError as error:
        raise DataError(f"{file}: array {name!r} does not fit in memory ({error})") from error
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise DataError(
            f"{file}: array {name!r} holds pickled Python objects, which are never loaded; save "
            "plain numbers or text"
        ) from error


def _check_size(archive: zipfile.ZipFile, name: str, file: str) -> None:
    """Raise DataError if the header of an array states a size beyond the memory.

    A few bytes can state any shape, and a small compressed file can hold gigabytes of one number.
    """
    if f"{name}.npy" not in archive.namelist():
        return
    with archive.open(f"{name}.npy") as member:
        header = HEADERS.get(np.lib.format.read_magic(member))
        if header is None:  # numpy raises its own error
            return
        shape, _, dtype = header(member)
    n_bytes, available = math.prod(shape) * dtype.itemsize, available_memory()
    if n_bytes > available:
        gib = f"{n_bytes / 2**30:,.2f}" if n_bytes < 2**63 else "more than 2^33"
        raise DataError(
            f"{file}: array {name!r} is of shape {shown(shape)} and {dtype}, {gib} GiB, "
            f"and {available / 2**30:,.2f} GiB of memory are available; write several files, and "
            "join their stores with `bags merge`"
        )


def _array(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    if name not in arrays:
        raise DataError(f"no array {name!r}; there are {list(arrays)}")
    return arrays[name]


def _offsets(arrays: Mapping[str, NDArray[Any]], prefix: str) -> NDArray[Any]:
    """Return the offsets of the points whose arrays' names begin with ``prefix``."""
    names = f"{prefix}offsets", f"{prefix}sizes"
    if names[1] not in arrays:
        return _array(arrays, names[0])
    sizes = arrays[names[1]]
    if names[0] in arrays:
        raise DataError(f"arrays {names[0]!r} and {names[1]!r} say the same twice; leave one out")
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise DataError(
            f"array {names[1]!r} is {sizes.dtype} {sizes.shape}; expected integers, 1-d"
        )
    return offsets_of(sizes.astype(np.int64))
