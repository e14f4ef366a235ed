"""Batches of bags to write: from an iterable of arrays, or from the arrays of an .npz file."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fsspec
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .bags import Bags, as_bag, offsets_of
from .ingest_files import reading
from .plan import plan_partitions
from .targets import targets_matrix

BATCH_BYTES = 2**25
BATCH_BAGS = 2**16
NPZ_ARRAYS = ("points", "offsets", "sizes", "ids", "targets")

_END = object()


@dataclass(frozen=True)
class Batch:
    """Bags that are written at once; ``targets`` maps each name to values of shape (n_bags,)."""

    bags: Bags
    targets: dict[str, Any]
    ids: Any


def batches_of(
    arrays: Iterable[Any],
    rows: Iterator[Any] | None,
    names: Sequence[str],
    ids: Iterator[Any] | None,
) -> Iterator[Batch]:
    """Batches of one array a bag, in order.

    Parameters
    ----------
    arrays : iterable
        Arrays (n_i, n_dims); or tuples of one and the bag's target, when ``rows`` is None.
    rows : iterator, optional
        The target, or the targets, of one bag after the other.
    names : sequence of str
        Of the targets; if empty, see `default_names`.
    ids : iterator, optional
        One a bag; default 0, 1, ….

    Raises
    ------
    DataError
        An array or a target unlike those of the first bag, or more or fewer targets or ids than
        bags; names the bag.
    """
    parts: list[NDArray[Any]] = []
    labels: list[tuple[Any, ...]] = []
    expected: tuple[int, int] | None = None
    n_bags = n_bytes = 0
    for item in arrays:
        i = n_bags + len(parts)
        points, label = item if isinstance(item, tuple) and rows is None else (item, ())
        label = label if rows is None else _next(rows, "targets", i)
        parts.append(as_bag(points, i))
        labels.append((label,) if np.ndim(label) == 0 else tuple(label))
        found = parts[-1].shape[1], len(labels[-1])
        expected = expected or (found[0], len(names) or found[1])
        if found != expected:
            raise DataError(
                f"bag {i} has dimension {found[0]} and {found[1]} targets; expected dimension "
                f"{expected[0]} and {expected[1]} targets"
            )
        n_bytes += parts[-1].nbytes
        if n_bytes >= BATCH_BYTES or len(parts) == BATCH_BAGS:
            yield _batch(parts, labels, names, ids, n_bags)
            n_bags, n_bytes, parts, labels = i + 1, 0, [], []
    if parts:
        yield _batch(parts, labels, names, ids, n_bags)
    for what, left in (("targets", rows), ("ids", ids)):
        if left is not None and next(left, _END) is not _END:
            raise DataError(f"more {what} than bags: the bags end after {n_bags + len(parts)}")


def slices_of(
    bags: Bags,
    columns: Mapping[str, NDArray[Any]],
    ids: NDArray[Any] | None,
    progress: Callable[[int, int], None] | None,
) -> Iterator[Batch]:
    """Batches of bags that are in memory, reporting the points of those that are done."""
    max_rows = max(1, BATCH_BYTES // (bags.points.itemsize * bags.n_dims))
    for start, stop in plan_partitions(bags.offsets, 1, max_rows):
        part = {name: values[start:stop] for name, values in columns.items()}
        numbers = np.arange(start, stop)
        yield Batch(bags[start:stop], part, numbers if ids is None else ids[start:stop])
        if progress is not None:
            progress(int(bags.offsets[stop]), bags.n_points)


def is_whole(targets: Any) -> bool:
    """Whether targets are those of all bags, by name or in an array, and not bag by bag."""
    return _is_named(targets) or isinstance(targets, Sequence) or hasattr(targets, "__array__")


def columns_of(
    targets: Any, names: Sequence[str], classes: dict[str, list[str]], n_bags: int | None = None
) -> tuple[dict[str, list[str]], dict[str, NDArray[np.float64]]]:
    """The classes, and each target as numbers: a label is its index in the sorted labels.

    Parameters
    ----------
    targets : mapping from name to (n_bags,), array (n_bags,) or (n_bags, n_targets), or None
    names : sequence of str
        Of the columns of an array; if empty, see `default_names`.
    classes : dict
        Those that are given; a target not in it has its own labels.
    n_bags : int, optional
        Default: as many as there are values of the first target.

    Raises
    ------
    DataError
        Another shape or another number of names, or values that can not be used.
    """
    if targets is None:
        return classes, {}
    if _is_named(targets):
        keys = targets.keys() if isinstance(targets, Mapping) else targets.columns
        given = {str(name): np.asarray(targets[name]) for name in keys}
    else:
        matrix = np.asarray(targets)
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or (names and len(names) != matrix.shape[1]):
            raise DataError(
                f"targets have shape {matrix.shape}; expected one row a bag, one column for each "
                f"of {list(names) or 'the targets'}"
            )
        given = dict(zip(names or default_names(matrix.shape[1]), matrix.T, strict=True))
    classes = classes | {
        name: labels
        for name, values in given.items()
        if name not in classes and (labels := _labels(values))
    }
    n_bags = max(map(len, given.values()), default=0) if n_bags is None else n_bags
    floats = targets_matrix(given, names or list(given), classes, n_bags)
    return classes, dict(zip(names or given, floats.T, strict=True))


def default_names(n_targets: int) -> list[str]:
    """ "target", or "target_0", "target_1", … if there are several."""
    return ["target"] if n_targets == 1 else [f"target_{j}" for j in range(n_targets)]


def read_npz(file: str) -> tuple[Bags, NDArray[Any] | None, NDArray[Any] | None]:
    """Bags, ids and targets of an .npz file; see `ingest_npz` for what it holds.

    Raises
    ------
    DataError
        The file can not be read, or names the array that is missing or can not be used.
    """
    arrays = _load(file)
    bags = Bags(_array(arrays, "points"), _offsets(arrays))
    ids = arrays.get("ids")
    if ids is not None and ids.shape != (len(bags),):
        raise DataError(f"array 'ids' has shape {ids.shape}; expected ({len(bags)},)")
    return bags, ids, arrays.get("targets")


def _load(file: str) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with reading(file), fsspec.open(file, "rb") as handle:
            npz = np.load(handle, allow_pickle=False)
            if not isinstance(npz, np.lib.npyio.NpzFile):
                raise DataError(f"{file}: one .npy array; save several by name with numpy.savez")
            for name in npz.files:
                if name not in NPZ_ARRAYS:
                    raise DataError(f"{file}: unknown array {name!r}; known: {list(NPZ_ARRAYS)}")
                arrays[name] = _load_array(npz, name, file)
    except zipfile.BadZipFile as error:
        raise DataError(f"{file}: can not be read ({error})") from error
    return arrays


def _load_array(npz: Any, name: str, file: str) -> NDArray[Any]:
    try:
        return np.asarray(npz[name])
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise DataError(
            f"{file}: array {name!r} holds pickled Python objects, which are never loaded; save "
            "plain numbers or text"
        ) from error


def _array(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    if name not in arrays:
        raise DataError(f"no array {name!r}; there are {list(arrays)}")
    return arrays[name]


def _offsets(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    if "sizes" not in arrays:
        return _array(arrays, "offsets")
    sizes = arrays["sizes"]
    if "offsets" in arrays:
        raise DataError("arrays 'offsets' and 'sizes' say the same twice; leave one out")
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise DataError(f"array 'sizes' is {sizes.dtype} {sizes.shape}; expected integers, 1-d")
    return offsets_of(sizes.astype(np.int64))


def _batch(
    parts: list[NDArray[Any]],
    labels: list[tuple[Any, ...]],
    names: Sequence[str],
    ids: Iterator[Any] | None,
    first: int,
) -> Batch:
    numbers = range(first, first + len(parts))
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    columns = [list(column) for column in zip(*labels, strict=True)]
    return Batch(
        Bags.trusted(np.concatenate(parts), offsets_of(sizes)),
        dict(zip(names or default_names(len(columns)), columns, strict=True)),
        np.array(numbers) if ids is None else [_next(ids, "ids", i) for i in numbers],
    )


def _next(values: Iterator[Any], what: str, bag: int) -> Any:
    value = next(values, _END)
    if value is _END:
        raise DataError(f"fewer {what} than bags: bag {bag} has none")
    return value


def _is_named(targets: Any) -> bool:
    return isinstance(targets, Mapping) or hasattr(targets, "columns")


def _labels(values: NDArray[Any]) -> list[str]:
    if values.dtype.kind not in "OUT":
        return []
    return sorted({value for value in values.tolist() if isinstance(value, str) and value})
