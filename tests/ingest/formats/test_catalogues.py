"""Catalogues in HDF5 and FITS files, made by the libraries that others make them with."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import pytest

from bagbasis import DataError, ParameterError
from bagbasis.ingest import ingest_catalogue
from bagbasis.ingest.formats import catalogues
from bagbasis.ingest.registry import format_of_files
from tests.ingest.formats.annotated import write_h5ad

RNG = np.random.default_rng(0)
N = 200
HALO = RNG.integers(0, 12, N)
POS = RNG.random((N, 3))
MASS = RNG.random(N).astype(np.float32)
KIND = np.array(["cluster", "field", "wall"])[HALO % 3]
GIVEN = {"id_column": "halo", "coordinates": ["pos", "mass"], "targets": ["kind", "z"]}


def written(kind, tmp_path):
    """The catalogue in a file of a kind, and the table in it."""
    path = tmp_path / (
        "c.h5" if kind.startswith("hdf5") else "c.fits.gz" if kind == "gz" else "c.fits"
    )
    columns = {"halo": HALO, "pos": POS, "mass": MASS, "kind": KIND, "z": HALO / 4}
    if not kind.startswith("hdf5"):
        from astropy.io import fits
        from astropy.table import Table

        table = Table(columns)
        table.meta["EXTNAME"] = "GALAXIES"
        fits.HDUList([fits.PrimaryHDU(np.eye(3)), fits.BinTableHDU(table)]).writeto(path)
        return path, "GALAXIES" if kind == "named" else None
    with h5py.File(path, "w") as file:
        if kind == "hdf5 records":
            types = [
                (n, f"S{8}" if n == "kind" else v.dtype, v.shape[1:]) for n, v in columns.items()
            ]
            records = np.empty(N, types)
            for name, values in columns.items():
                records[name] = np.strings.encode(values) if name == "kind" else values
            file["sky/catalogue"] = records
            return path, "sky/catalogue"
        for name, values in columns.items():
            text = {"dtype": h5py.string_dtype()} if name == "kind" else {}
            values = values.astype(object) if name == "kind" else values
            file.create_dataset(f"PartType0/{name}", data=values, chunks=True, **text)
    return path, "PartType0"


def test_formats_of_one_file_of_rows(tmp_path):
    """`bags ingest` takes FITS and .h5ad files with the parameters of their own functions."""
    path, _ = written("fits", tmp_path)
    kind = format_of_files([f"{path}".upper()])
    store = kind(path, f"{tmp_path / 's'}.zarr", table="galaxies", dtype="float64", **GIVEN).run()
    expected = ingest_catalogue(path, tmp_path / "t.zarr", dtype="float64", **GIVEN)
    np.testing.assert_array_equal(store.read().points, expected.read().points)
    assert store.ids().tolist() == expected.ids().tolist()
    with pytest.raises(ParameterError, match=r"missing is 'drop' .*; expected one of \['refuse'"):
        kind(path, "s.zarr", missing="drop", **GIVEN)
    cells = f"{tmp_path / 'c'}.h5ad"
    write_h5ad(cells, pd.DataFrame({"donor": list("aab")}), np.eye(3), list("xyz"))
    kind = format_of_files([cells])
    call = {"id_column": "donor", "coordinates": ["X"]}
    points = kind(cells, f"{tmp_path / 'u'}.zarr", **call).run().read().points
    np.testing.assert_array_equal(points, np.eye(3))
    with pytest.raises(DataError, match="there is no layer 'raw'"):
        kind(cells, f"{tmp_path / 'v'}.zarr", layer="raw", **call).run()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["hdf5", "hdf5 records", "fits", "named", "gz"])
def test_a_catalogue_is_the_bags_of_a_groupby(kind, tmp_path, monkeypatch):
    """Columns, of vectors too, in any byte order; texts and numbers as targets."""
    monkeypatch.setattr(catalogues, "ROWS_PER_READ", 64)
    path, table = written(kind, tmp_path)
    store = ingest_catalogue(path, tmp_path / "s.zarr", table=table, dtype="float64", **GIVEN)
    frame = pd.DataFrame(np.column_stack([POS, MASS]))
    for bag, (_, rows) in zip(store.read(), frame.groupby(HALO), strict=True):
        np.testing.assert_array_equal(bag, rows.to_numpy())
    assert store.ids().tolist() == sorted(set(HALO.tolist()))
    assert store.meta.source["coordinates"] == ["pos[0]", "pos[1]", "pos[2]", "mass"]
    classes = store.meta.class_names["kind"]
    assert classes == ["cluster", "field", "wall"]
    np.testing.assert_array_equal(store.targets()[:, 0], store.ids() % 3)
    np.testing.assert_array_equal(store.targets()[:, 1], store.ids() / 4)


@pytest.mark.long
def test_missing_integers_of_fits(tmp_path):
    """The number that stands for none is missing, not a coordinate."""
    from astropy.table import MaskedColumn, Table

    level = MaskedColumn(np.arange(N), mask=np.arange(N) % 7 == 0)
    Table({"halo": HALO, "level": level}).write(tmp_path / "c.fits")
    arguments = {"id_column": "halo", "coordinates": ["level"]}
    with pytest.raises(DataError, match="coordinate 'level' is missing"):
        ingest_catalogue(tmp_path / "c.fits", tmp_path / "s.zarr", **arguments)
    store = ingest_catalogue(
        tmp_path / "c.fits", tmp_path / "s.zarr", missing="drop_point", **arguments
    )
    assert sorted(store.read().points[:, 0]) == [i for i in range(N) if i % 7]


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("c.h5", {}, "no column 'halo'; there are .*PartType0"),
        ("c.h5", {"table": "Stars"}, "nothing is called 'Stars'; there are .*PartType0"),
        ("c.h5", {"table": "PartType0", "coordinates": ["mas"]}, r"'mas' \(did you mean 'mass'"),
        ("c.fits", {"table": 7}, "no table 7; the extensions are .*GALAXIES"),
        ("c.fits", {"table": 0}, "no table 0; the extensions are"),
        ("c.fits", {"coordinates": ["mas"]}, r"'mas' \(did you mean 'mass'"),
        ("d.h5", {"coordinates": ["short"], "targets": None}, "columns differ in length"),
        ("d.h5", {"coordinates": ["deep"], "targets": None}, "'deep' is not a column of numbers"),
        ("e.h5", {}, r"e\.h5: cannot be read as HDF5"),
        ("e.fits", {}, r"e\.fits: cannot be read as FITS"),
        ("f.fits", {}, r"f\.fits: table 'GALAXIES' cannot be read .*; copy the file again"),
    ],
)
def test_what_is_refused(file, options, message, tmp_path):
    """Names the file, and what there is."""
    written("hdf5", tmp_path)
    written("fits", tmp_path)
    with h5py.File(tmp_path / "d.h5", "w") as made:
        made["halo"], made["short"], made["deep"] = HALO, MASS[:5], np.zeros((N, 2, 2))
    (tmp_path / "e.h5").write_bytes(b"none")
    (tmp_path / "e.fits").write_bytes(b"none")
    (tmp_path / "f.fits").write_bytes((tmp_path / "c.fits").read_bytes()[:-2880])
    with pytest.raises(DataError, match=message):
        ingest_catalogue(tmp_path / file, tmp_path / "s.zarr", **{**GIVEN, **options})
    with pytest.raises(ParameterError, match="expected a local file"):
        ingest_catalogue(tmp_path / "c.txt", tmp_path / "s.zarr", **GIVEN)
