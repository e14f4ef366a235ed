"""Parts of a table whose types differ: the common type, or a refusal that names column and part."""

from __future__ import annotations

import datetime as dt
import json

import anndata as ad
import dask
import dask.dataframe as dd
import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bagbasis import DataError
from bagbasis.ingest import ingest_anndata, ingest_frame, ingest_tables
from bagbasis.ingest.tables import NamedBatches, write_batches

CELLS = 70_000


def dask_frame(*frames):
    """A frame of Dask whose partitions are what their files had."""
    parts = [dask.delayed(frame) for frame in frames]
    return dd.from_delayed(parts, meta=frames[-1].iloc[:0], verify_meta=False)


def ingest(table, place, **options):
    arguments = {"id_column": "p", "coordinates": ["x"], "dtype": "float64", "mode": "overwrite"}
    return ingest_frame(table, place, **{**arguments, **options})


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2], [1.5, 2.5]),
        ([1.5, 2.5], [1, 2]),
        (np.array([1, 2], "int8"), [300, 2]),
        ([None, 2], [1, 3]),
        (pd.array([1, 2], "Int64"), np.array([0.1, 3], "float32")),
        (pd.array([1, 2], "int64[pyarrow]"), pd.array([1.5, None], "Float64")),
    ],
)
def test_partitions_of_dask_have_their_common_type(first, second, place):
    """Whichever comes first."""
    frames = [pd.DataFrame({"p": [i, i], "x": x}) for i, x in enumerate((first, second))]
    store = ingest(dask_frame(*frames), place, missing="drop_point")
    expected = [pd.Series(x).dropna().astype(float).to_numpy() for x in (first, second)]
    assert [bag.ravel().tolist() for bag in store.read()] == [item.tolist() for item in expected]


def test_labels_that_begin_late_in_dask_are_classes(place):
    """A partition without any, then categories, then texts."""
    columns = ([None, None], pd.Categorical(["a", "b"]), ["b", "c"])
    frames = [
        pd.DataFrame({"p": [2 * i, 2 * i + 1], "x": 0.5, "t": t}) for i, t in enumerate(columns)
    ]
    store = ingest(dask_frame(*frames), place, targets=["t"])
    assert store.meta.class_names == {"t": ["a", "b", "c"]}
    np.testing.assert_array_equal(store.targets().ravel(), [np.nan, np.nan, 0, 1, 1, 2])


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([{"p": [1], "x": [1.0]}, {"p": [2], "x": ["a"]}], "partition 1: column 'x' is .*string"),
        ([{"p": [1], "x": [1.0]}, {"p": ["a"], "x": [1.0]}], "partition 1: column 'p' is .*string"),
        ([{"p": [1], "x": [1.0]}, {"p": [2], "z": [1.0]}], "partition 1: column 'x' is missing"),
        (
            [{"p": [1], "x": [2**53 + 1]}, {"p": [2], "x": [0.5]}],
            "partition 0.*column 'x' is int64",
        ),
        (
            [{"p": [1], "x": [0.5]}, {"p": [2], "x": [2**53 + 1]}],
            "partition 1: column 'x' is int64",
        ),
    ],
)
def test_types_that_no_type_holds_are_refused_by_partition(frames, message, place):
    """With the column and both types."""
    with pytest.raises(DataError, match=message):
        ingest(dask_frame(*map(pd.DataFrame, frames)), place)


def test_lazy_tables_that_fail_are_refused_by_place(place):
    """A Dask graph and a query of polars of the caller's own raise when they are computed."""
    frame = dd.from_delayed(
        [dask.delayed(lambda: 1 / 0)()],
        meta=pd.DataFrame({"p": [1], "x": [1.0]}),
        verify_meta=False,
    )
    with pytest.raises(DataError, match=r"partition 0 cannot be computed \(ZeroDivisionError"):
        ingest(frame, place)
    query = pl.LazyFrame({"p": [1], "x": [1.0]}).select("p", pl.col("z"))
    with pytest.raises(DataError, match=r'cannot be computed \(ColumnNotFoundError: .*"z"'):
        ingest(query, place)


def test_times_with_and_without_a_zone_in_one_column_are_refused(place):
    """Python's and pandas' times; in one zone or several they are instants."""
    utc, tokyo = (pd.Timestamp("2024-07-01", tz=zone) for zone in ("UTC", "Asia/Tokyo"))
    naive = dt.datetime(2024, 7, 1)
    for times in ([utc, naive, None], [naive, tokyo, pd.NaT], [utc.to_pydatetime(), naive, utc]):
        frame = pd.DataFrame({"p": [1, 1, 2], "x": pd.Series(times, dtype=object)})
        with pytest.raises(DataError, match="column 'x' has times with a zone, and times without"):
            ingest(frame, place)
    frame = pd.DataFrame({"p": [1, 1, 2], "x": pd.Series([utc, tokyo, utc], dtype=object)})
    assert ingest(frame, place).read().points.ravel().tolist() == [19905, 19904.625, 19905]


def test_sparse_columns_whose_names_are_numbers(place):
    """A dense copy stood next to the column, under the same name."""
    frame = pd.DataFrame({"p": [1, 2], 3: pd.arrays.SparseArray([0.0, 5.0])})
    assert ingest(frame, place, coordinates=["3"]).read().points.ravel().tolist() == [0, 5]


@pytest.mark.parametrize("kind", ["int64", "uint64", "string"])
def test_the_first_integers_that_float64_lacks_are_refused(kind, place):
    """2^53 + 1 would be its neighbour, 2^53, which is exact."""
    frame = pd.DataFrame({"p": [1, 2], "x": [1.0, 2.0], "y": pd.array([2**53 + 1, 5], dtype=kind)})
    with pytest.raises(DataError, match=f"target 'y': {2**53 + 1} is an integer beyond"):
        ingest(frame, place, targets=["y"], target_types={"y": "number"})
    frame["y"] = pd.array([2**53, 5], dtype=kind)
    store = ingest(frame, place, targets=["y"], target_types={"y": "number"})
    assert store.targets().ravel().tolist() == [2**53, 5]


def test_a_named_index_of_dask_is_a_column(place):
    """As of pandas."""
    frame = pd.DataFrame({"p": [1, 1, 2], "x": [1.5, 2.5, 3.5]}).set_index("p")
    store = ingest(dd.from_pandas(frame, npartitions=2), place)
    assert store.ids().tolist() == [1, 2]
    assert [len(bag) for bag in store.read()] == [2, 1]


def test_neighbours_of_a_named_index_of_dask(place):
    """An index of times is a coordinate; one of texts, over partitions, ids; none, no column."""
    times = pd.date_range("2026-01-01", periods=4, name="t")
    frame = pd.DataFrame({"p": [1, 1, 2, 2], "x": [1.5, 2.5, 3.5, 4.5]}, index=times)
    store = ingest(dd.from_pandas(frame, npartitions=2), place, coordinates=["t", "x"])
    assert store[1][:, 0].tolist() == [20456.0, 20457.0]
    texts = frame.assign(p=["b", "a", "b", "a"]).set_index("p").sort_index()
    store = ingest(dd.from_pandas(texts, npartitions=2), place, mode="overwrite")
    assert store.ids().tolist() == ["a", "b"]
    assert store[0].ravel().tolist() == [2.5, 4.5]
    with pytest.raises(DataError, match="no column 'p'"):
        ingest(dd.from_pandas(texts.rename_axis(None), npartitions=2), place, mode="overwrite")


def cells(dx, age):
    obs = pd.DataFrame({"s": np.arange(CELLS) // 1000, "dx": dx, "age": age}, dtype=object)
    obs.index = obs.index.astype(str)
    return ad.AnnData(np.zeros((CELLS, 1), "f4"), obs, obsm={"X_pca": np.ones((CELLS, 2))})


@pytest.mark.long
def test_cells_have_the_types_of_all_chunks(place):
    """Texts after 66,000 cells without any; ages that are whole at first."""
    rare = np.array([None] * 66_000 + ["ill"] * 4000, dtype=object)
    ages = np.repeat([40] * 69 + [41.5], 1000).astype(object)
    store = ingest_anndata(
        cells(rare, ages), place, id_column="s", coordinates="X_pca", targets=["dx", "age"]
    )
    assert store.meta.class_names == {"dx": ["ill"]}
    assert np.isnan(store.targets()[:66, 0]).all()
    assert (store.targets()[66:, 0] == 0).all()
    assert store.targets()[:, 1].tolist() == [40.0] * 69 + [41.5]


def test_cells_of_mixed_types_are_refused_by_their_numbers(place):
    """Within a chunk, and between two."""
    mixed = np.array(["ill", 3, *[None] * (CELLS - 2)], dtype=object)
    later = np.array(["ill"] * 66_000 + [3] * 4000, dtype=object)
    for dx, message in (
        (mixed, "cells 0 to 65535: .*column dx"),
        (later, "cells 65536 to 69999: .*column dx"),
    ):
        with pytest.raises(DataError, match=message):
            ingest_anndata(cells(dx, 0), place, id_column="s", coordinates="X_pca", targets=["dx"])


def lines_of(values, **more):
    return "".join(json.dumps({"p": "abcdefghij", **more, "x": x}) + "\n" for x in values)


@pytest.mark.long
@pytest.mark.parametrize("first", [1, None])
@pytest.mark.parametrize("n", [10, 60_000])
def test_lines_of_json_have_the_types_of_all(first, n, place, tmp_path, monkeypatch):
    """Short and long: one fraction at the end, numbers after a megabyte without any."""
    monkeypatch.setattr("bagbasis.ingest.tables.arrow_files.JSON_BYTES", 2**20)
    (tmp_path / "t.jsonl").write_text(lines_of([first] * (n - 1) + [1.5]))
    store = ingest_tables(
        tmp_path / "t.jsonl", place, id_column="p", coordinates=["x"], missing="drop_point"
    )
    assert len(store[0]) == (n if first else 1)
    assert store[0][-1].tolist() == [1.5]


@pytest.mark.long
def test_lines_of_json_that_no_type_holds_are_refused_by_line(place, tmp_path, monkeypatch):
    """Numbers, then texts; a text field that is new later is none before."""
    monkeypatch.setattr("bagbasis.ingest.tables.arrow_files.JSON_BYTES", 2**16)
    options = {"id_column": "p", "coordinates": ["x"], "overwrite": True}
    (tmp_path / "t.jsonl").write_text(lines_of([1] * 5000) + lines_of(["a"]))
    with pytest.raises(
        DataError, match=r"t.jsonl.*lines \d+ to \d+: .*(column 'x' is|Column\(/x\) changed)"
    ):
        ingest_tables(tmp_path / "t.jsonl", place, **options)
    (tmp_path / "t.jsonl").write_text(lines_of([1] * 5000) + lines_of([2], dx="ill"))
    store = ingest_tables(
        tmp_path / "t.jsonl", place, targets={"t": "CAST(p = 'x' AS INT)"}, **options
    )
    assert len(store[0]) == 5001


@pytest.mark.parametrize("n", [1, 1500])
def test_rows_of_a_data_set_are_refused_by_their_types(n, place):
    """HuggingFace's own reader compares a thousand rows."""

    def rows():
        yield from ({"p": 1, "x": 1} for _ in range(n))
        yield {"p": 1, "x": "a"}

    with pytest.raises(DataError, match=r"points: .*x"):
        ingest(datasets.IterableDataset.from_generator(rows), place)


@pytest.mark.parametrize("n", [2, 5])
def test_a_type_may_change_more_than_once(n, tmp_path):
    """Null, integers, fractions; rows stay in order."""
    columns = [pa.nulls(n), pa.array(range(n)), pa.array(np.arange(n) / 2), pa.array(range(n))]
    batches = ((f"part {i}", pa.record_batch({"x": first})) for i, first in enumerate(columns))
    path = write_batches(NamedBatches(batches, "rows"), str(tmp_path / "t.parquet"))
    values = pd.read_parquet(path)["x"]
    assert [*tmp_path.iterdir()] == [tmp_path / "t.parquet"]
    np.testing.assert_array_equal(
        values, np.concatenate([np.full(n, np.nan), np.arange(n), np.arange(n) / 2, np.arange(n)])
    )
