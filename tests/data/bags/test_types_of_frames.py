"""Columns of every type: as numbers or ids, in memory and in a store, or refused by name."""

from __future__ import annotations

import uuid
import warnings
from datetime import date, timedelta
from decimal import Decimal

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array, eye

from bagbasis import (
    BagbasisWarning,
    Bags,
    BagStore,
    DataError,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ParameterError,
    as_responses,
)
from bagbasis.data.bags.arrow_arrays import plain_column
from bagbasis.data.bags.frames import take_columns
from bagbasis.data.labelled.alignment import aligned
from bagbasis.hypotheses import two_sample_test
from bagbasis.ingest import (
    ingest_arrays,
    ingest_frame,
    ingest_npz,
    ingest_patches,
    ingest_tables,
)

ZONED = pd.to_datetime(["2026-01-01", "2026-01-01", "2026-02-01"]).tz_localize("Asia/Tokyo")
NUMBERS = {
    "decimals": ([Decimal("0.5"), Decimal("1.5"), Decimal(2)], [0.5, 1.5, 2]),
    "times": (pd.to_datetime(["1931-01-01", "1970-01-02", "2026-01-02"]), [-14245, 1, 20455]),
    "times of a zone": (ZONED, [20453.625, 20453.625, 20484.625]),
    "dates": ([date(1600, 1, 1), date(2020, 1, 1), date(1970, 1, 1)], [-135140, 18262, 0]),
    "truth values": (pd.array([True, False, True], "boolean"), [1, 0, 1]),
    "sparse": (pd.arrays.SparseArray([0.0, 1, 0]), [0, 1, 0]),
    "categories of numbers": (pd.Categorical([3, 1, 2], ordered=True), [3, 1, 2]),
    "objects": (pd.Series([1, 2.5, True], dtype=object), [1, 2.5, 1]),
    "halves": (np.array([1, 2, 3], "float16"), [1, 2, 3]),
    "beyond int64": (np.array([2**64 - 1, 1, 2], "uint64"), [2.0**64, 1, 2]),
    "nullable": (pd.array([1, 2, 3], "Int8"), [1, 2, 3]),
    "Arrow's": (pd.array([1, 2, 3], "double[pyarrow]"), [1, 2, 3]),
    "Arrow's decimals": (
        pd.array([Decimal(1), Decimal(2), Decimal(3)], pd.ArrowDtype(pa.decimal128(5, 2))),
        [1, 2, 3],
    ),
    "polars' decimals": (pl.Series([Decimal("0.5"), Decimal(1), Decimal(2)]), [0.5, 1, 2]),
    "polars' times": (pl.Series(ZONED.to_pydatetime().tolist()), [20453.625, 20453.625, 20484.625]),
}
REFUSED = {
    "complex": [1j, 2, 3],
    "spans": pd.to_timedelta([1, 2, 3], "s"),
    "Python's spans": [timedelta(1)] * 3,
    "texts": ["1", "2", "3"],
    "categories of texts": pd.Categorical(["a", "b", "c"]),
    "texts among numbers": pd.Series([1, "a", 2], dtype=object),
    "periods": pd.period_range("2026-01", periods=3, freq="M"),
    "intervals": pd.interval_range(0, 3),
    "bytes": [b"1", b"2", b"3"],
    "polars' enum": pl.Series(["a", "b", "a"], dtype=pl.Enum(["a", "b"])),
}
IDS = {
    "periods": (
        pd.PeriodIndex(["2026-01", "2026-01", "2026-02"], freq="M"),
        ["2026-01", "2026-02"],
    ),
    "uuids": ([uuid.UUID(int=1)] * 2 + [uuid.UUID(int=2)], [f"{uuid.UUID(int=i)}" for i in (1, 2)]),
    "bytes": ([b"a", b"a", b"b\xff"], ["a", "b\\xFF"]),
    "times of a zone": (ZONED, ["2025-12-31 15:00:00+00", "2026-01-31 15:00:00+00"]),
    "categories": (pd.Categorical(["a", "a", "b"], ["a", "b", "z"], ordered=True), ["a", "b"]),
    "whole floats": ([1.0, 1.0, 2.0], [1, 2]),
    "Arrow's texts": (pd.array(["a", "a", "b"], "string[pyarrow]"), ["a", "b"]),
    "runs": (pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]), ["a", "b"]),
    "polars' categories": (pl.Series(["a", "a", "b"], dtype=pl.Categorical), ["a", "b"]),
    "polars' enum": (pl.Series(["a", "a", "b"], dtype=pl.Enum(["a", "b"])), ["a", "b"]),
}


def frame_of(values, name):
    """A table of the library that has values, with ids and a coordinate."""
    columns = {"p": ["a", "a", "b"], "x": [0.5, 1.5, 2.5], name: values}
    if isinstance(values, pl.Series):
        return pl.DataFrame(columns)
    return pa.table(columns) if isinstance(values, pa.Array) else pd.DataFrame(columns)


def stored(frame, place):
    options = {"id_column": "p", "coordinates": ["x"], "mode": "overwrite", "dtype": "float64"}
    return ingest_frame(frame, place, **options)


@pytest.mark.long
@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_the_same_in_memory_and_stored(kind, tmp_path):
    """Decimals, truth values, categories of numbers; times as days since 1970 in UTC."""
    values, expected = NUMBERS[kind]
    frame = frame_of(values, "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bags = Bags.from_frame(frame, "p", coordinates=["x"])
    assert bags.points.ravel().tolist() == expected
    store = stored(frame, tmp_path / "s.zarr")
    assert np.concatenate([*store.read()]).ravel().tolist() == expected


@pytest.mark.parametrize("kind", REFUSED)
def test_other_columns_are_refused_by_name(kind, tmp_path):
    """By either call, by an error of ours."""
    frame = frame_of(REFUSED[kind], "x")
    with pytest.raises(DataError, match=r"column '?x"):
        Bags.from_frame(frame, "p", coordinates=["x"])
    with pytest.raises(DataError, match=r"column '?x"):
        stored(frame, tmp_path / "s.zarr")


@pytest.mark.long
@pytest.mark.parametrize("kind", IDS)
def test_ids_are_the_same_bags_in_memory_and_stored(kind, tmp_path):
    """Periods, UUIDs and bytes are their texts."""
    values, expected = IDS[kind]
    frame = frame_of(values, "p")
    assert Bags.from_frame(frame, "p", coordinates=["x"]).sizes.tolist() == [2, 1]
    assert stored(frame, tmp_path / "s.zarr").ids().tolist() == expected


@pytest.mark.parametrize("values", [[(1, 2)] * 3, pd.interval_range(0, 3), [1, "a", "a"]])
def test_ids_that_are_none_are_refused(values, tmp_path):
    """Tuples, intervals, numbers among texts."""
    frame = pd.DataFrame({"p": values, "x": [0.5, 1.5, 2.5]})
    with pytest.raises(DataError, match=r"\bp\b|ids"):
        Bags.from_frame(frame, "p", coordinates=["x"])
    with pytest.raises(DataError, match=r"'p'|column p|ids"):
        stored(frame, tmp_path / "s.zarr")


def test_tensors_of_arrow_are_lists_of_points(tmp_path):
    """Their flat storage was read as points of one coordinate; slices and missing ones, too."""
    numbers = np.arange(24.0).reshape(4, 3, 2)
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(numbers)
    plain = plain_column(column.slice(1, 2))
    assert plain.to_pylist() == numbers[1:3].tolist()
    flat = pa.array([None, [0.0] * 6], column.type.storage_type)
    missing = pa.ExtensionArray.from_storage(column.type, flat)
    assert plain_column(missing).to_pylist() == [None, [[0.0, 0.0]] * 3]
    table = pa.table({"p": ["a", "b", "c", "d"], "x": column})
    store = ingest_frame(table, tmp_path / "s.zarr", id_column="p", coordinates=["x"])
    assert store.coordinate_names == ["x[0]", "x[1]"]
    assert store[2].tolist() == numbers[2].tolist()
    with pytest.raises(DataError, match="column 'x' has object, not numbers"):
        Bags.from_frame(table, "p", coordinates=["x"])


BYTES = [b"b\xff", b"a", b"a'\\"]
TEXTS = ["a", r"a\x27\x5C", r"b\xFF"]
BYTES_CALLS = {
    "table": lambda f, _: Bags.from_frame(f, "p"),
    "groups": lambda f, _: Bags.from_frame(f.groupby("p")),
    "ingest_frame": lambda f, url: ingest_frame(f, url, id_column="p", coordinates=["x"]),
    "Bags": lambda f, _: Bags(f[["x"]].to_numpy(), [0, 1, 2, 3], ids=BYTES),
    "ingest_arrays": lambda f, url: ingest_arrays([[0.0], [1.0], [2.0]], url, ids=np.array(BYTES)),
    "append": lambda f, url: BagStore.create(url, 1).append([[[0.0]]] * 3, ids=BYTES),
}


@pytest.mark.parametrize("call", BYTES_CALLS)
def test_ids_of_bytes_are_one_text_everywhere(call, tmp_path):
    """Memory had bytes, tables texts, arrays were refused; labels have bytes as their index."""
    bags = BYTES_CALLS[call](pd.DataFrame({"p": BYTES, "x": [0.0, 1, 2]}), tmp_path / "s.zarr")
    ids = bags.ids if isinstance(bags, Bags) else bags.ids()
    assert sorted(ids.tolist()) == TEXTS
    y = pd.Series([3.0, 1.0, 2.0], index=BYTES)
    expected = [dict(zip(TEXTS, [1.0, 2.0, 3.0], strict=True))[i] for i in ids.tolist()]
    assert aligned(y, bags, "y").tolist() == expected


@pytest.mark.parametrize(
    "names", [["p", "x", "x"], pd.MultiIndex.from_tuples([("p", ""), ("x", 1), ("x", 2)])]
)
def test_columns_of_one_name_or_of_levels_are_refused(names, tmp_path):
    """With the name."""
    frame = pd.DataFrame([[1, 0.5, 0.6]], columns=names)
    for call in (
        lambda: Bags.from_frame(frame, "p", coordinates=["x"]),
        lambda: stored(frame, tmp_path / "s"),
    ):
        with pytest.raises(DataError, match=r"two columns are called 'x'|2 levels"):
            call()


@pytest.mark.long
@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_lists_of_every_kind_are_rows_of_a_bag(kind, tmp_path):
    """In memory as stored; an empty or missing one is refused by its row."""
    lists = pa.array([[1.0, 2.0], [3.0]], kind(pa.float64()))
    table = pa.table({"p": ["a", "b"], "x": lists})
    assert Bags.from_frame(table, "p").points.ravel().tolist() == [1.0, 2.0, 3.0]
    assert [bag.ravel().tolist() for bag in stored(table, tmp_path / "s").read()] == [[1, 2], [3]]
    assert Bags.from_arrow(table, "x").sizes.tolist() == [2, 1]
    for none in ([], None):
        table = pa.table({"p": ["a", "b"], "x": pa.array([[1.0], none], kind(pa.float64()))})
        with pytest.raises(DataError, match="row 1"):
            Bags.from_frame(table, "p")
        with pytest.raises(DataError, match="row 1: bag 'b': the bag is empty"):
            stored(table, tmp_path / "s")


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_lists_of_nullable_frames_are_bags(backend):
    """As their numpy twins; NA is missing, texts are not numbers."""
    frames = [pd.DataFrame({"a": [i / 7, 2.0], "b": [i, 3]}) for i in range(30)]
    nullable = [frame.convert_dtypes(dtype_backend=backend) for frame in frames]
    y = np.arange(30.0)
    models = [DoubleBasisRegressor(MomentsEmbedding()).fit(x, y) for x in (frames, nullable)]
    np.testing.assert_array_equal(*(model.predict(frames) for model in models))
    frames[1] = pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": [1, 2]})
    with pytest.raises(DataError, match=r"bag 1, row 1: coordinate 'a'|bag 1, row 1: coordinate 0"):
        Bags.from_list(frames)
    frames[1] = pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})
    with pytest.raises(DataError, match="bag 1: column 'a'"):
        Bags.from_list(frames)


@pytest.mark.parametrize("data", [[csr_array(np.eye(3))], eye(3), eye(3).tocsr()])
def test_sparse_matrices_are_refused_by_their_remedy(data):
    """As a bag, and as all bags."""
    with pytest.raises(DataError, match=r"sparse matrix; pass .*toarray"):
        DoubleBasisRegressor(MomentsEmbedding()).fit(data, [1.0, 2.0, 3.0])


def test_a_store_is_opened_by_its_class_method():
    """The class alone says so."""
    with pytest.raises(ParameterError, match=r"BagStore.open\(url\)"):
        BagStore("train.zarr")


def test_what_pandas_cannot_give_arrow_is_refused():
    """Two columns of one name, and a column of several types."""
    twice = pd.DataFrame([[1, [2.0], [3.0]]], columns=["p", "u", "u"])
    mixed = pd.DataFrame({"p": [1, "a"], "u": [[1.0], [2.0]]})
    for frame in (twice, mixed):
        with pytest.raises(DataError, match="the table cannot be read"):
            Bags.from_arrow(frame)


TABLE = pd.DataFrame({"id": [1, 1, 2], "x": [1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0]})


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("name", ["id_column", "coordinates", "targets"])
def test_a_table_is_no_list_of_its_columns(name, library, tmp_path):
    """Its columns' names were taken; its index of columns is one."""
    table = library.DataFrame({"x": [1.0]})
    arguments = {"id_column": "id", "coordinates": ["x"], name: table}
    with pytest.raises(ParameterError, match=f"{name} is"):
        ingest_frame(TABLE, tmp_path / "s.zarr", **arguments)
    if name != "targets":
        with pytest.raises(ParameterError, match=f"{name} is"):
            Bags.from_frame(TABLE, **arguments)
        arguments[name] = table.columns
        if name == "coordinates":
            assert Bags.from_frame(TABLE, **arguments).n_dims == 1
            assert ingest_frame(TABLE, tmp_path / "s.zarr", **arguments).n_dims == 1


@pytest.mark.parametrize("names", [["id", "id"], ["id", "y", "id"]])
def test_a_column_is_named_once(names, tmp_path):
    """An id of one column twice was 1/1."""
    with pytest.raises(ParameterError, match=r"id_column is .*'id'.*; name each column once"):
        ingest_frame(TABLE, tmp_path / "s.zarr", id_column=names, coordinates=["x"])
    with pytest.raises(DataError, match=r"id_column is .*'id'.*; name each column once"):
        Bags.from_frame(TABLE, names, coordinates=["x"])
    with pytest.raises(DataError, match=r"coordinates is .*; name each column once"):
        Bags.from_frame(TABLE, "id", coordinates=["x", "x"])
    labels = {"target_table": TABLE[::2], "targets": ["y"], "target_id_column": names}
    with pytest.raises(ParameterError, match=r"target_id_column is .*once"):
        ingest_frame(TABLE, tmp_path / "s.zarr", id_column="id", coordinates=["x"], **labels)


@pytest.mark.parametrize("ids", [[1, None, 2, 2], ["a", None, "b", "b"], [pd.NaT, *ZONED]])
def test_rows_that_a_groupby_leaves_out_are_told(ids):
    """Rows without an id: pandas leaves them out, or polars makes one bag of all of them."""
    frame = pd.DataFrame({"id": ids, "x": [1.0, 2, 3, 4], "y": 1.0})
    row = int(np.argmax(frame["id"].isna()))
    with pytest.warns(BagbasisWarning, match=f"1 of 4 rows have no id .* first is row {row};"):
        bags = Bags.from_frame(frame.groupby("id"))
    known = frame[frame["id"].notna()]
    np.testing.assert_array_equal(bags.points[:, 0], known["x"])
    for groups in (
        frame.groupby("id", dropna=False),
        frame.groupby(["id", "y"], dropna=False),
        pl.from_pandas(frame).group_by("id", maintain_order=True),
    ):
        with pytest.raises(DataError, match="a group of 1 rows has no id"):
            Bags.from_frame(groups, coordinates=["x"])


def test_a_label_of_groups_without_some_rows_is_that_of_its_bag():
    """Rows without an id stand between the others."""
    ids = np.repeat([3.0, np.nan, 1, 2], 3)
    frame = pd.DataFrame({"id": ids, "x": np.arange(12.0), "age": np.repeat([30.0, 99, 10, 20], 3)})
    names, values = take_columns(frame.groupby("id"), ["age"])
    assert names == ["x"]
    assert values["age"].tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    "ids",
    [
        np.array([1, 1, 2], np.float16),
        [{"a": 1}] * 3,
        pd.array(["a", "a", "b"], pd.ArrowDtype(pa.string_view())),
    ],
)
def test_ids_that_pandas_cannot_group_by_are_refused(ids):
    frame = pd.DataFrame({"id": ids, "x": [1.0, 2, 3]})
    with pytest.raises(DataError, match="the table cannot be grouped by id"):
        Bags.from_frame(frame.groupby("id"))


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, ">f8"])
def test_labels_of_every_float_are_learnt(dtype):
    bags, y = [np.full((3, 1), float(i)) for i in range(9)], np.arange(9.0)
    model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0)
    expected = model.fit(bags, y).predict(bags)
    np.testing.assert_array_equal(model.fit(bags, y.astype(dtype)).predict(bags), expected)


NEAR = [2**60 + i for i in (1, 2, 3)]  # floats have steps of 256 there


def near_frame():
    return pd.DataFrame({"id": [1, 1, 2], "x": NEAR, "y": [1.0, 2, 3]})


def of_near_csv(place):
    near_frame().to_csv(place / "t.csv", index=False)
    call = {"id_column": "id", "coordinates": ["x", "y"]}
    return ingest_tables(place / "t.csv", place / "s.zarr", **call)


def of_near_npz(place):
    np.savez(place / "a.npz", points=np.array(NEAR)[:, None], sizes=[3])
    return ingest_npz(place / "a.npz", place / "s.zarr")


def of_near_patches(place):
    with h5py.File(place / "a.h5", "w") as file:
        file["features"] = np.array(NEAR)[:, None]
    return ingest_patches(place / "a.h5", place / "s.zarr")


def of_patches_of_one(place):
    """Return a store of files of one row; joined with floats, the integers are floats."""
    for i, x in enumerate(NEAR):
        with h5py.File(place / f"{i}.h5", "w") as file:
            file["features"], file["place"] = np.array([[x]]), np.array([[0.5]])
    return ingest_patches(place, place / "s.zarr", coordinates=["features", "place"])


NEAR_CALLS = {
    "table": lambda _: Bags.from_frame(near_frame(), id_column="id"),
    "groups": lambda _: Bags.from_frame(near_frame().groupby("id")),
    "polars": lambda _: Bags.from_frame(pl.from_pandas(near_frame()), id_column="id"),
    "list": lambda _: Bags.from_list([near_frame()[["x"]]] * 2),
    "arrays": lambda _: DoubleBasisRegressor().fit([np.array([[item]]) for item in NEAR], NEAR),
    "points": lambda _: Bags(np.array(NEAR)[:, None], [0, 1, 3]),
    "nested lists": lambda _: Bags.from_list([[[item] for item in NEAR]]),
    "unsigned": lambda _: Bags(np.array(NEAR, np.uint64)[:, None], [0, 3]),
    "lists of Arrow": lambda _: Bags.from_arrow(pa.table({"x": [NEAR]})),
    "ingest_arrays": lambda place: ingest_arrays([np.array(NEAR)], place / "s.zarr"),
    "responses": lambda place: BagStore.create(place / "s.zarr", 1, response_dims=1).append(
        [[[0.5]]], responses=[np.array(NEAR)[:, None]]
    ),
    "bags of one point": lambda place: ingest_arrays([[[x]] for x in NEAR], place / "s.zarr"),
    "responses of one point": lambda _: as_responses([np.array([x]) for x in NEAR], 3),
    "ingested responses of one point": lambda place: ingest_arrays(
        [[[0.5]]] * 3, place / "s.zarr", responses=[np.array([[x]]) for x in NEAR]
    ),
    "patches of one point": lambda place: of_patches_of_one(place),
    "npz": lambda place: of_near_npz(place),
    "patches": lambda place: of_near_patches(place),
    "ingest_frame": lambda place: stored(near_frame().rename(columns={"id": "p"}), place / "s"),
    "csv": of_near_csv,
}


@pytest.mark.parametrize("call", NEAR_CALLS)
def test_integers_that_float64_merges_are_refused(call, tmp_path):
    """Each was the same number."""
    what = "float64 merges integers: coordinate .* subtract an offset"
    with pytest.raises(DataError, match=what):
        NEAR_CALLS[call](tmp_path)


def test_integers_less_an_offset_stay_apart(tmp_path):
    call = {"id_column": "id", "coordinates": {"x": f"x - {2**60}"}}
    store = ingest_frame(near_frame(), tmp_path / "s.zarr", **call)
    assert store.read().points[:, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("x", [[2**60, 2**61, 2**62], [1.72e18, 1.721e18, 1.722e18], [2**53, 1, 2]])
def test_large_integers_that_stay_apart_are_numbers(x):
    frame = pd.DataFrame({"id": [1, 1, 2], "x": np.array(x).astype(np.int64)})
    bags = Bags.from_frame(frame, id_column="id")
    assert bags.points[:, 0].tolist() == [float(item) for item in x]


@pytest.mark.parametrize("dates", [False, True])
def test_times_in_one_bag_and_numbers_in_another(dates):
    """Times become days, and would be mixed with numbers of any other unit."""
    times = pd.Series(pd.date_range("2020-01-01", periods=3))
    frame = pd.DataFrame({"t": times.dt.date if dates else times, "x": [1.0, 2.0, 3.0]})
    numbers = pd.DataFrame({"x": [1.0, 2.0], "t": [5.0, 6.0]})
    assert Bags.from_list([frame, frame]).points[0].tolist() == [18262.0, 1.0]
    for bags, message in ([[frame, numbers], (0, 1)], [[numbers, numbers, frame], (2, 0)]):
        words = "column 't' has times in bag {} and numbers in bag {}".format(*message)
        with pytest.raises(DataError, match=words):
            Bags.from_list(bags)


def test_a_column_that_numbers_the_rows_is_warned_of():
    """pandas' own row numbers, written by to_csv, are a coordinate of bags and of samples."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"Unnamed: 0": range(40), "id": np.arange(40) // 4, "u": rng.random(40)})
    message = "column 'Unnamed: 0' numbers the rows"
    for call in (
        lambda: Bags.from_frame(table, id_column="id"),
        lambda: Bags.from_frame(table.groupby("id")),
        lambda: two_sample_test(table.drop(columns="id"), table.drop(columns="id")[::-1]),
    ):
        with pytest.warns(BagbasisWarning, match=message):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Bags.from_frame(table, id_column="id", coordinates=["Unnamed: 0", "u"])
        Bags.from_frame(table.sample(frac=1, random_state=0), id_column="id")


def test_columns_that_pandas_numbers_are_coordinates():
    """Frames made of arrays have the columns 0, 1, …: a fit takes all but its target."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((60, 2))).assign(id=np.arange(60) // 3, y=np.arange(60) // 3)
    model = DoubleBasisRegressor("moments").fit(table.groupby("id"), target="y")
    expected = DoubleBasisRegressor("moments").fit(table[[0, 1, "id"]].groupby("id"), range(20))
    points = [part[[0, 1]].to_numpy() for _, part in table.groupby("id")]
    np.testing.assert_array_equal(model.predict(points), expected.predict(points))
    bags = Bags.from_frame(table, id_column="id", coordinates=[1, 0])
    np.testing.assert_array_equal(bags[0], points[0][:, ::-1])
    with pytest.raises(ParameterError, match=r"coordinates is \[\]; expected"):
        Bags.from_frame(table, id_column="id", coordinates=[])
