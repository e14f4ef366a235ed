"""What each ingest says of its format: declared, done and on the page."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

import bagbasis.ingest
from bagbasis import BagStore, DataError, ParameterError
from bagbasis.core import parameters_of
from bagbasis.data.bags.format_rules import FormatRules
from bagbasis.ingest import (
    ingest_anndata,
    ingest_arrays,
    ingest_frame,
    ingest_npz,
    ingest_patches,
    ingest_tables,
)
from bagbasis.ingest.arrays import ARRAY_RULES
from bagbasis.ingest.formats import anndata_cells, catalogues, cytometry, frames, images, patches
from bagbasis.ingest.npz import NPZ_RULES
from bagbasis.ingest.registry import FORMATS
from bagbasis.ingest.tables.ingest import TABLE_RULES
from tests.ingest.packed_rules import ELSEWHERE, PACKED_DONE, PACKED_REFUSED, WARNED

INSTANT = pd.Timestamp("2024-07-01T12:00", tz="America/New_York")
DAY = pd.Timestamp("2024-07-01T16:00") - pd.Timestamp(0)


def test_every_ingest_declares_its_format():
    """Each public function and class that reads other people's data, and from_xarray."""
    declared = {call for rules in FormatRules.ALL.values() for call in rules.calls}
    stub = ast.parse(Path(bagbasis.ingest.__file__).with_suffix(".pyi").read_text())
    public = {
        alias.asname
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert len(public) > 8
    assert declared == public | {"BagStore.from_xarray"}
    assert callable(BagStore.from_xarray)


def test_the_page_is_made_of_the_rules():
    """The documentation adds a section per format to the page, with the declared rows."""
    assert {catalogues.HDF5_RULES, cytometry.FCS_RULES, images.IMAGE_RULES} <= {
        *FormatRules.ALL.values()
    }
    for kind in FORMATS.values():
        assert FormatRules.ALL[kind.rules.name] is kind.rules
    section = cytometry.FCS_RULES.section()
    assert section.startswith(
        "Read by `ingest_fcs`.\n\n| honoured | what is done |\n|---|---|\n| \\$PnE |"
    )
    assert "| refused | what to do |" in section
    assert section.endswith("| counts of events that were never written |")


@pytest.mark.parametrize("name", sorted(FORMATS.own))
def test_every_key_of_a_format_has_a_text(name):
    """By itself, not by that of another format; rows of files have the words of tables."""
    declared = parameters_of(FORMATS[name])
    assert not [key for key, parameter in declared.items() if not parameter.text]
    if issubclass(FORMATS[name], frames.RowsIngest):
        of_tables = parameters_of(FORMATS["tables"])
        own = {"points", "url", "id_column", "coordinates", "targets"}
        shared = declared.keys() & of_tables.keys() - own
        assert len(shared) == 12
        assert {key: declared[key] for key in shared} == {key: of_tables[key] for key in shared}


def of_table(columns, names=("x",), **options):
    """Return the points of a table of Parquet."""

    def run(folder):
        path = folder / "t.parquet"
        pa.parquet.write_table(pa.table({"bag": [1, 2], **columns}), path)
        call = {"id_column": "bag", "coordinates": list(names), "dtype": "float64", **options}
        return ingest_tables(path, folder / "s.zarr", **call).read().points.ravel()

    return run


def of_folders(folder):
    """Return the ids of a table whose ids are the names of folders."""
    for name in ("site=007", "site=7"):
        (folder / "t" / name).mkdir(parents=True)
        pd.DataFrame({"x": [1.0]}).to_parquet(folder / "t" / name / "a.parquet")
    call = {"id_column": "site", "coordinates": ["x"]}
    return ingest_tables(folder / "t", folder / "s.zarr", **call).ids()


def of_empty_labels(folder):
    """Return the labels of a bag whose class is named, and of another's that is empty text."""
    path = folder / "t.parquet"
    pd.DataFrame({"bag": [1, 2], "x": [1.0, 2.0], "dx": ["ill", ""]}).to_parquet(path)
    call = {"id_column": "bag", "coordinates": ["x"], "targets": ["dx"]}
    return ingest_tables(path, folder / "s.zarr", **call).targets().ravel()


def of_twins(folder):
    """Ingest a table with two columns of one name."""
    path = folder / "t.parquet"
    pa.parquet.write_table(pa.table([[1, 2], [1.0, 2.0], [3.0, 4.0]], ["bag", "x", "x"]), path)
    ingest_tables(path, folder / "s.zarr", id_column="bag", coordinates=["x"])


def of_versions(folder, log="_delta_log", source="t"):
    """Ingest files of which a log says that one is of an earlier version."""
    for name in (log, "data"):
        (folder / "t" / name).mkdir(parents=True)
    (folder / "t" / log / "v1.metadata.json").write_text("{}")
    for name in ("old", "new"):
        frame = pd.DataFrame({"bag": [1], "x": [1.0]})
        frame.to_parquet(folder / "t" / "data" / f"{name}.parquet")
    url = folder / "s.zarr"
    return ingest_tables(folder / source, url, id_column="bag", coordinates=["x"]).n_points


def of_json_times(folder):
    """Return the ids of lines of JSON whose ids are days and times."""
    lines = '{"bag": "2020-01-01", "x": 1}\n{"bag": "2020-01-01T00:00:00", "x": 2}\n'
    (folder / "t.jsonl").write_text(lines)
    call = {"id_column": "bag", "coordinates": ["x"]}
    return ingest_tables(folder / "t.jsonl", folder / "s.zarr", **call).ids()


def of_two_clocks(folder):
    """Ingest a table with times with a zone in one file, and without in the other one."""
    for name, zone in (("a", "UTC"), ("b", None)):
        times = pa.array([0], pa.timestamp("us", tz=zone))
        pa.parquet.write_table(pa.table({"bag": [name], "x": times}), folder / f"{name}.parquet")
    ingest_tables(folder, folder / "s.zarr", id_column="bag", coordinates=["x"])


def of_frame(values, change=lambda frame: frame, **options):
    """Return the points of a frame of pandas."""

    def run(folder):
        frame = change(pd.DataFrame({"bag": [1, 2], "x": values}))
        call = {"id_column": "bag", "coordinates": ["x"], "dtype": "float64", **options}
        return ingest_frame(frame, folder / "s.zarr", **call).read().points.ravel()

    return run


def of_arrays(array):
    """Return the points of one array."""
    return lambda folder: ingest_arrays([array], folder / "s.zarr").read().points.ravel()


def read_only():
    """Return an array that cannot be written."""
    array = np.array([[1.0], [2.0]])
    array.flags.writeable = False
    return array


def of_npz(see=lambda store: store.read().points.ravel(), **arrays):
    """Return what a store of an .npz file holds."""

    def run(folder):
        content = io.BytesIO()
        whole = {"points": [[1.0], [2.0]], "sizes": [1, 1], **arrays}
        np.savez(content, **{name: a for name, a in whole.items() if a is not None})
        (folder / "a.npz").write_bytes(content.getvalue())
        return see(ingest_npz(folder / "a.npz", folder / "s.zarr"))

    return run


def of_cells(coordinates, see=lambda store: store.read().points.ravel(), **parts):
    """Return what a store of three cells of two donors holds."""

    def run(folder):
        obs = pd.DataFrame({"donor": pd.Categorical(["a", "b", "b"], ["b", "a", "c"])})
        obs.index = obs.index.astype(str)
        obs["age"] = [4.0, 5.0, 6.0]
        cells = anndata.AnnData(np.array([[1.0], [2.0], [0.0]]), obs)
        cells.var_names = ["CD4"]
        for name, value in parts.items():
            setattr(cells, name, value)
        call = {"id_column": "donor", "coordinates": coordinates}
        return see(ingest_anndata(cells, folder / "s.zarr", **call))

    return run


def of_same_genes(folder):
    """Ingest a gene by a name that two genes have."""
    cells = anndata.AnnData(np.ones((2, 2)), pd.DataFrame({"donor": ["a", "b"]}, index=["0", "1"]))
    cells.var_names = ["CD4", "CD4"]
    ingest_anndata(cells, folder / "s.zarr", id_column="donor", coordinates="CD4")


def of_slide(values, **attributes):
    """Return the points of a slide."""

    def run(folder):
        (folder / "slides").mkdir()
        with h5py.File(folder / "slides" / "a.h5", "w") as file:
            file.create_dataset("features", data=values).attrs.update(attributes)
        return ingest_patches(folder / "slides", folder / "s.zarr").read().points.ravel()

    return run


def of_linked_slide(folder):
    """Read a slide whose features are in another file."""
    with h5py.File(folder / "a.h5", "w") as file:
        file["features"] = h5py.ExternalLink("b.h5", "features")
    ingest_patches(folder / "a.h5", folder / "s.zarr")


THREE_DIMS = {"X_cube": np.ones((3, 2, 2))}
DONE = {
    TABLE_RULES: {
        "null cells": (of_table({"x": [1.0, None]}, missing="drop_point"), [1]),
        "booleans": (of_table({"x": [True, False]}), [1, 0]),
        "decimals": (of_table({"x": pa.array([1, 2], pa.decimal128(5, 2))}), [1, 2]),
        "dates and times": (of_table({"x": pa.array([3, 4], pa.date32())}), [3, 4]),
        "times with a zone": (
            of_table({"x": pa.array([INSTANT, INSTANT])}),
            [DAY / pd.Timedelta("1D")] * 2,
        ),
        "lists of numbers": (of_table({"x": [[1.0, 2.0], [3.0]]}), [1, 2, 3]),
        "times written as text in JSON": (of_json_times, ["2020-01-01", "2020-01-01T00:00:00"]),
        "folders named `column=value`": (of_folders, ["007", "7"]),
        "empty texts as targets": (of_empty_labels, [0, np.nan]),
    },
    frames.FRAME_RULES: {
        "nullable types": (of_frame(pd.array([1, None], "Int64"), missing="drop_point"), [1]),
        "categories": (of_frame(pd.Categorical([7, 5])), [7, 5]),
        "named indices": (of_frame([1.0, 2.0], lambda t: t.set_index("bag")), [1, 2]),
        "groupby": (of_frame([1.0, 2.0], lambda t: t.groupby("bag"), id_column=None), [1, 2]),
        "times with a zone": (of_frame([INSTANT, INSTANT]), [DAY / pd.Timedelta("1D")] * 2),
    },
    ARRAY_RULES: {
        "dtype": (of_arrays(np.array([[True], [False]])), [1, 0]),
        "byte order and strides": (of_arrays(np.array([[1, 9], [2, 9]], ">f8")[::-1, :1]), [2, 1]),
        "read-only arrays": (of_arrays(read_only()), [1, 2]),
    },
    NPZ_RULES: {
        "points": (of_npz(), [1, 2]),
        "offsets": (of_npz(lambda s: s.read().sizes, sizes=None, offsets=[0, 2]), [2]),
        "sizes": (of_npz(lambda s: s.read().sizes, sizes=[2]), [2]),
        "ids": (of_npz(lambda s: s.ids(), ids=["q", "p"]), ["q", "p"]),
        "targets": (of_npz(lambda s: s.meta.class_names["target"], targets=["b", "a"]), ["a", "b"]),
        "response_points": (
            of_npz(lambda s: [s.response_dims], response_points=[[1.0, 2]], response_sizes=[1, 0]),
            [2],
        ),
    },
    anndata_cells.ANNDATA_RULES: {
        "obs": (of_cells("age"), [4, 5, 6]),
        "categories of obs": (of_cells("age", lambda s: s.ids()), ["a", "b"]),
        "obsm": (of_cells("X_pca", obsm={"X_pca": np.array([[7.0], [8.0], [9.0]])}), [7, 8, 9]),
        "X": (of_cells("CD4"), [1, 2, 0]),
        "layers": (of_cells("raw", layers={"raw": np.array([[7.0], [8.0], [9.0]])}), [7, 8, 9]),
        "sparse matrices": (
            of_cells("CD4", X=scipy.sparse.csr_matrix([[1.0], [2.0], [0.0]])),
            [1, 2, 0],
        ),
    },
    patches.PATCH_RULES: {
        "shape (n, d)": (of_slide([[1.0], [2.0]]), [1, 2]),
        "shape (1, n, d)": (of_slide([[[1.0], [2.0]]]), [1, 2]),
        "scale_factor, add_offset": (of_slide([[1], [2]], scale_factor=2.0, add_offset=1), [3, 5]),
    },
}
REFUSED = {
    TABLE_RULES: {
        "texts as coordinates": of_table({"x": ["a", "b"]}),
        "two columns of one name": of_twins,
        "times with a zone in one file, without in another": of_two_clocks,
        "folders of Delta Lake, Iceberg and Hudi": of_versions,
        "lists mixed with numbers": of_table({"x": [[1.0], [2.0]], "y": [1.0, 2.0]}, ("x", "y")),
    },
    frames.FRAME_RULES: {
        "texts as coordinates": of_frame(["a", "b"]),
        "groupby with id_column": of_frame([1.0, 2.0], lambda t: t.groupby("bag")),
    },
    ARRAY_RULES: {
        "complex numbers": of_arrays(np.array([[1j]])),
        "NaN and infinity": of_arrays(np.array([[np.nan]])),
        "texts": of_arrays(np.array([["a"]])),
    },
    NPZ_RULES: {
        "offsets and sizes": of_npz(offsets=[0, 1, 2]),
        "pickled objects": of_npz(ids=np.array([{}, {}], dtype=object)),
        "other arrays": of_npz(colours=[1, 2]),
    },
    anndata_cells.ANNDATA_RULES: {
        "var_names": of_same_genes,
        "obsm of other than two dimensions": of_cells("X_cube", obsm=THREE_DIMS),
        "masked arrays": of_cells("CD4", X=np.ma.masked_equal([[1.0], [2.0], [0.0]], 2)),
    },
    patches.PATCH_RULES: {
        "other shapes": of_slide([1.0, 2.0]),
        "complex numbers": of_slide([[1j], [2j]]),
        "links to other files": of_linked_slide,
        "_FillValue, missing_value": of_slide([[1.0], [-9.0]], _FillValue=-9.0),
    },
}


DONE |= PACKED_DONE
REFUSED |= PACKED_REFUSED


def cases(table):
    """Return every declaration of a table with its case."""
    return [
        pytest.param(rules, name, case, id=f"{rules.calls[-1]}-{name}")
        for rules, of_rules in table.items()
        for name, case in of_rules.items()
    ]


@pytest.mark.parametrize("rules", DONE, ids=lambda rules: rules.calls[-1])
def test_each_declared_attribute_has_a_case(rules):
    """A declaration without a case is a claim that nothing checks."""
    assert DONE[rules].keys() == rules.honoured.keys()
    assert REFUSED[rules].keys() | (ELSEWHERE.keys() & rules.refused.keys()) == rules.refused.keys()
    assert WARNED.get(rules, {}).keys() == rules.warned.keys()


@pytest.mark.long
@pytest.mark.parametrize(("rules", "name", "case"), cases(DONE))
def test_what_is_honoured(rules, name, case, tmp_path):
    """The right values."""
    run, expected = case
    result = np.asarray(run(tmp_path))
    if result.dtype.kind in "iuf":
        np.testing.assert_allclose(result, expected, rtol=1e-12)
    else:
        assert result.tolist() == expected


@pytest.mark.parametrize(("rules", "name", "run"), cases(REFUSED))
def test_what_is_refused(rules, name, run, tmp_path):
    """By an error of ours that says what the declaration says."""
    with pytest.raises((DataError, ParameterError)) as error:
        run(tmp_path)
    assert rules.refused[name] in str(error.value)


@pytest.mark.parametrize(
    ("log", "source"),
    [
        ("_delta_log", "t/data/*.parquet"),
        (".hoodie", "t/*/*.parquet"),
        ("metadata", "t"),
        ("metadata", "t/data"),
    ],
)
def test_files_of_earlier_versions_are_refused(log, source, tmp_path):
    """Also by a glob, or in a folder next to the log; a file that is named is read."""
    with pytest.raises(DataError, match="earlier versions"):
        of_versions(tmp_path, log, source)
    assert of_versions(tmp_path / "named", log, "t/data/new.parquet") == 1


@pytest.mark.parametrize(("rules", "name", "run"), cases(WARNED))
def test_what_is_warned_of(rules, name, run, tmp_path, caplog):
    """In the log."""
    run(tmp_path)
    assert rules.warned[name] in caplog.text
