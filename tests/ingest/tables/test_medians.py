"""Missing cells that hold the median of their coordinate, with a flag next to it."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bagbasis import BagStore, DataError, ParameterError, StoreError, merge_stores
from bagbasis.ingest import TableIngest, ingest_frame, ingest_tables
from bagbasis.ingest.tables import Tally
from bagbasis.ingest.tables.engines import ClusterEngine
from tests.workers import two_workers

NAN = np.nan
TABLE = pd.DataFrame(
    {
        "id": [1, 1, 2, 2, 3],
        "pulse": [60.0, NAN, 80.0, 100.0, NAN],
        "height": [1.0, 2.0, 3.0, 4.0, 5.0],
        "age": [NAN, 40.0, 50.0, NAN, 70.0],
    }
)
NAMES = ["pulse", "height", "age"]
STORED = [*NAMES, "pulse_missing", "age_missing"]
POINTS = [
    [60, 1, 50, 0, 1],
    [80, 2, 40, 1, 0],
    [80, 3, 50, 0, 0],
    [100, 4, 50, 0, 1],
    [80, 5, 70, 1, 0],
]


def ingest(table, place, **options):
    arguments = {"id_column": "id", "coordinates": NAMES, "missing": "median"} | options
    return ingest_frame(table, place, **arguments)


def test_cells_hold_the_median_and_a_flag(place, caplog):
    """The box holds the flags; the store keeps the medians; the log tells how many there are."""
    with caplog.at_level(logging.WARNING):
        store = ingest(TABLE, place)
    assert store.coordinate_names == STORED
    assert store.read().points.tolist() == POINTS
    assert store.meta.source["medians"] == {"pulse": 80.0, "age": 50.0}
    assert store.box.bounds[3:] == [[-0.01, 1.01]] * 2
    assert store.box.lo[0] == pytest.approx(60 - 0.4)
    assert "4 of 5 points have the median of a coordinate that was missing" in caplog.text
    store.verify()


@pytest.mark.parametrize("kind", ["csv", "parquet", "polars", "arrow", "Int64", "lists"])
def test_missing_cells_of_every_kind(kind, tmp_path, place):
    """Empty fields, null, NaN and NA are missing; words of missing_values too."""
    table = TABLE
    if kind == "csv":
        table.to_csv(tmp_path / "t.csv", index=False, na_rep="n/a")
        options = {"id_column": "id", "coordinates": NAMES, "missing_values": ["n/a"]}
        store = ingest_tables(tmp_path / "t.csv", place, missing="median", **options)
    elif kind == "parquet":
        table.to_parquet(tmp_path / "t.parquet")
        options = {"id_column": "id", "coordinates": NAMES}
        store = ingest_tables(tmp_path / "t.parquet", place, missing="median", **options)
    else:
        table = {
            "polars": lambda: pl.DataFrame(table.to_dict("list")),  # NaN, no null
            "arrow": lambda: pa.Table.from_pandas(table),
            "Int64": lambda: table.astype("Int64"),
            "lists": lambda: table.groupby("id", as_index=False).agg(list),
        }[kind]()
        store = ingest(table, place)
    assert store.coordinate_names == STORED
    assert store.read().points.tolist() == POINTS


@pytest.mark.long
def test_expressions_are_filled_after_they_are_computed(place):
    """The flag has the name of the coordinate, not of its column."""
    coordinates = [{"log": "ln(pulse)"}, "height"]
    store = ingest(TABLE, place, coordinates=coordinates)
    assert store.coordinate_names == ["log", "height", "log_missing"]
    np.testing.assert_allclose(store.read().points[[1, 4], 0], np.log(80), rtol=1e-6)


@pytest.mark.long
def test_appended_rows_get_the_medians_of_the_store(place):
    """Also where all of a batch is missing, and where nothing is: flags are 0 then."""
    store = ingest(TABLE, place)
    batch = pd.DataFrame({"id": [7, 8], "pulse": [NAN, NAN], "height": 3.0, "age": [20.0, 30.0]})
    ingest(batch, place, mode="append")
    whole = pd.DataFrame({"id": [9], "pulse": [70.0], "height": [2.0], "age": [30.0]})
    ingest(whole, place, mode="append", missing="refuse")
    points = BagStore.open(place).read(store.n_bags).points.tolist()
    assert points == [[80, 3, 20, 1, 0], [80, 3, 30, 1, 0], [70, 2, 30, 0, 0]]
    dropped = pd.concat([whole.assign(id=10), batch.assign(id=10)])
    ingest(dropped, place, mode="append", missing="drop_point")
    assert BagStore.open(place).read(store.n_bags + 3).points.tolist() == [[70, 2, 30, 0, 0]]
    with pytest.raises(DataError, match="row 0: bag 11: coordinate 'pulse' is missing"):
        ingest(batch.assign(id=11), place, mode="append", missing="refuse")


@pytest.mark.long
def test_a_coordinate_without_a_median_in_the_store_is_refused_by_row(place):
    """It has no flag there; nothing is appended."""
    store = ingest(TABLE, place)
    batch = pd.DataFrame({"id": [7, 8], "pulse": 70.0, "height": [1.0, NAN], "age": 30.0})
    match = "row 1: bag 8: coordinate 'height' is missing.*the store has no median of it"
    with pytest.raises(DataError, match=match):
        ingest(batch, place, mode="append")
    plain = ingest(TABLE.fillna(1.0), f"{place}-plain", missing="refuse")
    assert "medians" not in plain.meta.source
    with pytest.raises(DataError, match="the store has no median of it"):
        ingest(batch, plain.url, mode="append")
    assert BagStore.open(place).n_bags == store.n_bags


def test_a_table_without_missing_cells_has_no_flags(place):
    store = ingest(TABLE.fillna(1.0), place)
    assert store.coordinate_names == NAMES
    assert "medians" not in store.meta.source


@pytest.mark.long
def test_what_has_no_median_is_refused_by_name(place):
    """A coordinate without values, a flag's name that is taken, a missing response, empty lists."""
    with pytest.raises(DataError, match="coordinate 'pulse' is missing in all rows"):
        ingest(TABLE.assign(pulse=NAN), place)
    named = TABLE.assign(pulse_missing=1.0)
    with pytest.raises(DataError, match="name of its flag, 'pulse_missing'"):
        ingest(named, place, coordinates=[*NAMES, "pulse_missing"])
    with pytest.raises(DataError, match=r"responses, row 1: .*'pulse' is missing.*drop_bag"):
        ingest(TABLE, place, responses=TABLE, response_coordinates=["pulse"])
    lists = pd.DataFrame({"id": [1, 2], "pulse": [[], [60.0, 70.0]]})
    with pytest.raises(DataError, match="row 0: bag 1: the bag is empty"):
        ingest(lists, place, coordinates=["pulse"])
    with pytest.raises(ParameterError, match=r"missing is 'medain' \(did you mean 'median'"):
        ingest(TABLE, place, missing="medain")
    assert not place.exists()


def test_float64_is_filled_with_all_digits(place):
    """Julian dates: the store is float64, and the median is the stored number."""
    days = 2459000.5 + np.arange(9) / 96
    table = pd.DataFrame({"id": 1, "jd": np.append(days, NAN)})
    store = ingest(table, place, coordinates=["jd"])
    assert store.read().points[:, 0].tolist() == [*days, days[4]]


@pytest.mark.long
def test_stores_of_other_medians_are_not_merged(tmp_path):
    """The merged store has the medians that all have."""
    first = ingest(TABLE, tmp_path / "a.zarr")
    same = ingest(TABLE.assign(id=TABLE["id"] + 10), tmp_path / "b.zarr")
    merged = merge_stores([first, same], tmp_path / "m.zarr")
    assert merged.meta.source["medians"] == first.meta.source["medians"]
    assert merged.coordinate_names == STORED
    other = TABLE.assign(id=TABLE["id"] + 20, pulse=TABLE["pulse"] + 1)
    other = ingest(other, tmp_path / "c.zarr")
    with pytest.raises(DataError, match=r"c\.zarr: its missing cells hold the medians.*81"):
        merge_stores([first, other], tmp_path / "n.zarr")


def test_damaged_medians_are_refused(place):
    """They become part of a query."""
    table = TABLE.fillna(1.0)
    store = ingest(table, place, missing="refuse")
    with store.appending({"coordinates": STORED, "medians": {"pulse": "1; --", "age": 1.0}}):
        pass
    with pytest.raises(StoreError, match="source is damaged: medians"):
        ingest(table, place, mode="append")


@pytest.mark.long
def test_many_rows_are_sampled(place, monkeypatch):
    """The median of a sample is near that of all, and the same in every run."""
    monkeypatch.setattr("bagbasis.data.bags.box.SAMPLE_ROWS", 500)
    monkeypatch.setattr("bagbasis.data.bags.box.SAMPLE_VALUES", 500)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": np.arange(5000) // 9, "x": rng.normal(size=5000)})
    table.loc[rng.random(5000) < 0.1, "x"] = NAN
    first = ingest(table, place, coordinates=["x"]).meta.source["medians"]["x"]
    assert first == pytest.approx(table["x"].median(), abs=0.2)
    again = ingest(table, place, coordinates=["x"], mode="overwrite")
    assert again.meta.source["medians"]["x"] == first
    rare = table.assign(y=np.where(np.arange(5000) == 3, 1.0, NAN))
    with pytest.raises(DataError, match="coordinate 'y' is missing in nearly all rows"):
        ingest(rare, place, coordinates=["x", "y"], mode="overwrite")


@pytest.mark.long
def test_workers_fill_as_this_process_does(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": np.arange(500) // 9, "x": rng.normal(size=500), "y": 1.0})
    table.loc[::7, "x"] = NAN
    table.to_parquet(tmp_path / "t.parquet")
    arguments = {"id_column": "id", "coordinates": ["x", "y"], "missing": "median"}
    here = ingest_tables(tmp_path / "t.parquet", tmp_path / "here.zarr", **arguments)
    with two_workers():
        ingest_cut = TableIngest(tmp_path / "t.parquet", tmp_path / "there.zarr", **arguments)
        there = ingest_cut.run(ClusterEngine(2**10, 2**10))
    assert here.meta.source == there.meta.source
    np.testing.assert_array_equal(here.read().points, there.read().points)


@pytest.mark.long
@pytest.mark.parametrize("table", ["target_table", "responses"])
def test_ids_that_no_point_has_are_skipped(table, place, caplog):
    """They are counted; ids before, between and after those of the bags, repeated ones too."""
    ids = [0, 1, 2, 2.5, 3, 9, 9]
    others = pd.DataFrame({"id": [str(i) for i in ids], "y": np.arange(7.0)})
    points = TABLE.assign(id=TABLE["id"].astype(str)).fillna(1.0)
    options = {table: others, "unknown_ids": "skip", "missing": "refuse"}
    options |= {"targets": ["y"]} if table == "target_table" else {"response_coordinates": ["y"]}
    with pytest.raises(DataError, match=r"id '0' .*is unknown.*unknown_ids to skip"):
        ingest(points, place, **options | {"unknown_ids": "refuse"})
    with caplog.at_level(logging.WARNING):
        store = ingest(points, place, **options)
    assert "3 ids of the target table or the responses were skipped" in caplog.text
    values = store.targets() if table == "target_table" else store.responses().points
    assert values[:, 0].tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("ours", "theirs"), [("7", "007"), ("1.0", "1"), ("a", "A "), ("b", "b"), ("x", "y")]
)
def test_an_unknown_id_names_the_id_that_is_written_alike(place, caplog, ours, theirs):
    """Labels are not lost in silence where two tables write one id in two ways."""
    points = pd.DataFrame({"id": ["0x", ours, "zz"], "a": [1.0, 2.0, 3.0], "b": [1.0, 3.0, 2.0]})
    labels = pd.DataFrame({"id": ["0x", theirs], "y": [1.0, 2.0]})
    options = {"id_column": "id", "coordinates": ["a", "b"], "targets": ["y"]}
    if ours == theirs:
        ingest_frame(points, place, target_table=labels, **options)
        assert "alike" not in caplog.text
        return
    pair = rf"no point has it; the points have {ours!r}: write both alike"
    with pytest.raises(DataError) as refused:
        ingest_frame(points, place, target_table=labels, **options)
    with caplog.at_level(logging.WARNING):
        ingest_frame(points, place, target_table=labels, unknown_ids="skip", **options)
    are_alike = (ours, theirs) != ("x", "y")
    assert (pair in str(refused.value)) == are_alike
    assert (f"id {theirs!r} was skipped" in caplog.text) == are_alike


@pytest.mark.long
def test_ids_of_bags_are_not_repeated_where_others_are_skipped(place):
    """All other ids may be unknown; a tally counts them."""
    points, options = TABLE.fillna(1.0), {"unknown_ids": "skip", "targets": ["y"]}
    twice = pd.DataFrame({"id": [1, 1, 8], "y": 1.0})
    with pytest.raises(DataError, match="id 1 is repeated"):
        ingest(points, place, target_table=twice, **options)
    none = pd.DataFrame({"id": [7, 8], "y": 1.0})
    store = ingest(points, place, target_table=none, **options)
    assert np.isnan(store.targets()).all()
    with pytest.raises(ParameterError, match="unknown_ids is given, but neither"):
        ingest(points, place, mode="overwrite", unknown_ids="skip")


def test_the_tally_of_a_job_counts_fills_and_skips(tmp_path):
    TABLE.to_parquet(tmp_path / "t.parquet")
    pd.DataFrame({"id": [1, 7], "y": 1.0}).to_parquet(tmp_path / "y.parquet")
    arguments = {"id_column": "id", "coordinates": NAMES, "targets": ["y"], "missing": "median"}
    arguments |= {"target_table": tmp_path / "y.parquet", "unknown_ids": "skip"}
    tally = Tally()
    TableIngest(tmp_path / "t.parquet", tmp_path / "s.zarr", **arguments).run(tally=tally)
    assert (tally.filled_points, tally.ids_without_points) == (4, 1)
