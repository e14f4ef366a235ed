"""`FitStatistics` in one .npz file without pickle; its JSON header holds checksums."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import refuse_exhaustion
from ...core.saved import Format, NewerError, newer_error
from ..ridge.rows import RidgeRows
from ..ridge.sums import RidgeStatistics
from .accumulate import FitStatistics, FoldStatistics

SUMS_FORMAT = Format("sums", key="format")
_SETS = ("train", "validation")
_FOLDS, FOLD = "folds", "fold"  # the field of `FitStatistics`, and the names of its parts
_HEADER = "header"


def write_partial(path: Path, value: FitStatistics) -> None:
    """Write the statistics; the arrays go to the file as they are."""
    arrays: dict[str, NDArray[Any]] = {}
    counts: dict[str, int] = {}
    for field in fields(FitStatistics):
        held = getattr(value, field.name)
        if field.name == _FOLDS:
            for i, part in enumerate(held.parts if held else ()):
                counts[f"{FOLD}{i}"] = int(part.n)
                arrays |= _arrays_of(f"{FOLD}{i}", part)
        elif field.name not in _SETS:
            counts[field.name] = int(held)
        elif held is not None:
            counts[field.name] = int(held.n)
            arrays |= _arrays_of(field.name, held)
    write_arrays(path, arrays, counts)


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]], counts: dict[str, int]) -> None:
    """Write arrays by name, with their checksums and some counts."""
    digests = {name: _digest(array) for name, array in arrays.items()}
    header = SUMS_FORMAT.stamp({"counts": counts, "digests": digests})
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **{_HEADER: text}, **arrays)


def read_partial(path: Path) -> FitStatistics:
    """Return the statistics, every array checked against its checksum.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is damaged or of another format; `NewerError` for a newer version.
    """
    arrays, values = _read(path)
    try:
        for part in _SETS:
            if part in values:
                values[part] = _part_of(part, values[part], arrays)
        names = [f"{FOLD}{i}" for i in range(len(values)) if f"{FOLD}{i}" in values]
        folds = tuple(_part_of(name, values.pop(name), arrays) for name in names)
        values[_FOLDS] = FoldStatistics(folds) if folds else None
        return FitStatistics(**{"validation": None, **values})
    except (KeyError, TypeError) as error:
        if newer := newer_error(error, {}):
            raise newer from error
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _arrays_of(name: str, part: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401 - a Summary
    values = {own: getattr(part, own) for own in _names(type(part))}
    return {f"{name}.{own}": array for own, array in values.items() if array is not None}


def _part_of(name: str, n: int, arrays: dict[str, NDArray[Any]]) -> RidgeRows | RidgeStatistics:
    own: dict[str, Any] = {
        key.removeprefix(f"{name}."): array
        for key, array in arrays.items()
        if key.startswith(f"{name}.")
    }
    if "exponents" not in own:  # of a file written before targets had units
        own["exponents"] = np.zeros(len(own["sum_y"]), dtype=np.int64)
    return RidgeRows(**own) if "z" in own else RidgeStatistics(**{"n": n, **own})


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return what `write_arrays` has written; raises as `read_partial`."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return arrays, checked, and counts."""
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as members:
                header = SUMS_FORMAT.strip(json.loads(members[_HEADER].tobytes()))
                arrays = {name: members[name] for name in header["digests"]}
                for name, array in arrays.items():
                    if _digest(array) != header["digests"][name]:
                        raise ValueError(f"array {name} has another checksum")
                return arrays, dict(header["counts"])
        except NewerError:
            raise
        except Exception as error:  # whatever a zip file makes of damaged bytes
            refuse_exhaustion(path, error)
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _names(kind: type[RidgeStatistics | RidgeRows]) -> list[str]:
    return [field.name for field in fields(kind) if field.name != "n"]


def _digest(array: NDArray[Any]) -> str:
    """Return a digest of the values, their type and their shape."""
    digest = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
