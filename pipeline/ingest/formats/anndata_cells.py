"""Cells of an AnnData object, or of its ``.h5ad`` file: the cells of a patient are a bag."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ...errors import (
    DataError,
    ParameterError,
    closest,
    needing_extra,
    refuse_exhaustion,
    shown,
)
from ...parameters import ListOf, None_, Text, Url, checked
from ...storage import local_path, normalize_url
from ...store import BagStore
from ..tables import reader_of
from .frames import ingest_frame, labels_of

if TYPE_CHECKING:
    from anndata import AnnData

MOST_CELLS = 65_536  # per batch
VALUES_PER_BATCH = 2**25  # of X, which may be sparse: 128 MiB where it is dense


@checked(
    url=Url,
    id_column=Text | ListOf(Text),
    coordinates=Text | ListOf(Text),
    targets=ListOf(Text) | None_,
)
def ingest_anndata(
    cells: AnnData | str | os.PathLike[str],
    url: str | os.PathLike[str],
    *,
    id_column: str | Sequence[str],
    coordinates: str | Sequence[str],
    targets: Sequence[str] | None = None,
    **parameters: Any,
) -> BagStore:
    """Make a store from annotated cells, or append to one.

    If a gene is among the coordinates, the expressions (``X``) of a file are read into memory.

    Parameters
    ----------
    cells : AnnData, or path of an .h5ad file
        A path needs anndata: ``pip install 'bagbasis[anndata]'``.
    url : str or path
        The store to write.
    id_column : str or list of str
        Columns of ``obs``: cells that agree in them are a bag.
    coordinates : str or list of str
        Each an array of ``obsm`` ("X_pca": all its columns, as ``X_pca[0]``, …), a column of
        numbers of ``obs``, or a gene (of ``var_names``, from ``X``); looked for in this order.
    targets : list of str, optional
        Columns of ``obs``, or of the target_table if there is one.
    **parameters
        Others of `ingest_frame`.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        The file can not be read; a name that is nowhere; whatever `TableIngest` refuses.
    ParameterError, StoreError
        As `TableIngest`.
    """
    asked = [coordinates] if isinstance(coordinates, str) else list(coordinates)
    data = _opened(cells, asked)
    labels = labels_of(id_column, targets, parameters)
    for name in labels:
        if name not in data.obs:
            hint = closest(name, list(data.obs))
            raise DataError(f"obs has no column {name!r}{hint}; it has {shown(list(data.obs))}")
    columns = {name: _columns(data, name) for name in asked}

    def batches() -> Iterator[pa.RecordBatch]:
        step = max(1, min(MOST_CELLS, VALUES_PER_BATCH // max(1, data.n_vars)))
        genes = [name for name in asked if _is_gene(data, name)]
        numbers = data.var_names.get_indexer(genes)
        for start in range(0, data.n_obs, step):
            cells = slice(start, start + step)
            frame = data.obs[labels].iloc[cells].reset_index(drop=True)
            expressed = _dense(data.X[cells], numbers) if genes else None
            for name in asked:
                if expressed is not None and name in genes:
                    values = expressed[:, genes.index(name)]
                else:
                    values = _annotation(data, name, cells)
                for column, part in zip(columns[name], np.atleast_2d(values.T), strict=True):
                    frame[column] = part
            yield pa.RecordBatch.from_pandas(frame, preserve_index=False)

    return ingest_frame(
        reader_of(batches(), "cells"),
        url,
        id_column=id_column,
        coordinates=[column for name in asked for column in columns[name]],
        targets=targets,
        **parameters,
    )


def _opened(cells: AnnData | str | os.PathLike[str], asked: Sequence[str]) -> AnnData:
    """Return the AnnData object; from a file without ``X``, unless a gene is asked for."""
    if not isinstance(cells, (str, os.PathLike)):
        if not all(hasattr(cells, name) for name in ("obs", "obsm", "var_names", "X", "n_obs")):
            raise DataError(f"cells is {shown(cells)}; expected an AnnData object or a path")
        return cells
    path = local_path(normalize_url(cells))
    if path is None:
        raise ParameterError(f"cells is {shown(cells)}; .h5ad files are read from local paths")
    with needing_extra("anndata", path):
        import h5py  # noqa: PLC0415
        from anndata import AnnData, io  # noqa: PLC0415
    try:
        with h5py.File(path) as file:
            parts = {name: io.read_elem(file[name]) for name in ("obs", "var", "obsm")}
            data = AnnData(**parts)
            if any(_is_gene(data, name) for name in asked):
                data.X = io.read_elem(file["X"])
    except Exception as error:  # h5py and anndata raise anything for what is no such file
        refuse_exhaustion(path, error)
        raise DataError(f"{path}: can not be read as .h5ad ({error})") from error
    return data


def _columns(data: AnnData, name: str) -> list[str]:
    """Return the names of a coordinate's columns; of an array of obsm there are several."""
    if name in data.obsm:
        return [f"{name}[{j}]" for j in range(np.shape(data.obsm[name])[1])]
    if name not in data.obs and name not in data.var_names:
        hint = closest(name, [*data.obsm, *data.obs, *data.var_names])
        raise DataError(
            f"coordinate {name!r}{hint} is none of obsm ({shown(list(data.obsm))}), no column of "
            f"obs ({shown(list(data.obs))}), and no gene of var_names"
        )
    if _is_gene(data, name) and not data.var_names.is_unique:
        raise DataError("var_names are not unique: call var_names_make_unique() first")
    return [name]


def _is_gene(data: AnnData, name: str) -> bool:
    return name not in data.obsm and name not in data.obs


def _annotation(data: AnnData, name: str, cells: slice) -> NDArray[Any]:
    """Return what obs or obsm has of some cells, shape (n,) or (n, k)."""
    if name not in data.obsm:
        return data.obs[name].iloc[cells].to_numpy()
    values = data.obsm[name]
    return _dense(values.iloc[cells] if isinstance(values, pd.DataFrame) else values[cells])


def _dense(rows: Any, columns: Any = slice(None)) -> NDArray[Any]:
    """Return rows as numpy's, whether they are dense or sparse."""
    if not hasattr(rows, "toarray"):
        return np.asarray(rows)[:, columns]
    return np.asarray(rows.tocsc()[:, columns].toarray())
