"""Tables of other libraries, and lists of points per row: what other people's tools hold."""

from __future__ import annotations

import dask.dataframe as dask_frames
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bagbasis import BagStore, DataError, ParameterError
from bagbasis.ingest import ingest_frame, ingest_tables
from tests.ingest.long_tables import COLUMNS, assert_holds, long_table

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 9, 30)
BAGS = [RNG.normal(size=(n, 2)) for n in SIZES]
T = np.arange(30) / 4


class Stream:
    """Any library's table: it has Arrow's stream, and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def long_frame():
    return long_table(RNG, SIZES.tolist(), [f"b{i:02}" for i in range(30)])


def ragged(kind="lists"):
    """A row per bag: a list per coordinate, or a list of arrays, fixed or not, or of records."""
    columns = {"name": [f"b{i:02}" for i in range(30)], "t": T}
    if kind == "lists":
        return pa.table({**columns, "x": [b[:, 0] for b in BAGS], "y": [b[:, 1] for b in BAGS]})
    item = {
        "fixed": pa.list_(pa.float64(), 2),
        "arrays": pa.large_list(pa.float64()),
        "records": pa.struct({"x": pa.float64(), "y": pa.float64()}),
    }[kind]
    points = [b.tolist() for b in BAGS]
    if kind == "records":
        points = [[{"x": x, "y": y} for x, y in bag] for bag in points]
    return pa.table({**columns, "p": pa.array(points, pa.list_(item))})


def assert_is_ragged(store):
    assert store.ids().tolist() == [f"b{i:02}" for i in range(30)]
    np.testing.assert_array_equal(store.targets()[:, 0], T)
    for bag, expected in zip(store.read(), BAGS, strict=True):
        np.testing.assert_array_equal(bag, expected.astype(np.float32))


@pytest.mark.long
@pytest.mark.parametrize(
    "tool",
    [
        lambda frame: frame,
        lambda frame: frame.groupby("bag"),
        lambda frame: frame.groupby(["bag"]),
        pa.Table.from_pandas,
        lambda frame: pa.Table.from_pandas(frame).to_reader(7),
        lambda frame: Stream(pa.Table.from_pandas(frame)),
        lambda frame: duckdb.sql("SELECT * FROM frame"),
        lambda frame: dask_frames.from_pandas(frame, npartitions=3),
    ],
    ids=["pandas", "groupby", "groupby list", "arrow", "reader", "stream", "duckdb", "dask"],
)
def test_rows_are_points(tool, tmp_path):
    """Each library's table becomes the store that files make."""
    frame = long_frame()
    value = tool(frame)
    ids = {} if hasattr(value, "ngroup") else {"id_column": "bag"}
    store = ingest_frame(
        value, tmp_path / "s.zarr", coordinates=["u", "v"], targets=["kind"], **ids
    )
    assert_holds(store, frame, sorted(set(frame["bag"])))
    assert store.meta.class_names == {"kind": ["ant", "bee", "cat"]}


def test_categories_of_text_views(tmp_path):
    """Which polars makes, and Parquet does not take."""
    texts = pa.array(["u", "v"], pa.string_view())
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), texts)
    table = Stream(pa.table({"bag": [0, 0, 1], "x": [1.0, 2.0, 3.0], "kind": labels}))
    options = {"coordinates": ["x"], "id_column": "bag", "targets": ["kind"]}
    store = ingest_frame(table, tmp_path / "s.zarr", **options)
    assert store.meta.class_names == {"kind": ["u", "v"]}
    assert store.targets()[:, 0].tolist() == [0.0, 1.0]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["lists", "fixed", "arrays", "records"])
def test_rows_are_bags(kind, tmp_path):
    """Lists of numbers, of arrays and of records; without ids rows are numbered."""
    columns = ["x", "y"] if kind == "lists" else ["p"]
    store = ingest_frame(
        ragged(kind), tmp_path / "s.zarr", coordinates=columns, id_column="name", targets=["t"]
    )
    assert_is_ragged(store)
    names = {"lists": ["x", "y"], "records": ["p.x", "p.y"]}.get(kind, ["p[0]", "p[1]"])
    assert store.meta.source["coordinates"] == names
    part = ragged(kind).slice(3, 5)  # offsets that do not begin at 0
    bare = ingest_frame(part, tmp_path / "bare.zarr", coordinates=columns)
    assert bare.ids().tolist() == list(range(5))
    np.testing.assert_array_equal(bare.read()[1], BAGS[4].astype(np.float32))


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "cut"), [("fixed", True), ("arrays", True), ("records", False), ("lists", True)]
)
def test_parquet_files_of_rows_that_are_bags(kind, cut, tmp_path, client, ingest_cut):
    """Lists of vectors or of numbers, in row groups many or few; a box and a second day fit."""
    for i, start in enumerate((0, 11)):
        part = ragged(kind).slice(start, 11 if i == 0 else None)
        pq.write_table(part, tmp_path / f"{i}.parquet", row_group_size=4 if cut else 100)
    names = ["x", "y"] if kind == "lists" else ["p"]
    arguments = {"id_column": "name", "coordinates": names, "targets": ["t"]}
    ingest = ingest_cut if cut else ingest_tables
    ingest(tmp_path / "0.parquet", tmp_path / "s.zarr", box=[(-4, 4), (-5, 5)], **arguments)
    ingest(tmp_path / "1.parquet", tmp_path / "s.zarr", mode="append", **arguments)
    store = BagStore.open(tmp_path / "s.zarr")
    assert_is_ragged(store)
    assert store.box.bounds == [[-4.0, 4.0], [-5.0, 5.0]]
    with pytest.raises(DataError, match="box"):
        ingest_tables(tmp_path / "0.parquet", tmp_path / "t.zarr", box=[(0, 1)] * 3, **arguments)


@pytest.mark.long
def test_a_polars_column_of_vectors_is_read_some_rows_at_a_time(tmp_path):
    """The Arrow stream is not held as a whole: a batch is gone when the next one is made."""
    held = []

    def batches():
        for i in range(20):
            numbers = pa.array(np.full(3 * 50_000, i, np.float64))  # 1.2 MB
            vectors = pa.FixedSizeListArray.from_arrays(numbers, 3)
            points = pa.ListArray.from_arrays(pa.array([0, 50_000], pa.int32()), vectors)
            held.append(pa.total_allocated_bytes() - before)
            yield pa.record_batch({"bag": pa.array([i]), "p": points})

    before = pa.total_allocated_bytes()
    schema = next(batches()).schema
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    store = ingest_frame(reader, tmp_path / "s.zarr", id_column="bag", coordinates=["p"])
    assert (store.n_bags, store.n_dims, store.n_points) == (20, 3, 1_000_000)
    assert max(held) < 12e6
    frame = pl.DataFrame({"bag": [0, 1], "p": [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]})
    store = ingest_frame(frame, tmp_path / "t.zarr", id_column="bag", coordinates=["p"])
    assert store.read()[1].tolist() == [[3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[[1.0, 2.0]], [[1.0, 2.0], [3.0]]], "row 1: bag 'b': .*a vector of 1 numbers, not 2"),
        ([[[1.0, 2.0]], [[1.0, 2.0, 3.0]]], "row 1: bag 'b': .*a vector of 3 numbers, not 2"),
        ([[[1.0, 2.0]], [[1.0, None]]], r"row 1: bag 'b': coordinate 'p\[1\]' is missing"),
        ([[[1.0, 2.0]], []], "row 1: bag 'b': the bag is empty"),
        ([[[1.0, 2.0]], [None]], r"row 1: bag 'b': coordinate 'p\[0\]' is missing"),
        ([[], []], "'p' has no vector in any row"),
        ([[["u"]], [["v"]]], "'p' holds vectors of string, not of numbers"),
    ],
)
def test_vectors_that_cannot_be_used(vectors, message, tmp_path):
    """Lists of other lengths, with holes, or of texts: the error names file, row and coordinate."""
    kind = pa.string() if vectors[0] and vectors[0][0] == ["u"] else pa.float64()
    table = pa.table({"bag": ["a", "b"], "p": pa.array(vectors, pa.list_(pa.list_(kind)))})
    pq.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(DataError, match=rf"f\.parquet.*{message}"):
        ingest_tables(tmp_path / "f.parquet", tmp_path / "s", id_column="bag", coordinates=["p"])
    assert not (tmp_path / "s").exists()


@pytest.mark.long
def test_lists_that_can_not_be_used(tmp_path):
    """Lists of unlike lengths, lists mixed with numbers; an empty one is a bag without points."""

    def ingest(x, y, **options):
        table = pa.table({"bag": ["a", "b"], "x": x, "y": y})
        arguments = {"id_column": "bag", "coordinates": ["x", "y"], "overwrite": True, **options}
        return ingest_frame(table, tmp_path / "s.zarr", **arguments)

    with pytest.raises(DataError, match=r"table of points: .* lists .* differ in length in row 1"):
        ingest([[1.0], [2.0, 3.0]], [[1.0], [2.0]], missing="drop_point")
    with pytest.raises(DataError, match="'x' has lists, 'y' has none"):
        ingest([[1.0], [2.0]], [1.0, 2.0])
    for empty in ([], None):
        for first in ([1.0], [1.0, 2.0, 3.0]):  # the row as written, however long the one before
            with pytest.raises(DataError, match="points, row 1: bag 'b': the bag is empty"):
                ingest([first, empty], [first, empty])
            assert ingest([first, empty], [first, empty], missing="drop_point").ids() == ["a"]
    with pytest.raises(DataError, match="points, row 1: bag 'b': coordinate 'y' is missing"):
        ingest([[1.0, 2.0], [3.0]], [[1.0, 2.0], [None]])


@pytest.mark.long
def test_responses_of_lists_are_named_by_their_item(tmp_path):
    """An unknown bag of a table of lists is not given a row that the table does not have."""
    points = pa.table({"bag": ["a", "b"], "x": [[1.0, 2.0], [3.0]]})
    for unknown, item in (([1.0], 3), ([1.0, 2.0], 3)):
        answers = pa.table({"bag": ["a", "z"], "q": [[1.0, 2.0, 3.0], unknown]})
        with pytest.raises(DataError, match=f"item of the lists {item}: id 'z'"):
            ingest_frame(
                points,
                tmp_path / "s.zarr",
                id_column="bag",
                coordinates=["x"],
                responses=answers,
                response_coordinates=["q"],
                overwrite=True,
            )


@pytest.mark.long
def test_labels_and_responses_are_tables_too(tmp_path):
    """Each by its own columns; refusals name the table and its row."""
    answers = pa.table({"name": ["b01", "b02"], "q": [[[1.0], [2.0]], [[3.0]]]})
    labels = pd.DataFrame({"who": ["b03"], "t": [7.0]})
    options = {
        "coordinates": ["x", "y"],
        "id_column": "name",
        "targets": ["t"],
        "target_table": labels,
        "target_id_column": "who",
        "responses": answers,
        "response_coordinates": ["q"],
        "response_id_column": "name",
    }
    store = ingest_frame(ragged().drop_columns(["t"]), tmp_path / "s.zarr", **options)
    assert store.responses()[1].tolist() == [[1.0], [2.0]]
    assert np.flatnonzero(~np.isnan(store.targets()[:, 0])).tolist() == [3]
    options["target_table"] = pd.DataFrame({"who": ["nobody"], "t": [7.0]})
    with pytest.raises(DataError, match="table of targets, row 0: id 'nobody' of the target table"):
        ingest_frame(ragged().drop_columns(["t"]), tmp_path / "t.zarr", **options)
    assert not (tmp_path / "t.zarr").exists()


@pytest.mark.parametrize(
    ("frame", "options", "kind", "message"),
    [
        ([1, 2], {}, DataError, r"points is \[1, 2\]; expected a table"),
        (long_frame(), {}, ParameterError, "id_column is missing: rows are points"),
        (long_frame().groupby(lambda i: i % 2), {}, ParameterError, "group by names"),
        (long_frame().groupby("bag"), {"id_column": "bag"}, ParameterError, "without id_column"),
        (long_frame(), {"id_column": "bg"}, DataError, r"no column 'bg' \(did you mean 'bag'\?\)"),
        (long_frame(), {"id_column": []}, ParameterError, "id_column is empty"),
    ],
)
def test_refused(frame, options, kind, message, tmp_path):
    with pytest.raises(kind, match=message):
        ingest_frame(frame, tmp_path / "s.zarr", coordinates=["u", "v"], **options)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_several_id_columns_rules_and_truth_values(ending, tmp_path, client, ingest_cut):
    """Ids of two columns; targets that rows of a bag differ in; true and false as coordinates."""
    frame = long_frame().assign(
        year=lambda f: f["bag"].str[1].astype(int), late=lambda f: f["v"] > 0
    )
    frame["w"] = RNG.normal(size=len(frame)).round(3)
    frame.loc[::5, "w"] = np.nan
    frame["flag"] = frame["w"] > 1
    rules = {"w": "mean", "n": "count", "last": "last", "hit": "any"}
    frame = frame.assign(n=frame["w"], last=frame["w"], hit=frame["flag"].astype(float))
    coordinates = ["u", "late"] if ending == "parquet" else ["u", "v"]
    path = tmp_path / f"f.{ending}"
    getattr(frame, f"to_{ending}")(path, index=False)
    store = ingest_cut(
        *(path, tmp_path / "s.zarr"),
        id_column=["year", "bag"],
        coordinates=coordinates,
        targets=list(rules),
        target_rules=rules,
        box=[(0, 1), (0, 1)],
    )
    groups = frame.assign(key=frame["year"].astype(str) + "/" + frame["bag"]).groupby("key")
    assert store.ids().tolist() == list(groups.groups)
    expected = groups.agg(w=("w", "mean"), n=("w", "count"), last=("w", "last"), hit=("hit", "max"))
    np.testing.assert_allclose(store.targets(), expected.to_numpy(), rtol=1e-12)
    if ending == "parquet":
        assert set(store.read().points[:, 1].tolist()) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"target_rules": {"kind": "mean"}}, DataError, "target 'kind' is text; of its rows only"),
        ({"target_rules": {"u": "mean"}}, ParameterError, "target_rules of 'u': no such target"),
        ({"target_rules": {"kind": "most"}}, ParameterError, "target_rules is .*most.*mean"),
    ],
)
def test_rules_that_can_not_be_used(options, kind, message, tmp_path):
    with pytest.raises(kind, match=message):
        ingest_frame(long_frame(), tmp_path / "s.zarr", targets=["kind"], **COLUMNS, **options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("ending", "options", "client"),
    [
        (".csv", {"sep": ";", "decimal": ","}, "here"),
        (".csv", {"sep": ";", "decimal": ","}, "cluster"),
        (".tsv", {"sep": "\t"}, "here"),
        (".csv", {"sep": "|"}, "here"),
    ],
    indirect=["client"],
)
def test_dialects_of_csv(ending, options, tmp_path, client, ingest_cut):
    """Delimiters that the header tells, decimal commas, dates as text, and missing cells."""
    frame = long_frame()
    frame["day"] = pd.Timestamp("2020-02-28 12:00") + pd.to_timedelta(np.arange(len(frame)), "D")
    frame["t"] = frame["size"] / 4
    path = tmp_path / f"f{ending}"
    frame.to_csv(path, index=False, **options)
    value = {"decimal_separator": options["decimal"]} if "decimal" in options else {}
    store = ingest_cut(
        *(path, tmp_path / "s.zarr"),
        id_column="bag",
        coordinates=["v", {"day": "epoch(day) / 86400"}],
        targets=["t"],
        dtype="float64",
        read=value,
    )
    frame["days"] = (frame["day"] - pd.Timestamp(0)).dt.total_seconds() / 86400
    groups = frame.groupby("bag")
    np.testing.assert_array_equal(store.targets()[:, 0], groups["t"].first())
    for bag, (_, expected) in zip(store.read(), groups, strict=True):
        np.testing.assert_allclose(bag, expected[["v", "days"]], rtol=1e-12)


def test_csv_that_can_not_be_used(tmp_path):
    """A thousands point where the comma is decimal, a day that is none, and no such column."""
    path = tmp_path / "f.csv"

    def ingest(text, **options):
        path.write_text(text)
        arguments = {"id_column": "bag", "coordinates": ["x"], **options}
        return ingest_tables(path, tmp_path / "s.zarr", **arguments)

    with pytest.raises(DataError, match=r"row 0 \(line 2\): bag 'a': coordinate 'x' is '1.234,5'"):
        ingest("bag;x\na;1.234,5\n", read={"decimal_separator": ","})
    with pytest.raises(DataError, match=r"row 1 \(line 3\): bag 'a': coordinate 'x' is '31st'"):
        ingest("bag,x\na,2020-01-31\na,31st\n", read={"types": {"x": "DATE"}})
    with pytest.raises(DataError, match=r"no column 'x'; there are \['bag', 'y'\]"):
        ingest("bag;y\na;1\n")
