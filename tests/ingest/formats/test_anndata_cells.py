"""AnnData objects, ``.h5ad`` files and AnnData-Zarr, as anndata itself writes them."""

from __future__ import annotations

from pathlib import Path

import fsspec
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

from bagbasis import Bags, DataError, ParameterError
from bagbasis.ingest import ingest_anndata
from bagbasis.ingest.formats import anndata_cells, anndata_files
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


def cells(x=EXPRESSED, **columns):
    return annotated(OBS.assign(**columns), x, GENES, X_pca=PCA)


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


KINDS = {
    "dense": lambda x: x.toarray(),
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_embedding_and_genes(kind, tmp_path, monkeypatch):
    """Arrays of obsm, genes and columns of obs, in the order asked for and in many batches."""
    monkeypatch.setattr(anndata_cells, "VALUES_PER_BATCH", 8 * 70)
    asked = ["g5", "X_pca", "g1", "size"]
    data = cells(KINDS[kind](EXPRESSED))
    store = ingest_anndata(data, tmp_path / "s.zarr", **{**OPTIONS, "coordinates": asked})
    genes = EXPRESSED.toarray()
    assert_holds(store, np.column_stack([genes[:, 5], PCA, genes[:, 1], OBS["size"]]))
    names = ["g5", "X_pca[0]", "X_pca[1]", "X_pca[2]", "g1", "size"]
    assert store.meta.source["coordinates"] == names


def write(data, path, zarr_format, chunks=None):
    """Write a file of a format: 2 and 3 are Zarr's, 0 is HDF5; chunks of dense arrays."""
    if zarr_format == 0:
        data.write_h5ad(path)
        return
    import anndata

    anndata.settings.zarr_write_format = zarr_format
    data.write_zarr(path, **({} if chunks is None else {"chunks": chunks}))


@pytest.mark.parametrize(
    ("zarr_format", "kind"),
    [
        pytest.param(number, kind, marks=[pytest.mark.long] * (i % 3 != j))  # each once in `test`
        for i, kind in enumerate(KINDS)
        for j, number in enumerate([0, 2, 3])
    ],
)
def test_files_are_read_some_cells_at_a_time(kind, zarr_format, tmp_path, monkeypatch):
    """At most a batch of a matrix is read at once; cells are in any order, chunks uneven."""
    monkeypatch.setattr(anndata_cells, "CELLS_PER_BATCH", 70)
    data = cells(KINDS[kind](EXPRESSED), donor=[f"d{i // 2}" for i in PATIENT])
    data.layers["counts"] = KINDS[kind](EXPRESSED * 2)
    data.obsm["sparse"] = sp.csr_matrix(PCA * (PCA > 0))
    path = tmp_path / ("cells.h5ad" if zarr_format == 0 else "cells.zarr")
    write(data, path, zarr_format, (37, 8) if kind == "dense" else None)
    read = []
    for reader in (h5py.Dataset, zarr.Array):
        inner = reader.__getitem__

        def counted(array, rows, inner=inner):
            result = inner(array, rows)
            name = getattr(array, "name", "").strip("/")
            if name.split("/")[0] in ("X", "obsm", "layers") and not name.endswith("indptr"):
                read.append((name, np.size(result)))
            return result

        monkeypatch.setattr(reader, "__getitem__", counted)
    asked = ["X", "counts", "X_pca", "sparse"]
    options = {**OPTIONS, "coordinates": asked, "targets": ["age", "donor"]}
    store = ingest_anndata(path, tmp_path / "s.zarr", **options)
    dense = EXPRESSED.toarray()
    assert_holds(store, np.column_stack([dense, 2 * dense, PCA, PCA * (PCA > 0)]))
    assert store.meta.class_names["donor"] == [f"d{i}" for i in range(6)]
    assert {name.split("/")[0] for name, _ in read} == {"X", "obsm", "layers"}
    assert max(size for _, size in read) <= 70 * 8


@pytest.mark.long
def test_genes_of_a_layer(file, tmp_path):
    """Instead of X; and a gene of a file."""
    data = cells()
    data.layers["counts"] = EXPRESSED * 2
    options = {**OPTIONS, "coordinates": ["g7"]}
    store = ingest_anndata(data, tmp_path / "l.zarr", layer="counts", **options)
    assert_holds(store, 2 * EXPRESSED.toarray()[:, 7:])
    assert_holds(ingest_anndata(file, tmp_path / "g.zarr", **options), EXPRESSED.toarray()[:, 7:])


@pytest.mark.long
def test_file(file, tmp_path, monkeypatch):
    """What anndata wrote, the expressions left on the disk; an object backed by it, too."""
    import anndata

    steps = []
    monkeypatch.setattr(anndata_cells, "CELLS_PER_BATCH", 100)
    store = ingest_anndata(
        file, tmp_path / "s.zarr", **OPTIONS, progress=lambda *step: steps.append(step)
    )
    assert_holds(store, PCA)
    assert steps[0] == (25, N)
    assert steps[-1] == (N, N)
    assert steps == sorted(steps)
    backed = anndata.read_h5ad(file, backed="r")
    store = ingest_anndata(backed, tmp_path / "b.zarr", **{**OPTIONS, "coordinates": ["g7"]})
    assert_holds(store, EXPRESSED.toarray()[:, 7:])


@pytest.mark.long
def test_lazy_object(tmp_path, monkeypatch):
    """An object of anndata whose arrays are Dask's and whose columns are in the file."""
    import anndata

    monkeypatch.setattr(anndata_cells, "CELLS_PER_BATCH", 70)
    write(cells(EXPRESSED.toarray()), tmp_path / "cells.zarr", 3)
    lazy = anndata.experimental.read_lazy(tmp_path / "cells.zarr")
    options = {**OPTIONS, "coordinates": ["X_pca", "g7", "size"]}
    store = ingest_anndata(lazy, tmp_path / "s.zarr", **options)
    assert_holds(store, np.column_stack([PCA, EXPRESSED.toarray()[:, 7], OBS["size"]]))


@pytest.mark.long
@pytest.mark.parametrize("name", ["cells.h5ad", "cells.zarr"])
def test_url(name, tmp_path):
    """Files of any filesystem that fsspec knows."""
    write(cells(), tmp_path / name, 0 if name.endswith("h5ad") else 3)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / name), f"/anndata/{name}", recursive=True)
    try:
        options = {**OPTIONS, "coordinates": ["X_pca", "g7"]}
        store = ingest_anndata(f"memory://anndata/{name}", tmp_path / "s.zarr", **options)
    finally:
        memory.rm("/anndata", recursive=True)
    assert_holds(store, np.column_stack([PCA, EXPRESSED.toarray()[:, 7:]]))


@pytest.mark.long
def test_texts_and_nullable_columns(tmp_path):
    """Ids that are texts, not categories; a target with missing values, first of all."""
    data = cells()
    data.obs["name"] = pd.Series([*OBS["patient"]], index=data.obs_names, dtype=object)
    known = PATIENT % 2 == 0
    data.obs["stage"] = pd.array(np.where(known, PATIENT, 0), dtype="Int64")
    data.obs.loc[~known, "stage"] = pd.NA
    data.write_h5ad(tmp_path / "t.h5ad", convert_strings_to_categoricals=False)
    options = {"id_column": "name", "coordinates": "X_pca", "targets": ["age", "stage"]}
    store = ingest_anndata(tmp_path / "t.h5ad", tmp_path / "s.zarr", **options)
    assert_holds(store, PCA)
    expected = np.unique(PATIENT).astype(float)
    np.testing.assert_array_equal(
        store.targets()[:, 1], np.where(expected % 2 == 0, expected, np.nan)
    )


@pytest.mark.long
def test_too_many_genes_stored_by_genes(tmp_path, monkeypatch):
    """They would all be in memory; the message says how to store them by cells."""
    monkeypatch.setattr(anndata_files, "MAX_GENES_BYTES", N * 4 * 3)
    cells(EXPRESSED.tocsc()).write_h5ad(tmp_path / "c.h5ad")
    options = {**OPTIONS, "coordinates": ["g0", "g1", "g2"]}
    ingest_anndata(tmp_path / "c.h5ad", tmp_path / "s.zarr", **options)
    with pytest.raises(DataError, match=r"c\.h5ad: X: 8 genes of 300 cells.*tocsr"):
        ingest_anndata(tmp_path / "c.h5ad", tmp_path / "x.zarr", **{**OPTIONS, "coordinates": "X"})
    assert not (tmp_path / "x.zarr").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coordinates": []}, r"coordinates is \[\]; expected"),
        ({"coordinates": ["X_pcs"]}, r"'X_pcs' \(did you mean 'X_pca'\?\) is none of obsm"),
        ({"id_column": "donor"}, "obs has no column 'donor'"),
        ({"targets": ["size"]}, "size"),  # varies within a bag
        ({"cells": "none.h5ad"}, r"none\.h5ad: cannot be read.*No such file"),
        ({"cells": "memory://none/cells.zarr"}, r"none/cells\.zarr: cannot be read as \.h5ad or"),
        ({"cells": "memory://none/cells.h5ad"}, r"none/cells\.h5ad: cannot be read as \.h5ad or"),
        ({"cells": PCA}, "expected an AnnData object"),
        ({"layer": "raw"}, "no layer 'raw'"),
        ({"coordinates": "X", "cells": cells(None)}, "X is missing"),
    ],
)
def test_refused(change, message, tmp_path):
    """One line that names what is wrong; no store is left."""
    arguments = {"cells": cells(), **OPTIONS, **change}
    with pytest.raises((DataError, ParameterError), match=message):
        ingest_anndata(arguments.pop("cells"), tmp_path / "s.zarr", **arguments)
    assert not (tmp_path / "s.zarr").exists()


def test_cells_are_no_list_of_bags():
    """Where arrays are expected, the message says which array, or that a store is made of cells."""
    for wrong in (cells(), [cells()[:9], cells()[9:]]):
        with pytest.raises(DataError, match=r"pass one of its arrays.*ingest_anndata"):
            Bags.from_list(wrong)


def test_no_file_of_anndata(tmp_path):
    """What is no HDF5 file, a Zarr store of something else, and cells that are none."""
    path = tmp_path / "text.h5ad"
    path.write_text("cells")
    zarr.open_group(tmp_path / "other.zarr", mode="w")
    for name in ("text.h5ad", "other.zarr"):
        with pytest.raises(DataError, match=f"{name}: cannot be read as .h5ad or AnnData-Zarr"):
            ingest_anndata(tmp_path / name, tmp_path / "s.zarr", **OPTIONS)
    with pytest.raises(DataError, match="there are no cells"):
        ingest_anndata(cells()[:0], tmp_path / "s.zarr", **OPTIONS)


@pytest.mark.long
def test_a_damaged_chunk_and_a_pickled_column(tmp_path):
    """Names the file and the cells; what could run code is not decoded."""
    import anndata

    cells(EXPRESSED.toarray()).write_zarr(tmp_path / "d.zarr", chunks=(100, 8))
    for chunk in Path(tmp_path / "d.zarr" / "X").rglob("*"):
        if chunk.is_file() and not chunk.name.startswith((".", "zarr")):
            chunk.write_bytes(b"damaged")
    options = {**OPTIONS, "coordinates": "X"}
    with pytest.raises(DataError, match=r"d\.zarr: cells 0 to 300 cannot be read"):
        ingest_anndata(tmp_path / "d.zarr", tmp_path / "s.zarr", **options)
    anndata.settings.zarr_write_format = 2
    cells().write_zarr(tmp_path / "p.zarr")
    meta = tmp_path / "p.zarr" / "obs" / "age" / ".zarray"
    text = meta.read_text().replace('"filters": null', '"filters": [{"id": "pickle"}]')
    assert "pickle" in text
    meta.write_text(text)
    (tmp_path / "p.zarr" / ".zmetadata").unlink(missing_ok=True)
    with pytest.raises(DataError, match=r"p\.zarr.*pickle"):
        ingest_anndata(tmp_path / "p.zarr", tmp_path / "s.zarr", **OPTIONS)


@pytest.fixture(autouse=True)
def _zarr_format():
    import anndata

    before = anndata.settings.zarr_write_format
    yield
    anndata.settings.zarr_write_format = before


@pytest.mark.parametrize("place", ["obs", "genes"])
def test_a_name_in_two_places_is_logged(place, tmp_path, caplog):
    """The first place of the documented order is read."""
    data = cells()
    name = "X_pca" if place == "obs" else data.var_names[0]
    values = np.arange(2.0 * data.n_obs).reshape(-1, 2)
    data.obsm[name] = values
    if place == "obs":
        data.obs[name] = 9.0
    store = ingest_anndata(data, tmp_path / "s.zarr", id_column="patient", coordinates=[name])
    assert np.sort(store.read().points[:, 0]).tolist() == values[:, 0].tolist()
    other = "column 'X_pca' of obs" if place == "obs" else f"gene {name!r} of var_names"
    assert f"coordinate {name!r} is read from obsm[{name!r}], and not from {other}" in caplog.text
