"""`FitStatistics` in one file: an .npz without pickle, whose JSON header holds checksums."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .accumulate import FitStatistics
from .rows import RidgeRows
from .statistics import RidgeStatistics

FORMAT_VERSION = 1
PARTS = ("train", "validation")
HEADER = "header"


def write_partial(path: Path, value: FitStatistics) -> None:
    """Write the statistics; the arrays go to the file as they are."""
    arrays: dict[str, NDArray[np.float64]] = {}
    counts: dict[str, int] = {}
    for field in fields(FitStatistics):
        held = getattr(value, field.name)
        if field.name not in PARTS:
            counts[field.name] = int(held)
        elif held is not None:
            counts[field.name] = int(held.n)
            arrays |= {f"{field.name}.{name}": getattr(held, name) for name in _names(type(held))}
    header = {
        "format": FORMAT_VERSION,
        "counts": counts,
        "digests": {name: _digest(array) for name, array in arrays.items()},
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **{HEADER: text}, **arrays)


def read_partial(path: Path) -> FitStatistics:
    """Return the statistics, every array checked against its checksum.

    Raises
    ------
    FileNotFoundError
        Nothing is there.
    ValueError
        A damaged file, or one of another format.
    """
    with path.open("rb") as file:
        try:
            return _read(file)
        except Exception as error:  # whatever a zip file makes of damaged bytes
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _read(file: BinaryIO) -> FitStatistics:
    with np.load(file, allow_pickle=False) as members:
        header = json.loads(members[HEADER].tobytes())
        if header["format"] != FORMAT_VERSION:
            raise ValueError(f"format {header['format']}")
        values: dict[str, Any] = dict(header["counts"])
        for part in PARTS:
            if part in values:
                kind = RidgeRows if f"{part}.z" in header["digests"] else RidgeStatistics
                names = [name for name in _names(kind) if f"{part}.{name}" in header["digests"]]
                arrays = {name: members[f"{part}.{name}"] for name in names}
                for name, array in arrays.items():
                    if _digest(array) != header["digests"][f"{part}.{name}"]:
                        raise ValueError(f"array {part}.{name} has another checksum")
                if "exponents" not in arrays:  # of a file written before targets had units
                    arrays["exponents"] = np.zeros(len(arrays["sum_y"]), dtype=np.int64)
                if kind is RidgeStatistics:
                    arrays["n"] = values[part]
                values[part] = kind(**arrays)
    return FitStatistics(**{"validation": None, **values})


def _names(kind: type[RidgeStatistics | RidgeRows]) -> list[str]:
    return [field.name for field in fields(kind) if field.name != "n"]


def _digest(array: NDArray[Any]) -> str:
    """Of the values, their type and their shape."""
    digest = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
