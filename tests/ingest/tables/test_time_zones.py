"""Times give the same numbers in every zone of the machine: those of UTC."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from textwrap import dedent

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bagbasis import DataError, ParameterError
from bagbasis.ingest import ingest_frame, ingest_tables
from tests.workers import two_workers

NIGHT = pd.Timestamp("2024-07-01T00:30:00+00:00")
DAYS = NIGHT.timestamp() / 86400
# All other tests run on a machine of UTC, or of its maker's zone; Thailand's years are 543 ahead.
MACHINE = {"TZ": "Pacific/Auckland", "LANG": "th_TH.UTF-8"}
TIMES = {  # expressions, and what they are of that night
    "recipe": ("epoch(CAST(ts AS TIMESTAMP)) / 86400", DAYS),
    "cast": ("epoch(ts::TIMESTAMP) / 86400", DAYS),
    "epoch": ("epoch(ts) / 86400", DAYS),
    "hour": ("hour(ts)", 0),
    "year": ("year(ts)", 2024),
    "day": ("epoch(CAST(ts AS DATE)) / 86400", 19905),
    "trunc": ("epoch(date_trunc('day', ts)) / 86400", 19905),
    "local": ("hour(ts AT TIME ZONE 'America/New_York')", 20),
    "made": ("epoch(make_timestamptz(2024, 7, 1, 0, 30, 0)) / 86400", DAYS),
    "read": ("epoch(CAST('2024-07-01 00:30' AS TIMESTAMPTZ)) / 86400", DAYS),
}
EXPRESSIONS = {name: text for name, (text, _) in TIMES.items()}
EXPECTED = [value for _, value in TIMES.values()]
PROGRAM = """
    import json, sys
    from bagbasis.ingest import ingest_tables

    if __name__ == "__main__":
        times, texts, url, expressions = sys.argv[1:]
        store = ingest_tables(
            times, url, id_column="p", coordinates=["ts", *[{k: v} for k, v in
            json.loads(expressions).items()]], targets={"month": "month(ts)", "text":
            "strftime(ts, '%H:%M')"}, target_types={"text": "class"}, dtype="float64",
        )
        print(json.dumps([store[0][0].tolist(), store.targets().tolist(),
                          store.meta.class_names, store.ids().tolist()]))
        for path, form in json.loads(texts).items():
            recipe = "epoch(CAST(ts AS TIMESTAMP)) / 86400"
            store = ingest_tables(path, url, id_column="p", coordinates=[{"day": recipe},
                {"hour": f"hour({form})"}], dtype="float64", overwrite=True)
            print(json.dumps(store[0].tolist()))
"""


def on_machine(program, *arguments):
    """What a program prints on a machine of another zone: JSON, line by line."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(program), *map(str, arguments)],
        env={**os.environ, **MACHINE},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def table_of_times(unit="us", zone="America/New_York"):
    times = pa.array([NIGHT.to_pydatetime()], pa.timestamp(unit, zone))
    return pa.table({"p": times, "ts": times})


@pytest.mark.long
def test_times_are_of_utc_wherever_they_are_read(tmp_path):
    """Columns, coordinates, targets and ids of times with a zone, the documented recipe first; and
    texts with an offset in CSV and Parquet, without one they are of UTC."""
    pq.write_table(table_of_times(), tmp_path / "t.parquet")
    texts = ["2024-07-01T02:30:00+02:00", "2024-06-30 20:30:00-04", "2024-07-01T00:30:00Z"]
    frame = pd.DataFrame({"p": 0, "ts": [*texts, "2024-07-01 00:30:00"]})
    frame.to_csv(tmp_path / "texts.csv", index=False)
    frame.to_parquet(tmp_path / "texts.parquet", index=False)
    forms = {"texts.csv": "ts", "texts.parquet": "CAST(ts AS TIMESTAMP)"}
    [row, [[month, text]], classes, ids], *tables = on_machine(
        PROGRAM,
        tmp_path / "t.parquet",
        json.dumps({str(tmp_path / name): form for name, form in forms.items()}),
        tmp_path / "s.zarr",
        json.dumps(EXPRESSIONS),
    )
    assert row == pytest.approx([DAYS, *EXPECTED], abs=1e-9)
    assert (month, text, classes) == (7, 0, {"text": ["00:30"]})
    assert ids == ["2024-07-01 00:30:00+00"]
    assert len(tables) == len(forms)
    for rows in tables:
        assert np.array(rows) == pytest.approx(np.array([[DAYS, 0.0]] * 4), abs=1e-9)


@pytest.mark.long
def test_a_declared_column_of_csv_has_its_offsets(tmp_path):
    """As types TIMESTAMP; a text that is no time is refused with its row."""
    (tmp_path / "t.csv").write_text("p,ts\n1,2024-07-01T02:30:00+02:00\n1,2024-07-01 00:30:00\n")
    options = {"id_column": "p", "coordinates": ["ts"], "dtype": "float64", "overwrite": True}
    read = {"types": {"ts": "TIMESTAMP"}}
    store = ingest_tables(tmp_path / "t.csv", tmp_path / "s.zarr", read=read, **options)
    assert store[0].ravel() == pytest.approx([DAYS, DAYS], abs=1e-9)
    (tmp_path / "t.csv").write_text("p,ts\n1,2024-07-01T02:30:00+2 hours\n")
    with pytest.raises(DataError, match=r"t.csv, row 0.*'ts' is '2024-07-01T02:30:00\+2 hours'"):
        ingest_tables(tmp_path / "t.csv", tmp_path / "s.zarr", read=read, **options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("unit", "zone"),
    [("s", "UTC"), ("ms", "Asia/Kolkata"), ("us", "+05:30"), ("ns", "Asia/Kolkata")],
)
def test_columns_of_times_with_a_zone_are_days(unit, zone, tmp_path):
    """Times of every unit and with every way to name a zone, also before 1970."""
    early = pd.Timestamp("1931-05-04T12:00:00+00:00")
    times = pa.array([NIGHT.to_pydatetime(), early.to_pydatetime()], pa.timestamp(unit, zone))
    store = ingest_frame(
        pa.table({"p": [1, 1], "ts": times}),
        tmp_path / "s.zarr",
        id_column="p",
        coordinates=["ts"],
        dtype="float64",
    )
    assert store[0].ravel() == pytest.approx([DAYS, early.timestamp() / 86400], abs=1e-9)


def test_a_row_that_is_refused_shows_its_time(tmp_path):
    """Python has no type for DuckDB's times with a zone."""
    table = table_of_times()
    table = table.append_column("x", pa.array([float("inf")]))
    coordinates = [{"day": "epoch(ts)"}, "x"]
    with pytest.raises(DataError, match="'x' is inf, not a finite"):
        ingest_frame(table, tmp_path / "s.zarr", id_column="p", coordinates=coordinates)
    with pytest.raises(DataError, match=r"00:30:00.00': coordinate 'ts' is missing"):
        ingest_frame(
            pa.table({"p": table["p"], "ts": pa.nulls(1, table["ts"].type)}),
            tmp_path / "s.zarr",
            id_column="p",
            coordinates=["ts"],
        )


@pytest.mark.parametrize("text", ["epoch(current_localtimestamp())", "epoch(age(ts))"])
def test_the_time_of_today_is_no_function_of_a_row(text, tmp_path):
    """Two passes, or two workers, would read two clocks."""
    with pytest.raises(ParameterError, match=r"deterministic function|counts to today"):
        ingest_frame(table_of_times(), tmp_path / "s", id_column="p", coordinates=[{"t": text}])


@pytest.mark.long
def test_workers_of_two_zones_read_one_table_by_one_clock(tmp_path):
    """Each reads some of its files."""

    def move(zone):
        before = os.environ.get("TZ", "")
        os.environ["TZ"] = zone
        time.tzset()
        return before

    for i in range(6):
        pq.write_table(table_of_times(), tmp_path / f"{i}.parquet")
    with two_workers() as client:
        workers = [*client.scheduler_info()["workers"]]
        before = [
            client.run(move, zone, workers=[worker])[worker]
            for worker, zone in zip(workers, ("UTC", "America/New_York"), strict=True)
        ]
        store = ingest_tables(
            tmp_path / "*.parquet",
            tmp_path / "s.zarr",
            id_column="p",
            coordinates=[{name: text} for name, text in EXPRESSIONS.items()],
            dtype="float64",
        )
        for worker, zone in zip(workers, before, strict=True):
            client.run(move, zone, workers=[worker])
    expected = np.array([EXPECTED] * 6, dtype=float)
    np.testing.assert_allclose(store[0], expected, rtol=0, atol=1e-9)
