"""AnnData objects and ``.h5ad`` files, as anndata itself writes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bagbasis.errors import DataError, ParameterError
from bagbasis.ingest import ingest_anndata
from bagbasis.ingest.formats import anndata_cells
from tests.ingest.formats.annotated import annotated, write_h5ad

N = 300
RNG = np.random.default_rng(0)
PATIENT = RNG.integers(0, 12, N)
EXPRESSED = sp.random(N, 8, 0.4, format="csr", dtype=np.float32, random_state=0)
PCA = RNG.normal(size=(N, 3))
OPTIONS = {"id_column": "patient", "coordinates": "X_pca", "targets": ["age"]}


OBS = pd.DataFrame(
    {
        "patient": [f"p{i:02}" for i in PATIENT],
        "age": PATIENT * 2.0,
        "size": RNG.random(N),
    }
)
GENES = [f"g{j}" for j in range(8)]


def cells(x=EXPRESSED):
    return annotated(OBS, x, GENES, X_pca=PCA)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cells.h5ad"
    write_h5ad(path, OBS, EXPRESSED, GENES, X_pca=PCA)
    return path


def assert_holds(store, values):
    assert store.ids().tolist() == [f"p{i:02}" for i in np.unique(PATIENT)]
    np.testing.assert_array_equal(store.targets()[:, 0], np.unique(PATIENT) * 2.0)
    for bag, patient in zip(store.read(), np.unique(PATIENT), strict=True):
        expected = values[patient == PATIENT].astype(np.float32)
        np.testing.assert_array_equal(np.sort(bag, axis=0), np.sort(expected, axis=0))


@pytest.mark.parametrize("dense", [False, True])
def test_embedding_and_genes(dense, tmp_path, monkeypatch):
    """Arrays of obsm, genes and columns of obs, in the order asked for and in many batches."""
    monkeypatch.setattr(anndata_cells, "VALUES_PER_BATCH", 8 * 70)
    data = cells(EXPRESSED.toarray() if dense else EXPRESSED)
    asked = ["g5", "X_pca", "g1", "size"]
    store = ingest_anndata(data, tmp_path / "s.zarr", **{**OPTIONS, "coordinates": asked})
    genes = EXPRESSED.toarray()
    assert_holds(store, np.column_stack([genes[:, 5], PCA, genes[:, 1], OBS["size"]]))
    names = ["g5", "X_pca[0]", "X_pca[1]", "X_pca[2]", "g1", "size"]
    assert store.meta.source["coordinates"] == names


def test_file(file, tmp_path):
    """What anndata wrote, the expressions left on the disk."""
    store = ingest_anndata(file, tmp_path / "s.zarr", **OPTIONS)
    assert_holds(store, PCA)
    store = ingest_anndata(file, tmp_path / "g.zarr", **{**OPTIONS, "coordinates": ["g7"]})
    assert_holds(store, EXPRESSED.toarray()[:, 7:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coordinates": ["X_pcs"]}, r"'X_pcs' \(did you mean 'X_pca'\?\) is none of obsm"),
        ({"id_column": "donor"}, "obs has no column 'donor'"),
        ({"targets": ["size"]}, "size"),  # varies within a bag
        ({"cells": "none.h5ad"}, "none.h5ad"),
        ({"cells": "s3://bucket/a.h5ad"}, "local paths"),
        ({"cells": PCA}, "expected an AnnData object"),
    ],
)
def test_refused(change, message, tmp_path):
    """One line that names what is wrong; no store is left."""
    given = {"cells": cells(), **OPTIONS, **change}
    with pytest.raises((DataError, ParameterError), match=message):
        ingest_anndata(given.pop("cells"), tmp_path / "s.zarr", **given)
    assert not (tmp_path / "s.zarr").exists()


def test_no_file_of_anndata(tmp_path):
    """What is no HDF5 file, and cells that are none."""
    path = tmp_path / "text.h5ad"
    path.write_text("cells")
    with pytest.raises(DataError, match=r"text\.h5ad: can not be read as \.h5ad"):
        ingest_anndata(path, tmp_path / "s.zarr", **OPTIONS)
    with pytest.raises(DataError, match="there are no cells"):
        ingest_anndata(cells()[:0], tmp_path / "s.zarr", **OPTIONS)
