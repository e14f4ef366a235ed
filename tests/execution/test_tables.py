"""Long tables to a store, on a cluster of processes, against pandas."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bagbasis.bags import BagStore, Box
from bagbasis.clusters import connect
from bagbasis.execution import current_client
from bagbasis.ingest import table_files, tables
from bagbasis.ingest.shuffle import spread
from bagbasis.ingest.tables import ingest_tables
from tests.execution.long_tables import (
    COLUMNS,
    RESPONSES,
    assert_holds,
    assert_holds_responses,
    long_table,
    response_table,
    scatter,
    write,
)

TEXT_IDS = ["b10", "b9", "B1", "ö", "a b", "7", "007"]


@pytest.fixture(scope="module", autouse=True)
def client():
    """Two worker processes."""
    with connect("local", n_workers=2, cores_per_worker=1) as client:
        yield client


@pytest.fixture
def small(monkeypatch):
    """Pieces of files and ranges of ids small enough that there are many."""
    monkeypatch.setattr(table_files, "PIECE_BYTES", 2**12)
    monkeypatch.setattr(table_files, "CSV_PIECE_BYTES", 2**12)
    monkeypatch.setattr(tables, "RANGE_BYTES", 2**11)


def table_of(ids, seed=0):
    rng = np.random.default_rng(seed)
    return long_table(rng, rng.integers(1, 60, len(ids)).tolist(), ids)


@pytest.mark.parametrize(
    "ids", [[*range(-3, 20), 2**62, 10**3], TEXT_IDS], ids=["integers", "text"]
)
def test_rows_scattered_over_files_become_the_bags_of_a_groupby(ids, tmp_path, small):
    """Bags, ids and order of the points are pandas', for several files of both kinds."""
    frame = table_of(ids)
    files = scatter(frame, tmp_path, [".parquet", ".csv", ".parquet", ".csv.gz", ".csv"])
    calls = []
    store = ingest_tables(
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
    names = np.array(store.meta.class_names["kind"])[
        store.targets(names=["kind"])[:, 0].astype(int)
    ]
    assert names.tolist() == first["kind"].tolist()
    assert store.box == Box.around(frame[["u", "v"]].min(), frame[["u", "v"]].max())
    assert store.dtype == np.float32
    done = [done for done, _ in calls]
    assert done == sorted(done)
    assert calls[-1] == (len(frame), len(frame))


def test_the_store_does_not_depend_on_how_the_work_was_cut(tmp_path, monkeypatch):
    """Other pieces, other ranges and another number of workers give the same points."""
    frame = table_of(range(30))
    files = scatter(frame, tmp_path, [".parquet", ".csv"])
    whole = ingest_tables(files, tmp_path / "whole.zarr", dtype="float64", **COLUMNS)
    monkeypatch.setattr(table_files, "CSV_PIECE_BYTES", 777)
    monkeypatch.setattr(table_files, "PIECE_BYTES", 1)
    monkeypatch.setattr(tables, "RANGE_BYTES", 500)
    cut = ingest_tables(files, tmp_path / "cut.zarr", dtype="float64", **COLUMNS)
    np.testing.assert_array_equal(cut.read().points, whole.read().points)
    np.testing.assert_array_equal(cut.offsets(), whole.offsets())
    assert cut.dtype == np.float64


def test_targets_of_a_second_table_are_joined_on_the_id(tmp_path, small, caplog):
    """Any order and any number of target files; bags without a row are unlabelled and counted."""
    frame = table_of(range(100, 160))
    files = scatter(frame, tmp_path, [".parquet", ".parquet"])
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
        store = ingest_tables(
            files,
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


@pytest.mark.parametrize(
    "ids", [[*range(-3, 40), 2**62, 10**3], TEXT_IDS], ids=["integers", "text"]
)
def test_responses_of_another_table(ids, tmp_path, small, caplog):
    """Any order, any number of files of both kinds; beside a target table, and box measured."""
    frame = table_of(ids)
    answers = response_table(np.random.default_rng(3), ids)
    folder = tmp_path / "responses"
    folder.mkdir()
    targets = pd.DataFrame({"bag": ids[:-1], "k": np.arange(len(ids) - 1.0)})
    calls = []
    with caplog.at_level(logging.WARNING, logger="bagbasis"):
        store = ingest_tables(
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


def test_responses_do_not_depend_on_how_the_work_was_cut(tmp_path, monkeypatch):
    """Other pieces and other ranges of ids give the same responses."""
    frame, answers = table_of(range(30)), response_table(np.random.default_rng(4), range(30))
    options = {
        "responses": [write(answers, tmp_path / "r.csv")],
        "response_box": [(0, 1)] * 3,
        "dtype": "float64",
    } | RESPONSES
    path = write(frame, tmp_path / "p.parquet")
    whole = ingest_tables(path, tmp_path / "whole.zarr", **COLUMNS, **options)
    monkeypatch.setattr(table_files, "CSV_PIECE_BYTES", 777)
    monkeypatch.setattr(tables, "RANGE_BYTES", 500)
    cut = ingest_tables(path, tmp_path / "cut.zarr", **COLUMNS, **options)
    np.testing.assert_array_equal(cut.responses().points, whole.responses().points)
    np.testing.assert_array_equal(cut.response_offsets(), whole.response_offsets())
    assert cut.response_box == Box.unit(3)
    assert_holds_responses(cut, answers)


def test_numerals_in_csv_follow_the_text_of_other_files(tmp_path):
    """An id or a class that looks like a number in one CSV file is text if others are."""
    write(pd.DataFrame({"bag": [7, 8], "u": 0.0, "v": 1, "c": [1, 2]}), tmp_path / "a.csv")
    other = pd.DataFrame({"bag": ["7", "x"], "u": 1.0, "v": 2, "c": ["1", "no"]})
    write(other, tmp_path / "b.parquet")
    store = ingest_tables(
        [tmp_path / "a.csv", tmp_path / "b.parquet"], tmp_path / "s.zarr", targets=["c"], **COLUMNS
    )
    assert store.ids().tolist() == ["7", "8", "x"]
    assert store.read().sizes.tolist() == [2, 1, 1]
    assert store.meta.class_names == {"c": ["1", "2", "no"]}
    assert store.targets()[:, 0].tolist() == [0.0, 1.0, 2.0]


def test_a_given_box_is_kept_and_points_may_lie_outside(tmp_path):
    """The box is the caller's, and no point is moved or dropped for it."""
    frame = table_of(range(5))
    store = ingest_tables(
        write(frame, tmp_path / "p.parquet"), tmp_path / "s.zarr", box=[(0, 1), (-1, 0)], **COLUMNS
    )
    assert store.box == Box((0.0, -1.0), (1.0, 0.0))
    assert_holds(store, frame, range(5))


def test_a_huge_bag_among_thousands_of_tiny_ones(tmp_path, monkeypatch):
    """Skewed sizes: 200,000 points in one bag, one to three in 3,000 others."""
    monkeypatch.setattr(tables, "RANGE_BYTES", 2**16)
    rng = np.random.default_rng(2)
    sizes = [*rng.integers(1, 4, 3000).tolist(), 200_000]
    ids = rng.permutation(3001).tolist()
    frame = long_table(rng, sizes, ids)
    files = scatter(frame, tmp_path, [".parquet", ".parquet", ".parquet"])
    store = ingest_tables(files, tmp_path / "s.zarr", **COLUMNS)
    assert_holds(store, frame, range(3001))
    assert store.read().sizes[ids[-1]] == 200_000


def test_a_directory_of_parquet_files_and_a_glob(tmp_path):
    """Both give the files in the order of their names; other files in the directory are left."""
    frame = table_of(range(8))
    folder = tmp_path / "points"
    folder.mkdir()
    scatter(frame, folder, [".parquet"] * 3)
    (folder / "_SUCCESS").touch()
    for source in (folder, f"{folder}/part*.parquet"):
        store = ingest_tables(source, tmp_path / "s.zarr", overwrite=True, **COLUMNS)
        assert_holds(store, frame, range(8))


def test_without_a_client_workers_are_started_and_stopped(tmp_path, client, monkeypatch):
    """No client needs to be open; afterwards none is."""
    frame = table_of(range(8))
    path = write(frame, tmp_path / "p.csv")
    monkeypatch.setattr(tables, "current_client", lambda: None)
    before = current_client()
    store = ingest_tables(path, tmp_path / "s.zarr", **COLUMNS)
    assert_holds(store, frame, range(8))
    assert current_client() is before


def test_a_killed_ingest_commits_nothing_and_runs_again(tmp_path):
    """Killed with -9 while it writes: the store is empty, and the same call makes it whole."""
    frame = table_of(range(200), seed=5)
    answers = response_table(np.random.default_rng(5), range(200))
    path, responses = write(frame, tmp_path / "p.parquet"), write(answers, tmp_path / "r.csv")
    url = tmp_path / "s.zarr"
    command = [sys.executable, "-m", "tests.execution.long_tables", path, responses, url]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert BagStore.open(url).n_bags == 0
    store = ingest_tables(path, url, responses=responses, **COLUMNS, **RESPONSES)
    assert_holds(store, frame, range(200))
    assert_holds_responses(store, answers)


def test_a_worker_that_dies_changes_nothing(tmp_path, small, client):
    """The workers hold the shuffled rows on their disks; what one takes along is made again."""
    frame = table_of(range(120))
    files = scatter(frame, tmp_path, [".parquet"] * 4)
    victims = list(client.run(os.getpid).values())[:1]

    def kill(done: int, total: int) -> None:
        if victims and done > 0.7 * total:
            os.kill(victims.pop(), signal.SIGKILL)

    store = ingest_tables(files, tmp_path / "s.zarr", progress=kill, **COLUMNS)
    assert not victims
    assert_holds(store, frame, range(120))


@pytest.mark.parametrize("n_ranges", [1, 2, 3, 10, 97])
def test_neighbouring_ranges_are_spread_over_the_partitions(n_ranges):
    """Each range has its partition, and any few in a row are on both halves of the workers."""
    places = spread(n_ranges)
    assert sorted(places) == list(range(n_ranges))
    for i in range(n_ranges - 2):
        assert len({place * 2 // n_ranges for place in places[i : i + 3]}) == 2
