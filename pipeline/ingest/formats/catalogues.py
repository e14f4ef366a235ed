"""Catalogues of columns in HDF5 and FITS files: a row per point, or per bag."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...errors import DataError, ParameterError, closest, needing_extra, shown
from ...parameters import Integer, ListOf, None_, Text, Url, checked
from ...storage import local_path, normalize_url
from ...store import BagStore
from ..tables import reader_of
from .frames import ingest_frame, labels_of

HDF5 = (".h5", ".hdf5", ".hdf", ".he5")
FITS = (".fits", ".fit", ".fts", ".fits.gz", ".fits.fz")
ROWS_AT_ONCE = 65_536


class Rows(Protocol):
    """A column of a file: rows are read when they are asked for."""

    shape: tuple[int, ...]

    def __getitem__(self, rows: slice) -> Any:
        """Return some rows."""
        ...


@checked(
    path=Url,
    url=Url,
    id_column=Text | ListOf(Text),
    coordinates=ListOf(Text),
    targets=ListOf(Text) | None_,
    table=Text | Integer() | None_,
)
def ingest_catalogue(
    path: str | os.PathLike[str],
    url: str | os.PathLike[str],
    *,
    id_column: str | Sequence[str],
    coordinates: Sequence[str],
    targets: Sequence[str] | None = None,
    table: str | int | None = None,
    **parameters: Any,
) -> BagStore:
    """Make a store from a catalogue in an HDF5 or FITS file, or append to one.

    Parameters
    ----------
    path : str or path
        A local ``.h5``, ``.hdf5``, ``.hdf``, ``.he5`` (``pip install 'bagbasis[hdf5]'``), or
        ``.fits``, ``.fit``, ``.fts``, ``.fits.gz``, ``.fits.fz`` file (``bagbasis[fits]``).
    url : str or path
        The store to write.
    id_column : str or list of str
        Columns of the bag's id.
    coordinates : list of str
        Columns of numbers, in order; one of shape (n, k) is k coordinates, ``name[0]``, ….
    targets : list of str, optional
        Columns of the file, or of the target_table if there is one.
    table : str or int, optional
        Where the columns are. In HDF5 a group, whose data sets are columns, or a data set of
        records; None: the root. In FITS the name or number of an extension; None: the first table.
    **parameters
        Others of `ingest_frame`.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        The file cannot be read; no such table or column; columns of different lengths; whatever
        `TableIngest` refuses.
    ParameterError, StoreError
        As `TableIngest`.
    """
    where = str(local_path(normalize_url(path)) or "")
    if not where.lower().endswith(HDF5 + FITS):
        kinds = ", ".join(HDF5 + FITS)
        raise ParameterError(f"path is {shown(path)}; expected a local file, one of {kinds}")
    names = list(dict.fromkeys([*labels_of(id_column, targets, parameters), *coordinates]))
    opened = _open_hdf5 if where.lower().endswith(HDF5) else _open_fits
    with opened(where, table) as there:
        columns = {name: _column(there, name, where) for name in names}
        lengths = {name: column.shape[0] for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"{where}: columns differ in length: {shown(lengths)}")
        wide = [name for name in coordinates if _axes(columns[name])]
        parts = {n: [f"{n}[{j}]" for j in range(*_axes(columns[n]))] for n in wide}
        return ingest_frame(
            reader_of(_batches(columns, parts, there.nulls), f"rows in {where}"),
            url,
            id_column=id_column,
            coordinates=[part for name in coordinates for part in parts.get(name, [name])],
            targets=targets,
            **parameters,
        )


@dataclass(frozen=True)
class _Table:
    """The columns of a file: their names, how one is read, and the integers that are missing."""

    names: list[str]
    read: Callable[[str], Rows]
    nulls: dict[str, int] = field(default_factory=dict)


def _column(table: _Table, name: str, where: str) -> Rows:
    try:
        column = table.read(name)
    except (KeyError, ValueError):
        hint = closest(name, table.names)
        there = f"{hint}; there are {shown(table.names)}"
        raise DataError(f"{where}: no column {name!r}{there}") from None
    if not getattr(column, "shape", ()) or len(_axes(column)) > 1:
        raise DataError(f"{where}: {name!r} is no column of numbers, or of rows of a few numbers")
    return column


def _axes(column: Rows) -> tuple[int, ...]:
    """Return the axes of a row; h5py does not say those of records' fields."""
    return np.asarray(column[:0]).shape[1:]


def _batches(
    columns: Mapping[str, Rows], parts: Mapping[str, Sequence[str]], nulls: Mapping[str, int]
) -> Iterator[pa.RecordBatch]:
    n_rows = next(iter(columns.values())).shape[0]
    for start in range(0, n_rows, ROWS_AT_ONCE):
        found = {}
        for name, column in columns.items():
            values = _native(np.asarray(column[start : start + ROWS_AT_ONCE]))
            mask = values == nulls[name] if name in nulls else np.zeros(values.shape, dtype=bool)
            names = parts.get(name, [name])
            several = (values.T, mask.T) if name in parts else ([values], [mask])
            for one, part, missing in zip(names, *several, strict=True):
                found[one] = pa.array(part, mask=missing)
        yield pa.RecordBatch.from_pydict(found)


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in this machine's byte order, and bytes as text."""
    if values.dtype.kind == "S":
        return np.strings.decode(values, "utf-8")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


@contextmanager
def _open_hdf5(where: str, table: str | int | None) -> Iterator[_Table]:
    with needing_extra("hdf5", where):
        import h5py  # noqa: PLC0415
    try:
        file = h5py.File(where)
    except OSError as error:
        raise DataError(f"{where}: cannot be read as HDF5 ({error})") from error
    with file:
        name = "/" if table is None else str(table)
        if name not in file:
            raise DataError(f"{where}: nothing is called {name!r}; there are {shown(list(file))}")
        found = file[name]
        if isinstance(found, h5py.Dataset):
            yield _Table(list(found.dtype.names or ()), lambda one: _texts(found.fields(one)))
        else:
            yield _Table(list(found), lambda one: _texts(found[one]))


def _texts(column: Any) -> Rows:
    """Return a column of h5py's whose texts are texts, not objects of bytes."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    rows: Rows = column.asstr() if kind == "O" else column
    return rows


@contextmanager
def _open_fits(where: str, table: str | int | None) -> Iterator[_Table]:
    with needing_extra("fits", where):
        from astropy.io import fits  # noqa: PLC0415
    try:
        file = fits.open(where)
    except OSError as error:
        raise DataError(f"{where}: cannot be read as FITS ({error})") from error
    with file:
        tables = [one for one in file if isinstance(one, (fits.BinTableHDU, fits.TableHDU))]
        try:
            found = file[table] if table is not None else tables[0]
        except (IndexError, KeyError):
            found = None
        if found not in tables:
            names = [one.name for one in file]
            wanted = "table" if table is None else f"table {table!r}"
            raise DataError(f"{where}: no {wanted}; the extensions are {shown(names)}")
        nulls = {one.name: one.null for one in found.columns if isinstance(one.null, int)}
        yield _Table(found.columns.names, lambda one: found.data[one], nulls)
