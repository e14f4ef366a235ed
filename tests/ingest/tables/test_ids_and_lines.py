"""Ids that are days or whole floats, lines of JSON, and what a user is told of a table."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from bagbasis import DataError, ParameterError
from bagbasis.ingest import ingest_arrays, ingest_frame, ingest_tables
from tests.ingest.formats.test_frames import long_frame
from tests.ingest.long_tables import COLUMNS


@pytest.mark.long
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (np.repeat([12.0, 7.0, 2.0**40], 3), [7, 12, 2**40]),
        (np.repeat(np.float32([12, 7, 3]), 3), [3, 7, 12]),
        (np.repeat([Decimal(12), Decimal("7.00"), Decimal(2**40)], 3), [7, 12, 2**40]),
        (pd.to_datetime(["2001-03-04 00:00", "1960-03-29 12:30", "1960-01-02 00:00"]).repeat(3),
         ["1960-01-02", "1960-03-29 12:30:00", "2001-03-04"]),
        (pd.to_datetime(["2001-03-04", "1960-01-02"]).repeat(4).date, ["1960-01-02", "2001-03-04"]),
    ],
)  # fmt: skip
def test_ids_that_are_dates_or_whole_numbers(ids, expected, tmp_path, client, ingest_cut):
    """A day is its text and 12.0 is 12, alone and as a part of an id."""
    frame = pd.DataFrame({"bag": ids, "x": np.arange(float(len(ids))), "one": 1})
    frame.to_parquet(tmp_path / "p.parquet")
    store = ingest_cut(
        tmp_path / "p.parquet", tmp_path / "s.zarr", id_column="bag", coordinates=["x"]
    )
    assert store.ids().tolist() == expected
    parts = {"id_column": ["one", "bag"], "coordinates": ["x"]}
    store = ingest_frame(frame, tmp_path / "t.zarr", **parts)
    assert store.ids().tolist() == sorted(f"1/{item}" for item in expected)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_instants_of_nanoseconds_are_ids_of_their_own(zone, tmp_path):
    """Those of a zone were one bag where they differ by less than a microsecond."""
    moments = [0, 1, 2, 1_720_000_000_123_456_789, 1_720_000_000_123_456_000]
    table = pa.table({"bag": pa.array(moments, pa.timestamp("ns", zone)), "x": np.arange(5.0)})
    store = ingest_frame(table, tmp_path / "s.zarr", id_column="bag", coordinates=["x"])
    end = "" if zone is None else "+00"
    assert store.ids().tolist() == [
        "1970-01-01",
        f"1970-01-01 00:00:00.000000001{end}",
        f"1970-01-01 00:00:00.000000002{end}",
        f"2024-07-03 09:46:40.123456{end}",
        f"2024-07-03 09:46:40.123456789{end}",
    ]
    assert store.read().points.ravel().tolist() == [0, 1, 2, 4, 3]


@pytest.mark.parametrize("item", [pa.int64(), pa.float64(), pa.string()])
def test_lists_are_no_ids(item, tmp_path):
    table = pa.table({"bag": pa.array([[1], [2]]).cast(pa.list_(item)), "x": [0.0, 1.0]})
    with pytest.raises(DataError, match="id column 'bag' has lists; ids are whole numbers"):
        ingest_frame(table, tmp_path / "s.zarr", id_column="bag", coordinates=["x"])


def test_a_table_in_memory_is_no_path(tmp_path):
    frame = pd.DataFrame({"bag": [1], "x": [0.0]})
    with pytest.raises(ParameterError, match="is not a path: use ingest_frame"):
        ingest_tables(frame, tmp_path / "s.zarr", id_column="bag", coordinates=["x"])


@pytest.mark.long
def test_lines_of_json(tmp_path, client):
    """Numbers, lists of points and dates; a line that is none is refused, the file is named."""
    frame, path = long_frame(), tmp_path / "f.jsonl"
    frame.to_json(path, orient="records", lines=True, double_precision=15)
    frame.to_parquet(tmp_path / "f.parquet")
    stores = [
        ingest_tables(item, tmp_path / f"{item.suffix}.zarr", targets=["size", "kind"], **COLUMNS)
        for item in (path, tmp_path / "f.parquet")
    ]
    for actual, expected in zip(*([*s.read()] for s in stores), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert stores[0].meta.class_names == stores[1].meta.class_names
    path.write_text('{"bag": 1, "u": [0.5, 1], "v": [2, 3]}\n{"bag": 2, "u": [1], "v": [0]}\n')
    lists = ingest_tables(path, tmp_path / "l.zarr", **COLUMNS)
    assert lists.read().sizes.tolist() == [2, 1]
    path.write_text('{"bag": 1, "u": 1, "v": 2}\n{"bag": 2,\n')
    with pytest.raises(DataError, match=r"f\.jsonl: lines 0 to 1: cannot be read"):
        ingest_tables(path, tmp_path / "m.zarr", **COLUMNS)


@pytest.mark.long
def test_constant_coordinates_are_told(tmp_path, caplog):
    """Tables by name, arrays by number; not in an append, which can leave out no bag."""
    frame = long_frame().assign(v=3.0)
    ingest_frame(frame, tmp_path / "s.zarr", **COLUMNS)
    assert "1 of 2 coordinates are constant: 'v'; leave them out" in caplog.text
    caplog.clear()
    ingest_frame(
        frame.assign(bag="x" + frame["bag"]), tmp_path / "s.zarr", mode="append", **COLUMNS
    )
    assert "constant" not in caplog.text
    ingest_arrays([np.ones((3, 9))], tmp_path / "t.zarr")
    assert "9 of 9 coordinates are constant: 0, 1, 2, 3, 4, …" in caplog.text


def test_a_folder_without_a_value_leaves_bags_without_a_label(tmp_path):
    for i, value in enumerate(("a", "__HIVE_DEFAULT_PARTITION__", "b")):
        (tmp_path / "t" / f"y={value}").mkdir(parents=True)
        table = pa.table({"bag": [i], "x": [float(i)]})
        parquet.write_table(table, tmp_path / "t" / f"y={value}" / "p.parquet")
    store = ingest_tables(
        tmp_path / "t", tmp_path / "s.zarr", id_column="bag", coordinates=["x"], targets=["y"]
    )
    np.testing.assert_array_equal(store.targets(), [[0], [np.nan], [1]])


@pytest.mark.parametrize(("kind", "limit"), [("f2", 2**11), ("f4", 2**24), ("f8", 2**53)])
def test_ids_in_floats_that_may_be_two_numbers_are_refused(kind, limit, tmp_path):
    """One more is the same float, so that two bags would be one; as for bags in memory."""
    for last, is_fine in ((limit - 1, True), (limit, False), (-limit, False)):
        ids = np.array([3, last], kind)
        assert ids.astype(int).tolist() == [3, last]
        parquet.write_table(pa.table({"bag": ids, "x": [0.5, 1.5]}), tmp_path / "t.parquet")
        arguments = {"id_column": "bag", "coordinates": ["x"], "mode": "overwrite"}
        if is_fine:
            store = ingest_tables(tmp_path / "t.parquet", tmp_path / "s.zarr", **arguments)
            assert store.ids().tolist() == [3, last]
        else:
            with pytest.raises(DataError, match=r"row 1: the bag id is missing, or a number"):
                ingest_tables(tmp_path / "t.parquet", tmp_path / "s.zarr", **arguments)
