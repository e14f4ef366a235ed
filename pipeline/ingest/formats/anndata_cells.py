"""Ingest of an AnnData object or file: the cells of a patient are a bag."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from typing_extensions import override

from ...core import TextList, TextOrList, UrlOrPath, checked
from ...core.declarations import with_fields_of
from ...core.errors import DataError, closest, shown
from ...data.bags.format_rules import FormatRules
from ...data.store.store import BagStore
from ...execution.progress import Progress
from ..registry import FORMATS
from ..tables import NamedBatches
from .anndata_files import (
    CellMatrix,
    Cells,
    is_by_genes,
    matrix_columns,
    matrix_rows,
    open_cells,
    reading_cells,
)
from .frames import RowsIngest, arrow_errors, ingest_rows, label_settings

if TYPE_CHECKING:
    from anndata import AnnData

ANNDATA_RULES = FormatRules(
    name="AnnData (.h5ad, Zarr, objects)",
    calls=("ingest_anndata",),
    honoured={
        "obs": "columns of ids, targets and coordinates",
        "categories of obs": "their values; unused ones are dropped",
        "obsm": "all columns of an array",
        "X": "genes, by name or all",
        "layers": "genes of a layer, with `layer` or by its name",
        "sparse matrices": "cells that are not stored are 0",
    },
    refused={
        "var_names": "call var_names_make_unique() first",
        "obsm of other than two dimensions": "expected (n, k)",
        "masked arrays": "leave them out",
    },
    ignored={
        "raw": "genes are those of X and of layers",
        "uns, obsp, varm, varp": "they hold no coordinates of cells",
    },
)

logger = logging.getLogger(__name__)

CELLS_PER_BATCH = 65_536  # per batch
CELL_SORT_BYTES = 3 * 2**26  # with the rest of an ingest of 2 million cells × 30, less than a GiB
VALUES_PER_BATCH = 2**25  # of a matrix, which may be sparse: 128 MiB where it is dense


@checked
def ingest_anndata(
    cells: AnnData | str | os.PathLike[str],
    url: UrlOrPath,
    *,
    id_column: TextOrList,
    coordinates: TextOrList,
    targets: TextList | None = None,
    layer: str | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> BagStore:
    """Make a store from annotated cells (AnnData), or append to one, in batches of cells.

    Cells may come in any order. They are copied to the folder of temporary files (``TMPDIR``) and
    sorted there by their bags.

    Parameters
    ----------
    cells : AnnData, or path or URL
        An ``.h5ad`` file or an AnnData-Zarr store, at a path or any URL that fsspec supports (``pip
        install 'bagbasis[anndata]'``). An AnnData object in memory is read too; it may be lazy or
        backed by a file (``backed="r"``).
    url : str or path
        The store to write.
    id_column : str or list of str
        Columns of ``obs`` that identify the bag. Cells with equal values in all of these columns
        form one bag.
    coordinates : str or list of str
        Names of the coordinates. Each name is looked up in this order: an array of ``obsm``
        ("X_pca" stands for all its columns, ``X_pca[0]``, …), a numeric column of ``obs``, a gene
        of ``var_names``, "X" for all genes, or a layer for all its genes. If a name occurs in
        several of these places, the first is used and a warning is logged.
    targets : str or list of str, optional
        Target columns of ``obs``, which are constant within a bag, such as the donor to group by.
        With a target_table, they are columns of that table.
    layer : str, optional
        Layer that genes are read from. None: ``X``.
    progress : callable, optional
        Function that is called with the number of cells done and the number of all cells. A cell
        counts a quarter each when it is copied, checked, sorted and written.
    **parameters
        Further parameters of `ingest_frame`.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        If the file cannot be read, a name does not exist, the selected genes of a matrix stored by
        genes take more than 512 MiB, or `TableIngest` refuses the data.
    ParameterError, StoreError
        As `TableIngest`.

    See Also
    --------
    ingest_tables : Read Parquet, Arrow and CSV files.
    bagbasis.singlecell.sample_distances : Distances between samples.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> import anndata
    >>> import pandas as pd
    >>> from bagbasis.ingest import ingest_anndata
    >>> cells = anndata.AnnData(rng.normal(size=(5, 2)), pd.DataFrame({'donor': list('aabbb')}))
    >>> store = ingest_anndata(cells, 'bags.zarr', id_column='donor', coordinates='X')
    >>> len(store)
    2
    """
    asked = [coordinates] if isinstance(coordinates, str) else list(coordinates)
    labels = label_settings(id_column, targets, parameters)
    with open_cells(cells) as opened:
        for name in labels:
            if name not in opened.columns:
                hint = closest(name, opened.columns)
                there = f"it has {shown(opened.columns)}"
                raise DataError(f"{opened.place}: obs has no column {name!r}{hint}; {there}")
        parts = _parts(opened, asked, layer)
        batches = _batches(opened, labels, parts, progress)
        return ingest_rows(
            NamedBatches(batches, "cells"),
            url,
            CELL_SORT_BYTES,
            id_column=id_column,
            coordinates=[name for part in parts for name in part.names],
            targets=targets,
            progress=None if progress is None else _three_quarters(progress, opened.n_obs),
            **parameters,
        )


@FORMATS.register
@dataclass(frozen=True)
@with_fields_of(ingest_anndata, "layer")
class AnnDataIngest(RowsIngest):
    """Make a store from an ``.h5ad`` file; see `ingest_anndata`, whose ``cells`` are ``points``."""

    name: ClassVar[str] = "anndata"
    endings: ClassVar[tuple[str, ...]] = (".h5ad",)
    rules: ClassVar[FormatRules] = ANNDATA_RULES

    @override
    def ingest(self, points: UrlOrPath, url: UrlOrPath, **parameters: Any) -> BagStore:
        return ingest_anndata(points, url, **parameters)


@dataclass(frozen=True)
class _Part:
    """A column of obs, or columns of a matrix, and the names of the coordinates they become."""

    kind: str  # "obs", "obsm", "X" or "layers"
    name: str
    numbers: NDArray[np.int64]  # of the columns
    names: list[str]


def _parts(cells: Cells, asked: Sequence[str], layer: str | None) -> list[_Part]:
    """Return the place of each coordinate; DataError for a coordinate that does not exist."""
    if layer is not None and layer not in cells.layers:
        hint = closest(layer, cells.layers)
        raise DataError(
            f"{cells.place}: there is no layer {layer!r}{hint}; there are {shown(cells.layers)}"
        )
    genes = ("X", "X") if layer is None else ("layers", layer)
    return [_part(cells, name, genes) for name in asked]


def _log_places(cells: Cells, name: str) -> None:
    """Log a warning for a coordinate that occurs in several places; the first is used."""
    named = {
        f"obsm[{name!r}]": name in cells.matrices,
        f"column {name!r} of obs": name in cells.columns,
        f"gene {name!r} of var_names": name in cells.genes,
        "X, for all genes": name == "X",
        f"layer {name!r}, for all genes": name in cells.layers,
    }
    places = [place for place, is_there in named.items() if is_there]
    if len(places) > 1:
        logger.warning(
            "%s: coordinate %r is read from %s, and not from %s; rename one of them to take it",
            *(cells.place, name, places[0], " or ".join(places[1:])),
        )


def _part(cells: Cells, name: str, genes: tuple[str, str]) -> _Part:
    _log_places(cells, name)
    if name in cells.matrices:
        with reading_cells(cells.place, f"obsm[{name!r}] cannot be read"):
            shape = cells.matrix("obsm", name).shape
        if len(shape) != 2:
            raise DataError(f"{cells.place}: obsm[{name!r}] has shape {shape}; expected (n, k)")
        return _Part("obsm", name, np.arange(shape[1]), [f"{name}[{j}]" for j in range(shape[1])])
    if name in cells.columns:
        return _Part("obs", name, np.arange(1), [name])
    is_gene = name in cells.genes
    if not is_gene and name != "X" and name not in cells.layers:
        hint = closest(name, [*cells.matrices, *cells.columns, *cells.genes, *cells.layers])
        raise DataError(
            f"{cells.place}: coordinate {name!r}{hint} is none of obsm ({shown(cells.matrices)}), "
            f"no column of obs ({shown(cells.columns)}), no gene of var_names, and no layer "
            f"({shown(cells.layers)})"
        )
    if not cells.genes.is_unique:
        raise DataError("var_names are not unique: call var_names_make_unique() first")
    if is_gene:
        return _Part(*genes, cells.genes.get_indexer(pd.Index([name])), [name])
    all_genes = [str(gene) for gene in cells.genes]
    if name == "X":
        return _Part(*genes, np.arange(len(all_genes)), all_genes)
    names = [f"{name}[{gene}]" for gene in all_genes]
    return _Part("layers", name, np.arange(len(all_genes)), names)


@dataclass(frozen=True)
class _Block:
    """All columns to read from one matrix."""

    matrix: CellMatrix
    numbers: NDArray[np.int64]
    names: list[str]


def _blocks(cells: Cells, parts: Sequence[_Part]) -> Iterator[_Block]:
    for kind, name in dict.fromkeys((part.kind, part.name) for part in parts if part.kind != "obs"):
        place = "X" if kind == "X" else f"{kind}[{name!r}]"
        of = [part for part in parts if (part.kind, part.name) == (kind, name)]
        numbers = np.concatenate([part.numbers for part in of])
        names = [coordinate for part in of for coordinate in part.names]
        with reading_cells(cells.place, f"{place} cannot be read"):
            matrix = cells.matrix(kind, name)
            if getattr(matrix, "shape", (None,))[0] != cells.n_obs:
                raise DataError(f"{cells.place}: {place} is missing, or has no row per cell")
            if is_by_genes(matrix):
                matrix = matrix_columns(matrix, numbers, f"{cells.place}: {place}")
                numbers = np.arange(len(numbers))
        yield _Block(matrix, numbers, names)


def _batches(
    cells: Cells, labels: Sequence[str], parts: Sequence[_Part], progress: Progress | None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the labels and coordinates of some cells at a time."""
    with reading_cells(cells.place, "obs cannot be read"):
        of_obs = [part.name for part in parts if part.kind == "obs"]
        columns = {name: cells.column(name) for name in dict.fromkeys([*labels, *of_obs])}
    blocks = list(_blocks(cells, parts))
    step = _cells_per_batch([block.matrix for block in blocks])
    for start in range(0, cells.n_obs, step):
        rows = slice(start, min(cells.n_obs, start + step))
        with reading_cells(cells.place, f"cells {rows.start} to {rows.stop} cannot be read"):
            frame = {name: column(rows) for name, column in columns.items()}
            for block in blocks:
                values = matrix_rows(block.matrix, rows, block.numbers)
                frame.update(zip(block.names, values.T, strict=True))
        place = f"{cells.place}: cells {rows.start} to {rows.stop - 1}"
        with arrow_errors(place):
            batch = pa.RecordBatch.from_pandas(pd.DataFrame(frame), preserve_index=False)
        yield place, batch
        if progress is not None:
            progress(rows.stop // 4, cells.n_obs)


def _cells_per_batch(matrices: Sequence[CellMatrix]) -> int:
    """Return the rows to read at a time: whole chunks of the first matrix that has chunks."""
    step = CELLS_PER_BATCH
    for matrix in matrices:
        step = max(1, min(step, VALUES_PER_BATCH // max(1, matrix.shape[1])))
    for matrix in matrices:
        chunks = getattr(matrix, "shards", None) or getattr(matrix, "chunks", None)
        rows = chunks[0] if chunks else 1
        if isinstance(rows, int) and 1 < rows <= step:
            return step // rows * rows
    return step


def _three_quarters(progress: Progress, n_cells: int) -> Progress:
    """Convert the progress of checking, sorting and writing points to progress in cells."""

    def report(done: int, total: int) -> None:
        share = done / total if total else 1.0
        progress(n_cells // 4 + round(share * (n_cells - n_cells // 4)), n_cells)

    return report
