"""Names of coordinates on their way through other libraries and through lists of frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bagbasis import Bags, BagStore, DataError
from bagbasis.ingest import ingest_arrays

NAMES = ["pulse", "pressure"]
FRAMES = [pd.DataFrame({"pulse": [1.0, 2.0], "pressure": [9.0, 8.0 + i]}) for i in range(3)]
BAGS = Bags.from_list(FRAMES)


def stored(place, responses=None):
    store = BagStore.create(
        place, 2, target_names=["y"], response_dims=None if responses is None else 1
    )
    store.append(BAGS, {"y": [1.0, 2.0, 3.0]}, responses=responses)
    return store


@pytest.mark.parametrize("table", ["bags", "store"])
def test_arrow_keeps_names(table, tmp_path):
    """In the metadata of the column, which Parquet keeps; what drops them gives bags without."""
    value = (BAGS if table == "bags" else stored(tmp_path / "s.zarr")).to_arrow()
    assert Bags.from_arrow(value, "points").coordinate_names == NAMES
    pq.write_table(value, tmp_path / "t.parquet")
    read = Bags.from_arrow(pq.read_table(tmp_path / "t.parquet"), "points")
    assert read.coordinate_names == NAMES
    np.testing.assert_array_equal(read.points, BAGS.points)
    plain = value.replace_schema_metadata().cast(
        pa.schema([field.remove_metadata() for field in value.schema])
    )
    assert Bags.from_arrow(plain, "points").coordinate_names is None
    assert Bags.from_arrow(BAGS).coordinate_names == NAMES


@pytest.mark.parametrize("saved", ["no JSON", '["pulse"]', "[1, 2]", "7", '{"a": "b", "c": "d"}'])
def test_names_that_are_damaged_are_not_taken(saved):
    value = BAGS.to_arrow()
    field = value.schema.field(0).with_metadata({"bagbasis:coordinates": saved})
    value = value.set_column(0, field, value.column(0))
    assert Bags.from_arrow(value).coordinate_names is None


@pytest.mark.long
def test_xarray_keeps_names(tmp_path):
    """Names of points and responses; earlier data sets, and bags without names, have none."""
    responses = [pd.DataFrame({"dose": [float(i)]}) for i in range(3)]
    store = stored(tmp_path / "s.zarr", responses)
    dataset = store.to_xarray()
    assert dataset["coordinate_name"].values.tolist() == NAMES
    copy = BagStore.from_xarray(dataset, tmp_path / "c.zarr")
    assert copy.coordinate_names == NAMES
    assert copy.response_coordinate_names == ["dose"]
    np.testing.assert_array_equal(copy.read().points, store.read().points)
    older = dataset.drop_vars(["coordinate_name", "response_coordinate_name"])
    copy = BagStore.from_xarray(older, tmp_path / "o.zarr")
    assert copy.coordinate_names is None
    assert copy.response_coordinate_names is None
    assert BAGS.to_xarray()["coordinate_name"].values.tolist() == NAMES
    assert "coordinate_name" not in Bags.from_list([np.ones((2, 2))]).to_xarray().coords


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_of_ingest_arrays_keep_names_in_one_order(library, tmp_path):
    """Columns in another order were stored as they came; other columns are refused by the bag."""
    frames = [library.DataFrame(frame.to_dict("list")) for frame in FRAMES]
    mixed = [frames[0], frames[1][NAMES[::-1]], (frames[2], 1.0)]
    store = ingest_arrays(
        [(frame, 1.0) if not isinstance(frame, tuple) else frame for frame in mixed],
        tmp_path / "s.zarr",
    )
    assert store.coordinate_names == NAMES
    np.testing.assert_array_equal(store.read().points, BAGS.points)
    ingest_arrays([(frames[1][NAMES[::-1]], 1.0)], tmp_path / "s.zarr", mode="append")
    np.testing.assert_array_equal(store.refresh()[3], store[1])
    other = library.DataFrame({"pulse": [1.0], "weight": [2.0]})
    with pytest.raises(DataError, match=r"bag 1: the coordinates are .*'weight'"):
        ingest_arrays([frames[0], other], tmp_path / "t.zarr")


def test_arrays_beside_frames_are_taken_by_position(tmp_path):
    store = ingest_arrays([np.ones((2, 2)), FRAMES[0], np.ones((1, 2))], tmp_path / "s.zarr")
    assert store.coordinate_names == NAMES
    np.testing.assert_array_equal(store[1], FRAMES[0].to_numpy())
