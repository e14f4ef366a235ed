"""Long tables to a store, in this process and on a cluster, against pandas."""

from __future__ import annotations

import logging
import os
import signal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bagbasis import BagStore, Box
from bagbasis.ingest import TableIngest, ingest_tables
from bagbasis.ingest.tables import SORT_BYTES, Database, LocalEngine
from tests.data.store.processes import running
from tests.ingest.long_tables import (
    COLUMNS,
    RESPONSES,
    assert_holds,
    assert_holds_responses,
    ingest_and_be_killed,
    long_table,
    response_table,
    scatter,
    write,
)

INTEGER_IDS = [*range(-3, 20), 2**62, 10**3]
TEXT_IDS = ["b10", "b9", "B1", "ö", "a b", "7", "007"]


def table_of(ids, seed=0):
    rng = np.random.default_rng(seed)
    return long_table(rng, rng.integers(1, 60, len(ids)).tolist(), ids)


@pytest.mark.long
@pytest.mark.parametrize("ids", [INTEGER_IDS, TEXT_IDS], ids=["integers", "text"])
def test_rows_scattered_over_files_become_the_bags_of_a_groupby(ids, tmp_path, ingest_cut):
    """Bags, ids and order of the points are pandas', for several files of both kinds."""
    frame = table_of(ids)
    files = scatter(frame, tmp_path, [".parquet", ".csv", ".parquet", ".csv.gz", ".csv"])
    calls = []
    store = ingest_cut(
        files,
        tmp_path / "s.zarr",
        targets=["size", "kind"],
        progress=lambda *call: calls.append(call),
        **COLUMNS,
    )
    assert_holds(store, frame, sorted(ids))
    first = frame.groupby("bag").first().loc[sorted(ids)]
    assert store.meta.class_names == {"kind": ["ant", "bee", "cat"]}
    np.testing.assert_array_equal(store.targets(names=["size"])[:, 0], first["size"])
    codes = store.targets(names=["kind"])[:, 0].astype(int)
    assert np.array(["ant", "bee", "cat"])[codes].tolist() == first["kind"].tolist()
    assert store.box == Box.around(frame[["u", "v"]].min(), frame[["u", "v"]].max())
    assert store.dtype == np.float32
    done = [done for done, _ in calls]
    assert done == sorted(done)
    assert calls[-1] == (len(frame), len(frame))


@pytest.mark.long
def test_the_bytes_of_a_store_do_not_depend_on_where_or_how_it_was_made(tmp_path, ingest_cut):
    """Other pieces and ranges, on a cluster or not: with targets, responses and text ids."""
    ids = [f"bag {i}" for i in range(30)]
    frame, answers = table_of(ids), response_table(np.random.default_rng(4), ids)
    targets = pd.DataFrame(
        {"bag": ids[:-1], "k": np.arange(29.0), "c": ["x", "y", "z"] * 9 + ["x"] * 2}
    )
    (tmp_path / "answers").mkdir()
    points = scatter(frame, tmp_path, [".parquet", ".csv"])
    options = {
        "targets": ["k", "c"],
        "target_table": write(targets, tmp_path / "t.csv"),
        "responses": scatter(answers, tmp_path / "answers", [".csv", ".parquet"]),
        "response_box": [(0, 1)] * 3,
        "dtype": "float64",
    }
    with Database(SORT_BYTES) as database:
        table = TableIngest(points, tmp_path / "whole.zarr", **COLUMNS, **RESPONSES, **options)
        whole = table.run(LocalEngine(database))
    for piece_bytes, range_bytes in ((4000, 10_000), (10_000, 2**20)):
        ingest_cut(
            points,
            tmp_path / "cut.zarr",
            piece_bytes=piece_bytes,
            range_bytes=range_bytes,
            overwrite=True,
            **COLUMNS,
            **RESPONSES,
            **options,
        )
        assert bytes_of(tmp_path / "cut.zarr") == bytes_of(tmp_path / "whole.zarr")
    assert_holds_responses(whole, answers)
    assert (whole.dtype, whole.response_box) == (np.float64, Box.unit(3))


def bytes_of(folder):
    """The contents of all files, by name."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.long
def test_targets_of_a_second_table_are_joined_on_the_id(tmp_path, ingest_cut, caplog):
    """Any order and any number of target files; bags without a row are unlabelled and counted."""
    frame = table_of(range(100, 160))
    rng = np.random.default_rng(1)
    labelled = rng.permutation(np.arange(100, 157))
    targets = pd.DataFrame(
        {"k": labelled * 0.5, "name": labelled, "c": [f"c{i % 2}" for i in labelled]}
    )
    targets.loc[3, "k"] = np.nan
    targets.loc[4, "c"] = None
    write(targets[:30], tmp_path / "t0.csv")
    write(targets[30:], tmp_path / "t1.parquet")
    with caplog.at_level(logging.WARNING, logger="bagbasis"):
        store = ingest_cut(
            scatter(frame, tmp_path, [".parquet", ".parquet"]),
            tmp_path / "s.zarr",
            targets=["c", "k"],
            target_table=[tmp_path / "t0.csv", tmp_path / "t1.parquet"],
            target_id_column="name",
            **COLUMNS,
        )
    assert "3 of 60 bags are not in the target table" in caplog.text
    assert_holds(store, frame, range(100, 160))
    expected = targets.set_index("name").reindex(range(100, 160))
    np.testing.assert_array_equal(store.targets(names=["k"])[:, 0], expected["k"])
    codes = expected["c"].map({"c0": 0.0, "c1": 1.0}).astype(float)
    np.testing.assert_array_equal(store.targets(names=["c"])[:, 0], codes)


@pytest.mark.long
@pytest.mark.parametrize("ids", [INTEGER_IDS, TEXT_IDS], ids=["integers", "text"])
def test_responses_of_another_table(ids, tmp_path, ingest_cut, caplog):
    """Any order, any number of files of both kinds; with a target table, and box measured."""
    frame = table_of(ids)
    answers = response_table(np.random.default_rng(3), ids)
    folder = tmp_path / "responses"
    folder.mkdir()
    targets = pd.DataFrame({"bag": ids[:-1], "k": np.arange(len(ids) - 1.0)})
    calls = []
    with caplog.at_level(logging.WARNING, logger="bagbasis"):
        store = ingest_cut(
            scatter(frame, tmp_path, [".parquet", ".csv"]),
            tmp_path / "s.zarr",
            targets=["k"],
            target_table=write(targets, tmp_path / "t.parquet"),
            responses=scatter(answers, folder, [".csv", ".parquet", ".csv"]),
            progress=lambda *call: calls.append(call),
            **COLUMNS,
            **RESPONSES,
        )
    assert_holds(store, frame, sorted(ids))
    assert_holds_responses(store, answers)
    expected = targets.set_index("bag")["k"].reindex(sorted(ids))
    np.testing.assert_array_equal(store.targets()[:, 0], expected)
    columns = answers[["s", "t", "w"]]
    assert store.response_box == Box.around(columns.min(), columns.max())
    without = len(ids) - answers["name"].nunique()
    assert f"{without} of {len(ids)} bags are not in the table of responses" in caplog.text
    assert "1 of" in caplog.text
    done = [done for done, _ in calls]
    assert done == sorted(done)
    assert calls[-1] == (len(frame) + len(answers),) * 2


@pytest.mark.long
def test_numerals_in_csv_follow_the_text_of_other_files(tmp_path):
    """An id or a class that looks like a number in one CSV file is text if others are."""
    write(pd.DataFrame({"bag": [7, 8], "u": 0.0, "v": 1, "c": [1, 2]}), tmp_path / "a.csv")
    other = pd.DataFrame({"bag": ["7", "x"], "u": 1.0, "v": 2, "c": ["1", "no"]})
    write(other, tmp_path / "b.parquet")
    store = ingest_tables(
        [tmp_path / "a.csv", tmp_path / "b.parquet"],
        tmp_path / "s.zarr",
        targets=["c"],
        target_types={"c": "class"},
        **COLUMNS,
    )
    assert store.ids().tolist() == ["7", "8", "x"]
    assert store.read().sizes.tolist() == [2, 1, 1]
    assert store.meta.class_names == {"c": ["1", "2", "no"]}
    assert store.targets()[:, 0].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("ids", "saved"),
    [
        (["1", "-3", "0"], [-3, 0, 1]),
        (["9223372036854775807", "-9223372036854775808"], [-(2**63), 2**63 - 1]),
        *((ids, sorted(ids)) for ids in (["1", "007"], ["1", "+7"], ["-0"], ["1.0"], ["1e3"])),
        *((ids, sorted(ids)) for ids in ([" 1"], ["1_000"], ["9223372036854775808"])),
    ],
)
def test_ids_in_csv_are_integers_only_as_python_writes_them(ids, saved, tmp_path):
    """So that two ids that differ in the file never become one."""
    path = write(pd.DataFrame({"bag": ids, "u": 0, "v": 0}), tmp_path / "t.csv")
    store = ingest_tables(path, tmp_path / "s.zarr", **COLUMNS)
    assert store.ids().tolist() == saved


@pytest.mark.long
def test_names_that_differ_in_case_or_are_duckdbs_own(tmp_path):
    """A column is the one of exactly that name, in both kinds of files."""
    names = ["U", "u", "V", "v", "file_index", "file_row_number", "bag"]
    frame = pd.DataFrame([[9, 1, 9, 2, 7, 7, "b"], [9, 3, 9, 4, 7, 7, "a"]], columns=names)
    for ending in (".csv", ".parquet"):
        path = write(frame, tmp_path / f"[{ending}]=1*{ending}")
        store = ingest_tables(path, tmp_path / "s.zarr", overwrite=True, **COLUMNS)
        assert store.read().points.tolist() == [[3, 4], [1, 2]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("numbers", "text", "client"),
    [
        ("float16", "string", "here"),
        ("int8", "large_string", "here"),
        ("uint64", "categories", "cluster"),
        ("decimal128(5, 2)", "string", "here"),
        ("double", "categories", "here"),
    ],
    indirect=["client"],
)
def test_every_type_of_numbers_and_text(numbers, text, tmp_path, client):
    """As pandas, Polars and others write them, dictionaries (categories) among them."""
    words = pa.array(["b", "a", "b"])
    words = words.dictionary_encode() if text == "categories" else words.cast(text)
    number = pa.decimal128(5, 2) if numbers.startswith("decimal") else pa.type_for_alias(numbers)
    column = pa.array([1, 2, 3]).cast(pa.float32()).cast(number)
    table = pa.table({"bag": words, "u": column, "v": column, "c": words})
    pq.write_table(table, tmp_path / "t.parquet")
    store = ingest_tables(tmp_path / "t.parquet", tmp_path / "s.zarr", targets=["c"], **COLUMNS)
    assert store.read().points.tolist() == [[2, 2], [1, 1], [3, 3]]
    assert store.meta.class_names == {"c": ["a", "b"]}


@pytest.mark.long
def test_line_breaks_within_quotes(tmp_path, ingest_cut):
    """A quoted field may go over several lines, wherever the file is cut."""
    frame = table_of(range(30)).assign(kind="line one\nline two, which is rather long\r\n")
    path = write(frame, tmp_path / "t.csv")
    store = ingest_cut(path, tmp_path / "s.zarr", targets=["kind"], **COLUMNS)
    assert_holds(store, frame, range(30))
    assert store.meta.class_names == {"kind": [frame["kind"][0]]}


@pytest.mark.long
def test_a_huge_bag_among_hundreds_of_tiny_ones(tmp_path, ingest_cut):
    """Skewed sizes: 40,000 points in one bag, one to three in 600 others."""
    rng = np.random.default_rng(2)
    sizes = [*rng.integers(1, 4, 600).tolist(), 40_000]
    ids = rng.permutation(601).tolist()
    frame = long_table(rng, sizes, ids)
    files = scatter(frame, tmp_path, [".parquet"] * 3, group=2_000)
    options = {"piece_bytes": 2**18, "range_bytes": 2**14}
    store = ingest_cut(files, tmp_path / "s.zarr", **options, **COLUMNS)
    assert_holds(store, frame, range(601))
    assert store.read().sizes[ids[-1]] == 40_000


@pytest.mark.long
def test_a_killed_ingest_commits_nothing_and_runs_again(tmp_path, client):
    """Killed with -9 while it writes: the store is empty, and the same call makes it whole."""
    frame = table_of(range(200), seed=5)
    answers = response_table(np.random.default_rng(5), range(200))
    path, responses = write(frame, tmp_path / "p.parquet"), write(answers, tmp_path / "r.csv")
    url = tmp_path / "s.zarr"
    with running(ingest_and_be_killed, path, responses, url, client is not None) as (process, _):
        process.join()
    assert process.exitcode == -signal.SIGKILL
    assert BagStore.open(url).n_bags == 0
    store = ingest_tables(path, url, responses=responses, **COLUMNS, **RESPONSES)
    assert_holds(store, frame, range(200))
    assert_holds_responses(store, answers)


@pytest.mark.long
@pytest.mark.parametrize("client", ["cluster"], indirect=True)
def test_a_worker_that_dies_changes_nothing(tmp_path, ingest_cut, client):
    """The workers hold the sorted rows on their disks; what one takes along is made again."""
    frame = table_of(range(40))
    victims = list(client.run(os.getpid).values())[:1]

    def kill(done: int, total: int) -> None:
        if victims and done > 0.7 * total:
            os.kill(victims.pop(), signal.SIGKILL)

    files = scatter(frame, tmp_path, [".parquet"] * 4)
    store = ingest_cut(files, tmp_path / "s.zarr", progress=kill, **COLUMNS)
    assert not victims
    assert_holds(store, frame, range(40))
