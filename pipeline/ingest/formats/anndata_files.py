"""Cells and their annotations, read a range of cells at a time: AnnData objects and their files.

A file is ``.h5ad`` (HDF5) or AnnData-Zarr, at a path or a URL. Only names, category codes and the
positions of non-zeros are held in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr
from numpy.typing import NDArray

from ...core.arrays import refuse_masked
from ...core.errors import BagbasisError, DataError, needing_extra, refuse_exhaustion, shown
from ...data.storage.files import check_local
from ...data.storage.urls import filesystem, local_path, normalize_url
from ...data.storage.zarr_stores import zarr_store

if TYPE_CHECKING:
    from anndata import AnnData

_HDF5 = (".h5ad", ".h5", ".hdf5")
MAX_GENES_BYTES = 2**29  # size of the selected genes of a matrix that is stored by genes
RUNS_CODE = "pickle"  # a codec of Zarr's format 2 that runs what a file holds


class CellMatrix(Protocol):
    """A row per cell: an array, or a sparse matrix, in memory or not."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the numbers of cells and of columns."""
        ...

    def __getitem__(self, rows: slice) -> Any:
        """Return the rows of some cells."""
        ...


@dataclass(frozen=True)
class Cells:
    """Names of the columns and matrices of some cells, and functions that open them.

    Parameters
    ----------
    place : str
        Place that begins error messages.
    n_obs : int
    genes : pandas.Index
    columns : list of str
        Names of columns of obs.
    matrices, layers : list of str
        Names of matrices of obsm and of layers.
    column : callable
        Function that maps the name of a column of obs to a function of a range of cells, which
        returns the column's values.
    matrix : callable
        Function that maps ("obsm", name), ("layers", name) or ("X", "") to a matrix.
    """

    place: str
    n_obs: int
    genes: pd.Index
    columns: list[str]
    matrices: list[str]
    layers: list[str]
    column: Callable[[str], Callable[[slice], Any]]
    matrix: Callable[[str, str], CellMatrix]


@contextmanager
def open_cells(cells: AnnData | str | os.PathLike[str]) -> Iterator[Cells]:
    """Yield the cells of an object, or of a file that is open within the block.

    Raises
    ------
    DataError
        If the argument is neither an AnnData object nor an AnnData file. The message names the
        file.
    """
    if not isinstance(cells, (str, os.PathLike)):
        names = ("obs", "obsm", "layers", "var_names", "X", "n_obs")
        if not all(hasattr(cells, name) for name in names):
            raise DataError(f"cells is {shown(cells)}; expected an AnnData object or a path")
        yield _of_object(cells)
        return
    url = normalize_url(cells)
    with needing_extra("anndata", url):
        import anndata  # noqa: F401, PLC0415 - says at once what is missing
    with _opened(url) as group:
        with reading_cells(url, "cannot be read as .h5ad or AnnData-Zarr"):
            opened = _of_group(group, url)
        yield opened


@contextmanager
def reading_cells(place: str, what: str) -> Iterator[None]:
    """Re-raise errors of HDF5, Zarr, networks and anndata about a damaged file as a DataError."""
    try:
        yield
    except BagbasisError:
        raise
    except Exception as error:  # these four have no common base below this one
        refuse_exhaustion(place, error)
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{place}: {what} ({reason})") from error


def matrix_rows(matrix: CellMatrix, rows: slice, columns: Any = slice(None)) -> NDArray[Any]:
    """Return columns of some cells of a dense, sparse or lazy matrix as a NumPy array."""
    part: Any = matrix.iloc[rows] if isinstance(matrix, pd.DataFrame) else matrix[rows]
    part = part.compute() if hasattr(part, "compute") else part
    if hasattr(part, "toarray"):
        return np.asarray(part.tocsc()[:, columns].toarray())
    return np.asarray(part)[:, columns]


class StoredSparse:
    """A sparse matrix in a file, of which only ``indptr`` is in memory.

    anndata has such a class, but it calls private methods of SciPy, which change.
    """

    def __init__(self, group: Any) -> None:
        """Open the group of ``data``, ``indices`` and ``indptr`` that anndata writes."""
        kind = str(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "")))
        self.format = kind.removesuffix("_matrix")
        if self.format not in ("csr", "csc"):
            raise DataError(f"it is neither an array nor a sparse matrix, but {kind!r}")
        shape = group.attrs["shape"] if "shape" in group.attrs else group.attrs["h5sparse_shape"]
        self.shape = (int(shape[0]), int(shape[1]))
        self._indptr = np.asarray(group["indptr"][:])
        self._indices, self._data = group["indices"], group["data"]
        self.dtype = np.dtype(self._data.dtype)

    def __getitem__(self, rows: slice) -> Any:
        """Return rows as a SciPy matrix; for a matrix stored by columns, columns, as its rows."""
        ends = self._indptr[rows.start : rows.stop + 1]
        stored = slice(int(ends[0]), int(ends[-1]))
        width = self.shape[1] if self.format == "csr" else self.shape[0]
        parts = (self._data[stored], self._indices[stored], ends - ends[0])
        return sp.csr_matrix(parts, shape=(len(ends) - 1, width))


def is_by_genes(matrix: CellMatrix) -> bool:
    """Whether reading rows is slow: a sparse matrix that is stored by columns."""
    return getattr(matrix, "format", None) == "csc"


def matrix_columns(matrix: Any, numbers: NDArray[np.int64], place: str) -> NDArray[Any]:
    """Return some columns, shape (n, k), of a matrix that is stored by columns.

    Raises
    ------
    DataError
        If the columns take more than `MAX_GENES_BYTES`.
    """
    size = matrix.shape[0] * len(numbers) * matrix.dtype.itemsize
    if size > MAX_GENES_BYTES:
        raise DataError(
            f"{place}: {len(numbers)} genes of {matrix.shape[0]} cells are stored by genes (CSC) "
            f"and take {size / 2**20:,.0f} MiB at once; store them by cells: "
            "adata.X = adata.X.tocsr()"
        )
    columns = np.empty((matrix.shape[0], len(numbers)), dtype=matrix.dtype)
    for k, j in enumerate(numbers.tolist()):
        column = matrix[j : j + 1] if isinstance(matrix, StoredSparse) else matrix[:, j : j + 1]
        columns[:, k] = column.toarray().ravel()
    return columns


def _of_object(data: AnnData) -> Cells:
    def column(name: str) -> Callable[[slice], Any]:
        values = data.obs[name]
        if isinstance(values, pd.Series):
            return lambda rows: values.iloc[rows].array
        return lambda rows: np.asarray(values[rows])  # of a lazy object

    def matrix(kind: str, name: str) -> CellMatrix:
        array: Any = data.X if kind == "X" else getattr(data, kind)[name]
        is_backed = hasattr(array, "group") and hasattr(array, "format")
        refuse_masked(kind if kind == "X" else f"{kind}[{name!r}]", array)
        opened: CellMatrix = StoredSparse(array.group) if is_backed else array
        return opened

    return Cells(
        "cells",
        data.n_obs,
        pd.Index(data.var_names),
        list(data.obs.columns),
        list(data.obsm),
        list(data.layers),
        column,
        matrix,
    )


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    """Yield the group at the root of an HDF5 file, or of a Zarr store."""
    import h5py  # noqa: PLC0415 - comes with anndata

    check_local(url, DataError)
    path, failed = local_path(url), "cannot be read as .h5ad or AnnData-Zarr"
    is_hdf5 = url.lower().endswith(_HDF5) if path is None else not path.is_dir()
    if not is_hdf5:
        with reading_cells(url, failed):
            group = zarr.open_group(zarr_store(url, read_only=True), mode="r")
        yield group
        return
    with reading_cells(url, failed):
        if path is None:
            fs, remote = filesystem(url)
            stream = fs.open(remote, "rb")  # blocks of it, as they are asked for
        else:
            stream = path.open("rb")
    with stream:
        with reading_cells(url, failed):
            file = h5py.File(stream, "r")
        with file:
            yield file


def _of_group(group: Any, url: str) -> Cells:
    from anndata import io  # noqa: PLC0415

    obs = group["obs"]
    frame = None if _is_new(obs) else io.read_elem(obs)  # of files before anndata 0.7

    def column(name: str) -> Callable[[slice], Any]:
        if frame is not None:
            return lambda rows: frame[name].iloc[rows].array
        node = _safe(obs[name])
        if hasattr(node, "keys"):  # codes and categories, or values and a mask
            values = pd.Series(io.read_elem(node))
            return lambda rows: values.iloc[rows].array
        return lambda rows: _values(node, rows)

    def matrix(kind: str, name: str) -> CellMatrix:
        node: Any = group["X"] if kind == "X" else group[kind][name]
        _safe(node)
        opened: CellMatrix = node
        if hasattr(node, "keys"):
            is_frame = str(node.attrs.get("encoding-type", "")) == "dataframe"
            opened = io.read_elem(node) if is_frame else StoredSparse(node)
        return opened

    return Cells(
        url,
        len(frame) if frame is not None else obs[_index(obs)].shape[0],
        _genes(group["var"], io.read_elem),
        list(frame) if frame is not None else [str(name) for name in obs.attrs["column-order"]],
        sorted(group["obsm"]) if "obsm" in group else [],
        sorted(group["layers"]) if "layers" in group else [],
        column,
        matrix,
    )


def _is_new(frame: Any) -> bool:
    """Whether a frame is a group of columns that can be read one by one."""
    return hasattr(frame, "keys") and "__categories" not in frame and "_index" in frame.attrs


def _index(frame: Any) -> str:
    return str(frame.attrs["_index"])


def _genes(var: Any, read: Callable[[Any], Any]) -> pd.Index:
    genes: pd.Index
    if not _is_new(var):
        genes = pd.Index(read(var).index)
    else:
        genes = pd.Index(np.asarray(read(_safe(var[_index(var)])), dtype=object))
    return genes


def _values(column: Any, rows: slice) -> Any:
    """Return some values of a stored column; texts as pandas' strings."""
    if getattr(column.dtype, "kind", "") == "O" and hasattr(column, "asstr"):
        column = column.asstr()
    values = np.asarray(column[rows])
    return pd.array(values.astype(object), dtype="string") if values.dtype.kind in "OTU" else values


def _safe(node: Any) -> Any:
    """Return an array or group; DataError if decoding it could run code."""
    parts: Any = [array for _, array in node.arrays()] if isinstance(node, zarr.Group) else [node]
    for part in parts:
        filters = getattr(getattr(part, "metadata", None), "filters", None) or ()
        if any(getattr(codec, "codec_id", "") == RUNS_CODE for codec in filters):
            raise DataError(f"{part.path}: it is pickled, which is never read")
    return node
