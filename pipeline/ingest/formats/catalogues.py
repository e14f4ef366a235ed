"""Ingest of catalogues in HDF5 and FITS files, with a row per point or per bag."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from typing_extensions import override

from ...core import Integer, Text, TextList, TextOrList, UrlOrPath, checked
from ...core.errors import DataError, ParameterError, closest, needing_extra, shown
from ...data.bags.format_rules import FormatRules
from ...data.bags.packed_attributes import HONOURED, IGNORED, REFUSED, has_meaning, unpacked
from ...data.storage.files import check_regular
from ...data.storage.urls import local_path, normalize_url
from ...data.store.store import BagStore
from ..registry import FORMATS
from ..tables import reader_of
from .frames import RowsIngest, ingest_frame, label_settings

_HDF5 = (".h5", ".hdf5", ".hdf", ".he5")
FITS = (".fits", ".fit", ".fts", ".fits.gz", ".fits.fz")
ROWS_PER_READ = 65_536


NULL_LOGICAL = tuple(b"TF")
# what netCDF writes into cells without a value, where a variable has no _FillValue of its own
NETCDF_FILLS = {
    "i2": -32767, "u2": 65535, "i4": -2147483647, "u4": 4294967295, "i8": -9223372036854775806,
    "u8": 18446744073709551614, "f4": 9.969209968386869e36, "f8": 9.969209968386869e36,
}  # fmt: skip

MAX_LINKS = 16  # soft links that lead to each other

HDF5_RULES = FormatRules(
    name="HDF5 and netCDF-4 files",
    calls=("ingest_catalogue", "ingest_patches"),
    honoured={
        **HONOURED,
        "fill value of netCDF": "cells that were never written are missing",
        "booleans, enumerations": "1 and 0, and the names of the values as texts",
        "variable lengths": "a row per bag",
        "byte order, half and long double": "numbers, as float32 and float64",
    },
    refused={
        **REFUSED,
        "complex numbers": "write the real and the imaginary part to data sets of their own",
        "references": "write the values themselves",
        "records, opaque values": "name the data set of records as the table",
        "pandas_type": "read it by pandas.read_hdf, and call ingest_frame",
        "text": "write texts as UTF-8",
        "links to other files": "copy the values into this file",
        "soft links": "link it to a data set of this file, or copy the values",
        "external storage, virtual data sets": "copy the values into this file",
    },
    warned={
        "fill value of the data set": "name it in missing_values if these cells were never written",
    },
    ignored=IGNORED | {"dimension scales": "rows are counted, not named"},
)

FITS_RULES = FormatRules(
    name="FITS tables",
    calls=("ingest_catalogue",),
    honoured={
        "TNULLn": "equal stored values are missing, in tables of binary numbers and of text",
        "TSCALn, TZEROn": "numbers are scaled, also unsigned ones",
        "TFORMn": "L (NULL is missing), X, B, I, J, K, A, E, D",
        "TFORMn P, Q": "a row per bag, with TNULLn, TSCALn and TZEROn",
        "TDIMn": "rows of vectors; a row of a matrix is refused",
        "blank fields": "missing, in tables of text",
    },
    refused={
        "TFORMn C, M": "write the real and the imaginary part to columns of their own",
        "TFORMn P, Q of bits": "write the bits as bytes (TFORMn PB)",
        "TDIMn of P, Q": "write a column for each coordinate, and a list of numbers per row",
        "ZTABLE": "uncompress the table (funpack)",
        "TFORMn of text": "write ASCII text",
    },
    ignored={
        "TUNITn, TDISPn, TCTYPn": "numbers stay in their units",
        "MJDREF, TIMESYS": "times stay numbers since their epoch",
        "CHECKSUM, DATASUM": "not compared",
    },
)


class FileColumn:
    """A column of a file: rows are read on demand, and missing values are masked."""

    def __init__(
        self, shape: tuple[int, ...], read: Callable[[slice], np.ma.MaskedArray[Any, Any]]
    ) -> None:
        self.shape = shape
        self.read = read


@checked
def ingest_catalogue(
    path: UrlOrPath,
    url: UrlOrPath,
    *,
    id_column: TextOrList,
    coordinates: TextList,
    targets: TextList | None = None,
    table: str | int | None = None,
    **parameters: Any,
) -> BagStore:
    """Make a store from a catalogue in an HDF5 or FITS file, or append to one.

    Parameters
    ----------
    path : str or path
        Local path of an HDF5 file (``.h5``, ``.hdf5``, ``.hdf``, ``.he5``; ``pip install
        'bagbasis[hdf5]'``) or of a FITS file (``.fits``, ``.fit``, ``.fts``, ``.fits.gz``,
        ``.fits.fz``; ``pip install 'bagbasis[fits]'``).
    url : str or path
        The store to write.
    id_column : str or list of str
        Columns that hold the bag's id.
    coordinates : str or list of str
        Numeric columns, in the order of the coordinates. A column of shape (n, k) gives k
        coordinates, ``name[0]``, ….
    targets : str or list of str, optional
        Target columns of the file. With a target_table, they are columns of that table.
    table : str or int, optional
        Table that has the columns. In HDF5, a group whose data sets are columns, or a data set of
        records. Default: the root. In FITS, the name or number of an extension. Default: the first
        table, if no other table has all these columns.
    **parameters
        Further parameters of `ingest_frame`.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        If the file cannot be read, the table or a column does not exist, the columns have different
        lengths, or `TableIngest` refuses the data.
    ParameterError, StoreError
        As `TableIngest`.

    See Also
    --------
    ingest_tables : Read Parquet, Arrow and CSV files.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> import h5py
    >>> from bagbasis.ingest import ingest_catalogue
    >>> with h5py.File('galaxies.h5', 'w') as file:
    ...     file['cluster'] = [1, 1, 2]
    ...     file['x'] = [0.1, 0.4, 0.2]
    >>> names = {'id_column': 'cluster', 'coordinates': ['x']}
    >>> store = ingest_catalogue('galaxies.h5', 'bags.zarr', **names)
    >>> len(store)
    2
    """
    where = str(local_path(normalize_url(path)) or "")
    if not where.lower().endswith(_HDF5 + FITS):
        kinds = ", ".join(_HDF5 + FITS)
        raise ParameterError(f"path is {shown(path)}; expected a local file, one of {kinds}")
    names = list(dict.fromkeys([*label_settings(id_column, targets, parameters), *coordinates]))
    check_regular(Path(where), DataError)
    opened = _open_hdf5 if where.lower().endswith(_HDF5) else _open_fits
    with opened(where, table, names) as there:
        columns = {name: _column(there, name, where) for name in names}
        lengths = {name: column.shape[0] for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"{where}: columns differ in length: {shown(lengths)}")
        for name in dict.fromkeys(label_settings(id_column, targets, parameters)):
            if name in columns and _axes(columns[name]) not in ((), (1,)):
                raise DataError(
                    f"{where}: {name!r} has {columns[name].shape[1]} values in a row; ids and "
                    "targets have one"
                )
        wide = [name for name in coordinates if _axes(columns[name])]
        parts = {n: [f"{n}[{j}]" for j in range(*_axes(columns[n]))] for n in wide}
        return ingest_frame(
            reader_of(_batches(columns, parts), f"rows in {where}"),
            url,
            id_column=id_column,
            coordinates=[part for name in coordinates for part in parts.get(name, [name])],
            targets=targets,
            **parameters,
        )


@FORMATS.register
@dataclass(frozen=True)
class FitsIngest(RowsIngest):
    """Make a store from one FITS file; see `ingest_catalogue`, whose ``path`` is ``points`` here.

    Parameters
    ----------
    table
        Name or number of the extension. None: the first table that has all columns.
    """

    name: ClassVar[str] = "fits"
    endings: ClassVar[tuple[str, ...]] = FITS
    files: ClassVar[str] = "FITS files"
    rules: ClassVar[FormatRules] = FITS_RULES

    table: Annotated[str | int, Text | Integer()] | None = None

    @override
    def ingest(self, points: UrlOrPath, url: UrlOrPath, **parameters: Any) -> BagStore:
        return ingest_catalogue(points, url, **parameters)


@dataclass(frozen=True)
class _Table:
    """The columns of a file: their names, and a function that opens a column."""

    names: list[str]
    column: Callable[[str], FileColumn]


def _column(table: _Table, name: str, where: str) -> FileColumn:
    try:
        column = table.column(name)
    except DataError:
        raise
    except (KeyError, ValueError):
        hint = closest(name, table.names)
        there = f"{hint}; there are {shown(table.names)}"
        raise DataError(f"{where}: no column {name!r}{there}") from None
    if not column.shape or len(_axes(column)) > 1:
        raise DataError(
            f"{where}: {name!r} is not a column of numbers, or of rows of a few numbers"
        )
    return column


def _axes(column: FileColumn) -> tuple[int, ...]:
    """Return the axes of a row."""
    return column.shape[1:]


def _batches(
    columns: Mapping[str, FileColumn], parts: Mapping[str, Sequence[str]]
) -> Iterator[pa.RecordBatch]:
    n_rows = next(iter(columns.values())).shape[0]
    for start in range(0, n_rows, ROWS_PER_READ):
        arrays = {}
        for name, column in columns.items():
            read = column.read(slice(start, start + ROWS_PER_READ))
            values, mask = _native(np.ma.getdata(read)), np.ma.getmaskarray(read)
            names = parts.get(name, [name])
            several = (values.T, mask.T) if name in parts else ([values.ravel()], [mask.ravel()])
            for key, part, missing in zip(names, *several, strict=True):
                arrays[key] = _arrow_of(part, missing)
        yield pa.RecordBatch.from_pydict(arrays)


def _arrow_of(values: NDArray[Any], mask: NDArray[np.bool_]) -> pa.Array:
    """Return a column as an Arrow array; lists beyond int64 are unsigned."""
    try:
        return pa.array(values, mask=mask)
    except OverflowError:
        return pa.array(values, type=pa.list_(pa.uint64()), mask=mask)


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in this machine's byte order, of the types that Arrow computes with."""
    if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        return values.astype(np.float32 if values.dtype.itemsize == 2 else np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


@contextmanager
def _open_hdf5(where: str, table: str | int | None, names: Sequence[str]) -> Iterator[_Table]:
    with needing_extra("hdf5", where):
        import h5py  # noqa: PLC0415
    try:
        file = h5py.File(where)
    except OSError as error:
        raise DataError(f"{where}: cannot be read as HDF5 ({error})") from error
    with file:
        name = "/" if table is None else str(table)
        is_there = not name.strip("/") or file.get(name, getlink=True) is not None
        if not is_there:
            raise DataError(f"{where}: nothing is called {name!r}; there are {shown(list(file))}")
        check_stored_within(file, name, where)
        source = file[name]
        keys = () if isinstance(source, h5py.Dataset) else source
        own = [key for key in keys if isinstance(source.get(key, getlink=True), h5py.HardLink)]
        for path in (name, *own):
            item = source if path == name else source[path]
            if "pandas_type" in item.attrs:
                problem = f"{path!r} was written by pandas"
                raise HDF5_RULES.refusal("pandas_type", where, problem)
        if isinstance(source, h5py.Dataset):
            fields = list(source.dtype.names or ())
            yield _Table(fields, lambda field: _hdf5_field(source, field, where))
        else:

            def column_of(key: str) -> FileColumn:
                check_stored_within(source, key, where)
                return _hdf5_column(source[key], f"{where}: {key!r}")

            yield _Table(list(source), column_of)


def check_stored_within(group: Any, name: str, where: str) -> None:
    """Raise DataError if a name in an HDF5 file leads to data outside this file.

    Other files are never read, because the author of a file must not choose files to read.

    Parameters
    ----------
    group : h5py.Group
    name : str
        Path in the group. No step of the path may be a link to another file.
    where : str
        URL of the file, for the message.
    """
    import h5py  # noqa: PLC0415

    names = [name]
    for _ in range(MAX_LINKS):
        place, item = f"{where}: {name!r}", group.file if names[0].startswith("/") else group
        steps = [step for step in names[0].split("/") if step]
        for i, step in enumerate(steps):
            link = item.get(step, getlink=True) if isinstance(item, h5py.Group) else None
            if isinstance(link, h5py.ExternalLink):
                problem = f"a link to {link.path!r} in the file {link.filename!r}"
                raise HDF5_RULES.refusal("links to other files", place, problem)
            if isinstance(link, h5py.SoftLink):
                parent = "" if link.path.startswith("/") else f"{item.name.rstrip('/')}/"
                names = ["/".join([f"{parent}{link.path}", *steps[i + 1 :]])]
                break
            if link is None:
                if names == [name]:
                    return  # whoever reads it says that it is not there
                problem = f"a soft link to {names[0]!r}, where nothing is"
                raise HDF5_RULES.refusal("soft links", place, problem)
            item = item[step]
        else:
            _check_storage(item, place)
            return
    raise HDF5_RULES.refusal("soft links", f"{where}: {name!r}", "soft links lead in a circle")


def _check_storage(item: Any, place: str) -> None:
    """Raise DataError for a data set whose values lie in other files."""
    files = [file for file, *_ in getattr(item, "external", None) or ()]
    if getattr(item, "is_virtual", False):
        files += [source.file_name for source in item.virtual_sources() if source.file_name != "."]
    if files:
        problem = f"the values lie in other files ({shown(files)})"
        raise HDF5_RULES.refusal("external storage, virtual data sets", place, problem)
    _check_written(item, place)


def _check_written(item: Any, place: str) -> None:
    """Raise DataError for a data set whose rows were never written.

    A file of 1 KB may declare 10^12 such rows. If a fill value was chosen, single unwritten rows
    are missing values.
    """
    import h5py  # noqa: PLC0415

    if not isinstance(item, h5py.Dataset) or not item.size or item.is_virtual:
        return
    n_chunks = n_written = 1
    if item.chunks is not None:
        n_chunks = math.prod(-(-n // m) for n, m in zip(item.shape, item.chunks, strict=True))
        n_written = item.id.get_num_chunks()
    elif not item.id.get_storage_size():
        n_written = 0
    plan = item.id.get_create_plist()
    is_chosen = plan.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
    if n_written == 0 or (n_written < n_chunks and not is_chosen):
        raise DataError(
            f"{place}: {n_chunks - n_written:,} of {n_chunks:,} chunks were never written, and "
            f"would be read as {shown(item.fillvalue)}; write all rows, or make it as long as what "
            "was written"
        )


def _hdf5_field(records: Any, field: str, where: str) -> FileColumn:
    """Return a field of a data set of records."""
    rows, dtype = records.fields(field), records.dtype[field]
    shape = (*records.shape, *np.empty(0, dtype).shape[1:])
    return FileColumn(shape, _hdf5_reader(rows, dtype, {}, f"{where}: {field!r}"))


def _hdf5_column(array: Any, place: str) -> FileColumn:
    """Return a data set as a column; a group, and a data set without rows, have no shape."""
    if not hasattr(array, "dtype"):
        return FileColumn((), lambda rows: np.ma.empty(0))
    read = _hdf5_reader(array, array.dtype, dict(array.attrs), place)
    fill = _fill_of(array)
    if fill is None:
        return FileColumn(array.shape, read)
    is_of_netcdf = fill == NETCDF_FILLS.get(f"{array.dtype.kind}{array.dtype.itemsize}")
    warned: list[str] = []

    def masked(rows: slice) -> np.ma.MaskedArray[Any, Any]:
        values, at_fill = read(rows), np.asarray(array[rows]) == fill
        if is_of_netcdf:
            return np.ma.MaskedArray(values, np.ma.getmaskarray(values) | at_fill)
        if not warned and (at_fill & ~np.ma.getmaskarray(values)).any():
            warned.append(place)
            problem = f"some values are {fill}, the data set's fill value"
            HDF5_RULES.warn("fill value of the data set", place, problem)
        return values

    return FileColumn(array.shape, masked)


def _fill_of(array: Any) -> Any:
    """Return the chosen fill value of a numeric data set; None if there is none or it is 0."""
    import h5py  # noqa: PLC0415

    if array.dtype.kind not in "iuf":
        return None
    is_chosen = array.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
    fill = array.fillvalue.item() if is_chosen else 0
    return fill if fill and fill == fill else None  # NaN is missing anyway


def _hdf5_reader(
    rows: Any, dtype: np.dtype[Any], attributes: Mapping[str, Any], place: str
) -> Callable[[slice], np.ma.MaskedArray[Any, Any]]:
    """Return a function that reads rows of a data set or field; refuse types without numbers."""
    import h5py  # noqa: PLC0415

    if h5py.check_ref_dtype(dtype) is not None:
        raise HDF5_RULES.refusal("references", place, "values are references")
    base = dtype.subdtype[0] if dtype.subdtype else dtype
    if base.kind == "c":
        raise HDF5_RULES.refusal("complex numbers", place, "numbers are complex")
    if base.kind == "V":
        raise HDF5_RULES.refusal("records, opaque values", place, f"values are of type {base}")
    names = h5py.check_enum_dtype(base)
    is_text = h5py.check_string_dtype(base) is not None
    is_ragged = h5py.check_vlen_dtype(base) is not None and not is_text

    def read(part: slice) -> np.ma.MaskedArray[Any, Any]:
        values = np.asarray(rows[part])
        if names:
            values = _names_of(values, {number: name for name, number in names.items()})
        elif is_text:
            values = _texts(values, place)
        if is_ragged:
            return np.ma.MaskedArray(_ragged(values, attributes, place))
        if not has_meaning(attributes):
            return np.ma.MaskedArray(values)
        return unpacked(values, attributes, HDF5_RULES, place)

    return read


def _names_of(values: NDArray[Any], names: Mapping[int, str]) -> NDArray[Any]:
    """Return the names of an enumeration's values; a number without a name becomes its text."""
    texts = [names.get(number, str(number)) for number in values.ravel().tolist()]
    return np.array(texts, dtype=object).reshape(values.shape)


def _texts(values: NDArray[Any], place: str) -> NDArray[Any]:
    """Return bytes as texts."""
    try:
        texts = [text.decode() if isinstance(text, bytes) else text for text in values.flat]
    except UnicodeDecodeError as error:
        raise HDF5_RULES.refusal("text", place, f"text is not UTF-8 ({error})") from error
    return np.array(texts, dtype=object).reshape(values.shape)


def _ragged(values: NDArray[Any], attributes: Mapping[str, Any], place: str) -> NDArray[Any]:
    """Return lists of numbers, with None for missing numbers."""
    result = np.empty(len(values), dtype=object)
    for row, numbers in enumerate(values):
        read = np.ma.MaskedArray(_native(np.asarray(numbers)))
        if has_meaning(attributes):
            read = unpacked(np.asarray(numbers), attributes, HDF5_RULES, place)
        result[row] = read.tolist() if np.ma.getmaskarray(read).any() else np.ma.getdata(read)
    return result


@contextmanager
def _open_fits(where: str, table: str | int | None, names: Sequence[str]) -> Iterator[_Table]:
    with needing_extra("fits", where):
        from astropy.io import fits  # noqa: PLC0415
    try:
        file = fits.open(where)
    except OSError as error:
        raise DataError(f"{where}: cannot be read as FITS ({error})") from error
    with file:
        tables = [hdu for hdu in file if isinstance(hdu, (fits.BinTableHDU, fits.TableHDU))]
        lists = {id(hdu): _take_lists(hdu.header) for hdu in tables}
        try:
            extension = file[table] if table is not None else tables[0]
        except (IndexError, KeyError):
            extension = None
        if extension not in tables:
            extensions = [hdu.name for hdu in file]
            wanted = "table" if table is None else f"table {table!r}"
            raise DataError(f"{where}: no {wanted}; the extensions are {shown(extensions)}")
        alike = [hdu for hdu in tables if _has_columns(hdu, names)]
        if len(alike) > 1 and (table is None or (isinstance(table, str) and _named(alike, table))):
            numbers = ", ".join(f"{file.index(hdu)} ({hdu.name!r})" for hdu in alike)
            raise DataError(
                f"{where}: the extensions {numbers} are tables with the columns {shown(names)}; "
                f"name one of them by its number, as table={file.index(alike[0])}"
            )
        if extension.header.get("ZTABLE"):
            raise FITS_RULES.refusal("ZTABLE", where, f"table {extension.name!r} is compressed")
        is_text = isinstance(extension, fits.TableHDU)
        own = extension.columns.names

        def column_of(name: str) -> FileColumn:
            at = next((j for j, other in enumerate(own, 1) if other.lower() == name.lower()), 0)
            stored = lists[id(extension)].get(at)
            try:
                return _fits_column(extension, name, is_text, where, stored)
            except TypeError as error:  # of numpy, where data are missing at the end
                problem = f"table {extension.name!r} cannot be read ({error})"
                raise DataError(f"{where}: {problem}; copy the file again") from error

        yield _Table(own, column_of)


@dataclass(frozen=True)
class _StoredLists:
    """Header entries of a column of variable-length lists (TFORMn P and Q)."""

    kind: str
    """Letter of the type: L, X, B, I, J, K, A, E, D, C or M."""
    scale: float
    zero: float
    shape: str
    """TDIMn; empty without one."""

    def numbers(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Return the values of stored numbers, as integers if they are whole."""
        if self.kind == "L":
            are_true: NDArray[Any] = stored == ord("T")
            return are_true
        if (self.scale, self.zero) == (1, 0):
            return stored
        if self.scale == 1 and stored.dtype.kind in "iu" and float(self.zero).is_integer():
            if stored.dtype.itemsize < 8:
                return stored.astype(np.int64) + int(self.zero)
            if self.zero == 2**63:  # how FITS writes uint64
                return stored.astype(np.uint64) + np.uint64(2**63)
        return stored * np.float64(self.scale) + self.zero

    def are_missing(self, stored: NDArray[Any], null: Any) -> NDArray[np.bool_]:
        """Return which stored numbers are missing: TNULLn, or bytes that are not booleans."""
        if self.kind == "L":
            return ~np.isin(stored, NULL_LOGICAL)
        if isinstance(null, int) and stored.dtype.kind in "iu":
            return np.asarray(stored == null)
        return np.zeros(stored.shape, dtype=bool)


def _take_lists(header: Any) -> dict[int, _StoredLists]:
    """Return the variable-length columns of a table by number, to be read without scaling.

    Astropy scales such columns within their own type: 0.5 becomes 0, and 65535 becomes -1. Booleans
    lose their NULL. Columns of bits are not read.
    """
    lists = {}
    for n in range(1, header.get("TFIELDS", 0) + 1):
        form = re.fullmatch(r"(\d*[PQ])([A-Z])(.*)", str(header.get(f"TFORM{n}", "")).strip())
        if form is None:
            continue
        scale, zero = header.pop(f"TSCAL{n}", 1), header.pop(f"TZERO{n}", 0)
        lists[n] = _StoredLists(form[2], scale, zero, str(header.pop(f"TDIM{n}", "")))
        if form[2] in "LX":
            header[f"TFORM{n}"] = f"{form[1]}B{form[3]}"
    return lists


def _has_columns(table: Any, names: Sequence[str]) -> bool:
    """Return whether a table of FITS has all these columns, in letters of any case."""
    own = {name.lower() for name in table.columns.names}
    return all(name.lower() in own for name in names)


def _named(tables: Sequence[Any], name: str) -> bool:
    """Return whether several tables of FITS have this name."""
    return bool(sum(hdu.name.lower() == name.strip().lower() for hdu in tables) > 1)


def _fits_column(
    table: Any, name: str, is_text: bool, where: str, lists: _StoredLists | None
) -> FileColumn:
    """Return a column by its name; as in FITS, case does not matter."""
    place = f"{where}: {name!r}"
    if lists is not None:
        _check_lists(lists, place)
    with warnings.catch_warnings():  # NULL is masked below
        warnings.filterwarnings("ignore", message=r"Column .* contains NULL")
        values, declared = table.data[name], table.columns[name]
    stored = table.data.view(np.ndarray)[declared.name]  # what TNULL speaks of
    null = declared.null
    if values.dtype.kind == "c":
        raise FITS_RULES.refusal("TFORMn C, M", place, "numbers are complex")

    def read(rows: slice) -> np.ma.MaskedArray[Any, Any]:
        part, raw = np.asarray(values[rows]), stored[rows]
        if lists is not None:
            return np.ma.MaskedArray(_lists(part, lists, null))
        mask = np.zeros(part.shape, dtype=bool)
        if is_text:
            texts = np.strings.strip(raw)
            mask = (texts == b"") & (part.dtype.kind not in "SU")
            mask |= texts == f"{null}".strip().encode() if null not in (None, "") else mask
        elif part.dtype.kind == "b" and raw.dtype.kind == "i":
            mask = ~np.isin(raw, NULL_LOGICAL).reshape(part.shape)
        elif raw.dtype.kind == "S":
            mask = raw == b""
        elif isinstance(null, int):
            mask = (raw == null).reshape(part.shape)
        try:
            return np.ma.MaskedArray(_ascii(part), mask)
        except UnicodeDecodeError as error:
            raise FITS_RULES.refusal(
                "TFORMn of text", place, f"text cannot be read ({error})"
            ) from error

    return FileColumn(np.shape(values), read)


def _check_lists(lists: _StoredLists, place: str) -> None:
    """Refuse columns of variable lengths whose rows are not lists of numbers."""
    if lists.kind in "CM":
        raise FITS_RULES.refusal("TFORMn C, M", place, "numbers are complex")
    if lists.kind == "X":
        raise FITS_RULES.refusal("TFORMn P, Q of bits", place, "rows are lists of bits")
    if lists.shape:
        problem = f"rows are arrays of shape TDIM {lists.shape}"
        raise FITS_RULES.refusal("TDIMn of P, Q", place, problem)
    for key, value in (("TSCAL", lists.scale), ("TZERO", lists.zero)):
        if not isinstance(value, (int, float)):
            raise DataError(f"{place}: {key} is {value!r}; expected a number")


def _lists(rows: NDArray[Any], lists: _StoredLists, null: Any) -> NDArray[Any]:
    """Return a column of variable lengths, whose missing numbers are None."""
    result = np.empty(len(rows), dtype=object)
    for row, numbers in enumerate(rows):
        stored = _native(np.asarray(numbers))
        mask = lists.are_missing(stored, null)
        plain = lists.numbers(stored)
        result[row] = np.ma.MaskedArray(plain, mask).tolist() if mask.any() else plain
    return result


def _ascii(values: NDArray[Any]) -> NDArray[Any]:
    return np.strings.decode(values, "utf-8") if values.dtype.kind == "S" else np.asarray(values)
