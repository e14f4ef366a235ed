"""Tables as people have them: bad and missing cells, outliers, and new rows every day."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bagbasis import BagbasisError, BagStore, Box, DataError, ParameterError, StoreError
from bagbasis.ingest import TableIngest, ingest_tables
from bagbasis.ingest.tables import Tally
from tests.ingest.long_tables import (
    COLUMNS,
    RESPONSES,
    assert_holds,
    long_table,
    response_table,
    write,
)

N_BAGS = 40


def table_of(ids, seed=0):
    rng = np.random.default_rng(seed)
    return long_table(rng, rng.integers(1, 9, len(ids)).tolist(), list(ids))


def labels_of(**cells):
    """A target table of `N_BAGS` numbers as text, but for some cells."""
    values = [f"{i / 2}" for i in range(N_BAGS)]
    for bag, text in cells.items():
        values[int(bag[1:])] = text
    return pd.DataFrame({"bag": range(N_BAGS), "t": values})


@pytest.mark.long
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_bad_cell_does_not_turn_numbers_into_classes(ending, tmp_path, ingest_cut):
    """It is refused with its row; its word is made a missing value, or all are made classes."""
    points = write(table_of(range(N_BAGS)), tmp_path / "p.parquet")
    table = write(labels_of(b7="n/a", b9="unknown", b3=" 4.5"), tmp_path / f"t{ending}")
    options = {"targets": ["t"], "target_table": table, "overwrite": True, **COLUMNS}
    for types, words in (
        (None, ("n/a",)),
        (None, ()),
        ({"t": "number"}, ("n/a", "4.5")),
    ):
        with pytest.raises(DataError) as refused:
            ingest_cut(
                *(points, tmp_path / "s.zarr"), target_types=types, missing_values=words, **options
            )
        bad, row = ("unknown", 9) if words else ("n/a", 7)
        place = f"{table}, row {row}" + (f" (line {row + 2})" if ending == ".csv" else "")
        for word in (f"{place}: target 't' is {bad!r}", "values are", "missing_values"):
            assert word in str(refused.value)
    words = ["n/a", "unknown", 4, 5.0]
    if ending == ".parquet":  # where text is declared to be text
        with pytest.raises(DataError, match="is text, but all its values are numbers"):
            ingest_cut(points, tmp_path / "s.zarr", missing_values=words, **options)
        words = ["n/a", "unknown", "4.0", "5.0"]
    types = {"t": "number"} if ending == ".parquet" else None
    store = ingest_cut(
        points, tmp_path / "s.zarr", missing_values=words, target_types=types, **options
    )
    expected = np.arange(N_BAGS) / 2
    expected[3] = 4.5
    expected[[7, 8, 9, 10]] = np.nan
    np.testing.assert_array_equal(store.targets()[:, 0], expected)
    store = ingest_cut(points, tmp_path / "s.zarr", target_types={"t": "class"}, **options)
    classes = (
        sorted(pd.read_csv(table, dtype=str, keep_default_na=False)["t"].tolist())
        if (ending == ".csv")
        else sorted(pd.read_parquet(table)["t"])
    )
    assert store.meta.class_names == {"t": classes}


@pytest.mark.parametrize(
    ("labels", "classes"), [([0, 1], ["0", "1"]), ([1.0, 1e19], ["1", "1e+19"])]
)
def test_numbers_that_are_labels(labels, classes, tmp_path):
    """Numbers of a typed column are classes where that is said, also beyond int64."""
    frame = table_of(range(4)).assign(kind=lambda rows: np.take(labels, rows["bag"] % 2))
    path = write(frame, tmp_path / "p.parquet")
    store = ingest_tables(
        path, tmp_path / "s.zarr", targets=["kind"], target_types={"kind": "class"}, **COLUMNS
    )
    assert store.meta.class_names == {"kind": classes}
    assert store.targets()[:, 0].tolist() == [0, 1, 0, 1]


def test_bags_of_few_points_are_left_out(tmp_path, client):
    """Those that have too few after rows without a coordinate are gone, too; and are counted."""
    frame = table_of(range(N_BAGS), seed=4)
    frame.loc[frame.index[::3], "v"] = np.nan
    path = write(frame, tmp_path / "p.parquet")
    saved = frame.dropna(subset=["u", "v"])
    sizes = saved.groupby("bag").size()
    least = int(sizes.median())
    large = sorted(sizes.index[sizes >= least])
    tally = Tally()
    arguments = {"missing": "drop_point", "min_points": least, **COLUMNS}
    store = TableIngest(path, tmp_path / "s.zarr", **arguments).run(tally=tally)
    assert_holds(store, saved[saved["bag"].isin(large)], large)
    assert tally.small_bags == len(sizes) - len(large) > 0
    assert (tally.bags, tally.points) == (store.n_bags, store.n_points)
    assert any("fewer points" in text for text in tally.warnings())
    with pytest.raises(DataError, match="no bag is left"):
        ingest_tables(path, tmp_path / "t.zarr", **{**arguments, "min_points": 10_000})


@pytest.mark.long
@pytest.mark.parametrize("missing", ["drop_point", "drop_bag"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_rows_without_a_coordinate(missing, ending, tmp_path, client):
    """The point or its bag is left out, as pandas does it, also of responses; both are counted."""
    frame = table_of(range(N_BAGS), seed=1)
    frame.loc[frame["bag"] == 5, "u"] = np.nan  # no point is left
    frame.loc[frame.index[::17], "v"] = -999.0
    answers = response_table(np.random.default_rng(2), range(N_BAGS))
    answers.loc[answers.index[::29], "t"] = np.nan
    selected = frame.replace(-999.0, np.nan).dropna(subset=["u", "v"])
    answers_kept = answers.dropna()
    if missing == "drop_bag":
        gone = {*set(frame["bag"]) - set(selected["bag"])}
        gone |= {*frame.loc[~frame.index.isin(selected.index), "bag"]}
        gone |= {*answers.loc[~answers.index.isin(answers_kept.index), "name"]}
        selected = selected[~selected["bag"].isin(gone)]
    tally = Tally()
    store = TableIngest(
        write(frame, tmp_path / f"p{ending}"),
        tmp_path / "s.zarr",
        targets=["size"],
        responses=write(answers, tmp_path / f"r{ending}"),
        missing=missing,
        missing_values=[-999],
        **COLUMNS,
        **RESPONSES,
    ).run(tally=tally)
    assert_holds(store, selected, sorted(set(selected["bag"])))
    assert (tally.bags, tally.points) == (store.n_bags, store.n_points)
    assert tally.dropped_points == len(frame) - len(selected)
    assert tally.dropped_bags == N_BAGS - store.n_bags > 0
    expected = frame.groupby("bag")["size"].first().loc[store.ids()]
    np.testing.assert_array_equal(store.targets()[:, 0], expected)
    has = answers_kept[answers_kept["name"].isin(store.ids())]
    assert store.n_response_points == len(has)
    low, high = selected[["u", "v"]].min(), selected[["u", "v"]].max()
    if missing == "drop_point":
        assert store.box == Box.around(low, high)


def test_floats_of_other_libraries(tmp_path):
    """NaN that pyarrow and polars write, -99.9 in single precision, labels that became floats."""
    u = np.array([0.5, np.nan, 0.25, -99.9, 0.125, 0.75], dtype=np.float32)
    kind = np.array([1.0, 1.0, 0.0, 0.0, np.nan, np.nan])
    table = pa.table({"bag": [1, 1, 2, 2, 3, 3], "u": u, "v": u, "kind": kind})
    pq.write_table(table, tmp_path / "p.parquet")
    pq.write_table(
        pa.table({"bag": [4], "u": [0.5], "v": [0.5], "kind": [1]}), tmp_path / "q.parquet"
    )
    store = ingest_tables(
        [tmp_path / "p.parquet", tmp_path / "q.parquet"],
        tmp_path / "s.zarr",
        targets=["kind"],
        target_types={"kind": "class"},
        missing="drop_point",
        missing_values=[-99.9, "\uff11"],  # a digit, but not in SQL
        **COLUMNS,
    )
    assert store.read().sizes.tolist() == [1, 1, 2, 1]
    assert store.meta.class_names == {"kind": ["0", "1"]}
    np.testing.assert_array_equal(store.targets()[:, 0], [1, 0, np.nan, 1])
    assert store.box.lo[0] > 0


@pytest.mark.long
def test_text_is_never_a_missing_coordinate(tmp_path):
    """But where it is named; and a table without any whole point is refused."""
    path = write(table_of(range(3)).astype({"u": object}), tmp_path / "p.csv")
    text = path.read_text().replace("0.0", "oops", 1)
    path.write_text(text)
    url = tmp_path / "s.zarr"
    with pytest.raises(DataError, match=r"is 'oops.*', not a number"):
        ingest_tables(path, url, missing="drop_point", **COLUMNS)
    frame = table_of(range(3))
    half = frame.assign(u=frame["u"].where(frame["bag"] == 0), v=frame["v"].where(frame["bag"] > 0))
    for lacking, words in ((frame.assign(u=np.nan), "'u' is missing in all"), (half, "no bag is")):
        with pytest.raises(DataError, match=words):
            ingest_tables(write(lacking, path), url, missing="drop_point", **COLUMNS)
    assert not url.exists()


@pytest.mark.long
def test_an_outlier_does_not_stretch_the_box(tmp_path, ingest_cut, caplog):
    """The others fill it; the range is to be had, and the same box however the table is cut."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"bag": np.repeat(range(500), 10), "u": rng.random(5000), "v": 0.0})
    frame.loc[17, "u"] = 25.0
    path = write(frame, tmp_path / "p.parquet", row_group_size=500)  # ten pieces
    options = {"range_bytes": 2**14, **COLUMNS}
    with caplog.at_level(logging.WARNING, logger="bagbasis"):
        store = ingest_cut(path, tmp_path / "s.zarr", **options)
    lo, hi = store.box.bounds[0]
    assert -0.02 < lo < 0 < 1 < hi < 1.3
    assert store.box.bounds[1] == [-0.5, 0.5]
    measured = "1 of 5000 points were left out when the box was measured"
    assert f"{measured}; coordinate 'u' reaches" in caplog.text
    with caplog.at_level(logging.WARNING, logger="bagbasis"):
        ingest_cut(path, tmp_path / "given.zarr", box=[(-1, 2), (-1, 1)], **options)
    assert "1 of 5000 points lie outside the box; coordinate 'u' reaches" in caplog.text
    rest = frame.drop(index=17)
    same = write(rest, tmp_path / "q.parquet")
    others = ingest_cut(same, tmp_path / "t.zarr", **options)
    assert others.box == Box.around(rest[["u", "v"]].min(), rest[["u", "v"]].max())
    store = ingest_cut(path, tmp_path / "s.zarr", box={"quantile": 0}, overwrite=True, **options)
    assert store.box.bounds[0][1] > 25


@pytest.mark.long
def test_daily_tables_are_appended(tmp_path, ingest_cut):
    """Box and classes stay; all bags or none; known ids are refused, or skipped and counted."""
    days = [table_of(range(10 * day, 10 * day + 15), seed=day) for day in range(2)]
    paths = [write(frame, tmp_path / f"{day}.csv") for day, frame in enumerate(days)]
    url, options = tmp_path / "s.zarr", {"targets": ["size", "kind"], **COLUMNS}
    store = ingest_cut(paths[0], url, **options)
    box, first = store.box, days[0]
    assert_holds(store, first, range(15))
    with pytest.raises(DataError, match=r"duplicate bag id 10: .* known_ids: skip"):
        ingest_cut(paths[1], url, mode="append", **options)
    assert BagStore.open(url).n_bags == 15
    store = ingest_cut(paths[1], url, mode="append", known_ids="skip", **options)
    new = days[1][days[1]["bag"] >= 15]
    assert_holds(store, pd.concat([first, new]), range(25))
    assert store.box == box
    tally = Tally()
    ingest = TableIngest(paths[1], url, mode="append", known_ids="skip", **options)
    ingest.run(tally=tally)
    assert (tally.bags, tally.known_bags, BagStore.open(url).n_bags) == (0, 15, 25)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "options", "error", "words"),
    [
        ({"kind": "zebra"}, {}, DataError, ("'kind'", "'zebra'", "['ant', 'bee', 'cat']")),
        ({"size": "big"}, {}, DataError, ("row 0", "'size' is 'big'")),
        ({"bag": "b"}, {}, DataError, ("the id column holds numbers in", "s.zarr")),
        ({}, {"coordinates": ["v", "u"]}, ParameterError, ("['v', 'u']", "['u', 'v']")),
        ({}, {"targets": ["size"]}, ParameterError, ("['size']", "['size', 'kind']")),
        ({}, {"box": [(0, 1)] * 2}, ParameterError, ("box is given", "keeps its own")),
        ({}, {"overwrite": True}, ParameterError, ("overwrite", "append")),
        ({}, {"mode": "create"}, StoreError, ("exists already",)),
        ({}, {"mode": "add"}, ParameterError, ("'add'", "append")),
        ({}, {"mode": "create", "known_ids": "skip"}, ParameterError, ("known_ids",)),
        ({}, {"target_types": {"kind": "number"}}, ParameterError, ("'kind'", "otherwise")),
        ({}, {"target_types": {"no": "class"}}, ParameterError, ("'no'", "no such target")),
        ({}, {"missing": "ignore"}, ParameterError, ("'ignore'", "drop_point")),
        ({}, {"missing_values": {"n/a"}}, ParameterError, ("missing_values", "list")),
        ({}, {"mode": "overwrite", "box": {"quantile": 0.7}}, ParameterError, ("0.7",)),
        ({}, {"mode": "overwrite", "box": {"share": 0.1}}, ParameterError, ("quantile",)),
    ],
)
def test_what_can_not_be_appended_changes_nothing(change, options, error, words, tmp_path):
    """One line that names it, and the store is as it was."""
    frame, url = table_of(range(6)), tmp_path / "s.zarr"
    arguments = {"targets": ["size", "kind"], **COLUMNS}
    ingest_tables(write(frame, tmp_path / "a.csv"), url, **arguments)
    more = write(table_of(range(6, 12)).assign(**change), tmp_path / "b.csv")
    with pytest.raises(BagbasisError) as refused:
        ingest_tables(more, url, **({"mode": "append"} | arguments | options))
    assert type(refused.value) is error
    assert all(word in str(refused.value) for word in words)
    assert "\n" not in str(refused.value)
    assert_holds(BagStore.open(url), frame, range(6))


@pytest.mark.long
def test_append_to_a_store_without_bags(tmp_path, ingest_cut):
    """It keeps its box and its dtype, as one with bags does."""
    frame, url = table_of(range(6)), tmp_path / "s.zarr"
    BagStore.create(url, 2, box=[(-50, 50)] * 2, dtype="float64")
    store = ingest_cut(write(frame, tmp_path / "a.csv"), url, mode="append", **COLUMNS)
    assert (store.n_bags, store.box.bounds, store.dtype) == (6, [[-50, 50]] * 2, np.float64)


def test_append_needs_a_store(tmp_path):
    """A wrong URL makes no new store."""
    path = write(table_of(range(3)), tmp_path / "a.csv")
    with pytest.raises(StoreError):
        ingest_tables(path, tmp_path / "no.zarr", mode="append", **COLUMNS)
    assert not (tmp_path / "no.zarr").exists()
