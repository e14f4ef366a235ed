"""Coordinates and targets that are told in SQL, and what is no such thing."""

from __future__ import annotations

import re
from itertools import cycle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from bagbasis import DataError, ParameterError
from bagbasis.ingest import ingest_frame, ingest_tables
from bagbasis.ingest.tables import Database
from tests.ingest.formats.test_frames import long_frame

BANDS = ["g", "r", "it's"]
WAVES = [f"{wave}(2 * pi() * (hour % 24 / 24))" for wave in ("cos", "sin")]
WEEK = "cos(2 * pi() * (epoch(day) / 86400 % 7 / 7))"
SIZES = {"large": "n > 4", "logn": "ln(n)", "kind": "CASE WHEN n > 4 THEN 'large' ELSE 'small' END"}


def frame_of():
    frame = long_frame()
    rng, n = np.random.default_rng(0), len(frame)
    frame["hour"], frame["band"] = rng.uniform(0, 48, n), rng.choice(BANDS, n)
    frame["day"] = pd.Timestamp("2020-01-05 06:00") + pd.to_timedelta(rng.integers(0, 60, n), "D")
    frame["n"] = frame["size"].astype(int)
    frame.loc[3, "hour"] = frame.loc[4, "band"] = None
    return frame


@pytest.mark.long
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_expressions_are_what_pandas_makes(ending, tmp_path, client, ingest_cut):
    """Expressions of numbers, text, dates; named or not; a missing cell is a missing coordinate."""
    frame = frame_of()
    getattr(frame, f"to_{ending}")(path := tmp_path / f"f.{ending}", index=False)
    store = ingest_cut(
        path,
        tmp_path / "s.zarr",
        id_column="bag",
        coordinates=[
            *({wave: text} for wave, text in zip(("cos", "sin"), WAVES, strict=True)),
            "v",
            *({f"band = {label}": f"""band = '{label.replace("'", "''")}'"""} for label in BANDS),
            {"week": WEEK},
            'V * "hour"',  # names have no case, but where two differ in it alone
        ],
        targets=SIZES,
        missing="drop_point",
        dtype="float64",
    )
    saved = frame.drop([3, 4])
    wave = 2 * np.pi * saved["hour"] / 24
    week = 2 * np.pi * (saved["day"].dt.day_of_week + 4.25) / 7  # 1970-01-01 was a Thursday
    made = [np.cos(wave), np.sin(wave), saved["v"], *(saved["band"] == label for label in BANDS)]
    made = np.column_stack([*made, np.cos(week), saved["v"] * saved["hour"]]).astype(float)
    groups = pd.DataFrame(made).groupby(saved["bag"].to_numpy())
    assert store.ids().tolist() == list(groups.groups)
    for bag, (_, rows) in zip(store.read(), groups, strict=True):
        np.testing.assert_allclose(bag, rows, atol=1e-12)
    n = saved.groupby("bag")["n"].first().to_numpy()
    expected = np.column_stack([n > 4, np.log(n), np.where(n > 4, 0, 1)])
    np.testing.assert_allclose(store.targets(), expected, rtol=1e-14)
    assert store.meta.class_names == {"kind": ["large", "small"]}
    names = ["cos", "sin", "v", *(f"band = {label}" for label in BANDS), "week", 'V * "hour"']
    assert store.meta.source["coordinates"] == names


@pytest.mark.long
def test_a_mapping_names_all(tmp_path):
    """Also plain columns; and a column is what its name says, whatever SQL would make of it."""
    frame = pd.DataFrame({"b": [1, 1], "ln(x)": [3.0, 4.0], "x": [1.0, 2.0]})
    arguments = {"id_column": "b", "coordinates": {"a": "ln(x)", "twice": "2 * x", "x": "x"}}
    store = ingest_frame(frame, tmp_path / "s.zarr", **arguments)
    assert store.read().points.tolist() == [[3.0, 2.0, 1.0], [4.0, 4.0, 2.0]]
    assert store.meta.source["coordinates"] == ["a", "twice", "x"]
    with pytest.raises(ParameterError, match=r"coordinates are \['a'\]; .* has \['a', 'twice'"):
        ingest_frame(frame, store.url, mode="append", id_column="b", coordinates={"a": "x"})


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("us"), pa.duration("ms"), pa.time64("us")], ids=str
)
def test_times_as_targets_are_refused_with_an_expression_that_works(kind, tmp_path):
    """Days for dates, seconds for durations and times of a day."""
    days = pa.array([1, 2], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    table = pa.table({"b": ["p", "q"], "x": [1.0, 2.0], "t": days})
    arguments = {"id_column": "b", "coordinates": ["x"]}
    with pytest.raises(DataError, match="neither numbers nor text; write an expr") as refused:
        ingest_frame(table, tmp_path / "s.zarr", targets=["t"], **arguments)
    [how] = re.findall(r"targets=\{'t': '(.*)'\}", str(refused.value))
    store = ingest_frame(table, tmp_path / "s.zarr", targets={"t": how}, **arguments)
    first, second = store.targets()[:, 0].tolist()
    assert second == pytest.approx(2 * first)
    assert first > 0


@pytest.mark.long
def test_expressions_of_items_of_lists(tmp_path):
    """An item of each list, and a column of the bag; lists are refused as targets."""
    table = pa.table({"b": ["p", "q"], "x": [[1.0, 2.0], [3.0]], "m": [1.0, 10.0]})
    arguments = {
        "id_column": "b",
        "coordinates": ["x", {"less": "x - m"}],
        "targets": {"t": "m * 2"},
    }
    store = ingest_frame(table, tmp_path / "s.zarr", **arguments)
    assert store.read().points.tolist() == [[1.0, 0.0], [2.0, 1.0], [3.0, -7.0]]
    assert store.targets()[:, 0].tolist() == [2.0, 20.0]
    with pytest.raises(DataError, match="target column 'x' is list, neither numbers nor text"):
        ingest_frame(table, tmp_path / "t.zarr", **arguments | {"targets": ["len(x)"]})


@pytest.mark.long
def test_the_types_of_csv_are_those_of_its_first_rows(tmp_path):
    """Numbers, days, moments, times, truth values, text; or those that are given."""
    rows = ["b,n,d,m,t,y,s", "1,1.5,2020-01-02,2020-01-02 12:00,06:00,true,a1", "1,,,,,,"]
    (path := tmp_path / "f.csv").write_text("\n".join(rows))
    made = ["n + 1", "d - DATE '2020-01-01'", "hour(m)", "epoch(t)", "y AND true", "length(s)"]
    arguments = {"id_column": "b", "missing": "drop_point", "dtype": "float64"}
    store = ingest_tables(path, tmp_path / "s.zarr", coordinates=made, **arguments)
    assert store.read().points.tolist() == [[2.5, 1.0, 12.0, 21600.0, 1.0, 2.0]]
    path.write_text("b,n\n1,7\n1,007\n")
    arguments |= {"coordinates": ["length(n)", "n"], "read": {"types": {"n": "VARCHAR"}}}
    store = ingest_tables(path, tmp_path / "t.zarr", **arguments)
    assert store.read().points.tolist() == [[1.0, 7.0], [3.0, 7.0]]


KEYS = ("coordinates", "targets", "response_coordinates")  # each takes every third of these
REFUSED = {
    "hour; DROP TABLE x": "is not one expression: write no ';'",
    "hour; SELECT 1": "is not one expression: write no ';'",
    "hour, v": "is not one expression",
    "hour FROM read_csv('/etc/passwd')": "is not one expression",
    "hour WHERE false": "is not one expression",
    "1 UNION SELECT 2": "is not one expression",
    "(SELECT max(a) FROM read_csv('/etc/passwd') AS t(a))": "has a subquery",
    "hour IN (SELECT 1)": "has a subquery",
    "row_number() OVER ()": "has a window",
    "*": "has a star",
    "$1": "has a parameter",
    "list_filter([v], x -> true)": "has a lambda",
    "sum(hour)": "calls 'sum', which is not a deterministic function of one row",
    "random()": "calls 'random'",
    "epoch(now())": "calls 'now'",
    "current_setting('threads')": "calls 'current_setting'",
    "read_text('/etc/passwd')": "calls 'read_text'",
    "getenv('HOME')": "calls 'getenv'",
    "nextval('s')": "calls 'nextval'",
    "unnest([1, 2])": "calls 'unnest'",
    "1 +": r"is neither a column of .*f\.csv nor an expression \(syntax error",
    "hour v": "is not one expression",
    "": "'' names nothing; give a column or an expression",
    "cos(band)": r"cannot be computed of the columns of .*f\.csv .*cos\(VARCHAR\)",
}


@pytest.mark.long
@pytest.mark.parametrize(("text", "key"), [*zip(REFUSED, cycle(KEYS), strict=False)])
def test_what_is_no_expression_of_a_row(key, text, tmp_path):
    """The key and the text are named; nothing of it is run, and nothing is left."""
    frame_of().to_csv(path := tmp_path / "f.csv", index=False)
    arguments = {"id_column": "bag", "coordinates": ["v"], key: [text]}
    if key == "response_coordinates":
        arguments["responses"] = path
    with pytest.raises(ParameterError, match=REFUSED[text]) as refused:
        ingest_tables(path, tmp_path / "s.zarr", **arguments)
    assert str(refused.value).startswith(f"{key}: {text!r}")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "s.zarr").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cos(bnd)", r"no column 'bnd' \(did you mean 'band'\?\) \(in coordinates: 'cos\(bnd\)'\)"),
        (
            "CAST(band AS DOUBLE)",
            r"row 1 \(line 3\): bag 'b': .* cannot be computed .*'r' to DOUBLE",
        ),
        (
            "1 / (hour - 2)",
            r"row 1 \(line 3\): bag 'b': coordinate .* is inf, not a finite float32",
        ),
        (
            "CASE band WHEN '1' THEN hour END",
            r"row 1 \(line 3\): bag 'b': coordinate .* is missing",
        ),
        (
            "2 * late",
            r"row 20480 \(line 20482\): bag 'b': .*: late is 'x', not DOUBLE as in the first rows",
        ),
    ],
)
def test_the_first_row_that_can_not_be_computed(text, message, tmp_path, ingest_cut, client):
    """File, row, bag, coordinate and why; whatever the policy for missing values."""
    rows = ["a,1,1,0", "b,2,r,0", "c,3,1,0"]
    if "late" in text:  # in a row that no type was told from
        rows += ["b,3,1,1"] * 20_477 + ["b,3,1,x"]
    (path := tmp_path / "f.csv").write_text("\n".join(["bag,hour,band,late", *rows]))
    arguments = {"id_column": "bag", "coordinates": [text], "piece_bytes": 2**16}
    with pytest.raises(DataError, match=message):
        ingest_cut(path, tmp_path / "s.zarr", **arguments)
    if "missing" not in message:
        with pytest.raises(DataError, match=message):
            ingest_cut(path, tmp_path / "s.zarr", missing="drop_point", **arguments)


@pytest.mark.long
def test_targets_that_can_not_be_computed_or_are_no_numbers(tmp_path):
    """As those of columns; an expression of a missing cell is not labelled."""
    frame = pd.DataFrame({"bag": [1, 2, 3], "x": 1.0, "k": ["1", None, "three"]})

    def ingest(text, **options):
        arguments = {"id_column": "bag", "coordinates": ["x"], "targets": {"t": text}, **options}
        return ingest_frame(frame, tmp_path / "s.zarr", **arguments)

    with pytest.raises(DataError, match=r"row 2: bag 3: target 't' cannot be computed .*'three'"):
        ingest("CAST(k AS DOUBLE)")
    with pytest.raises(DataError, match="row 2: target 't' is 'three', not a number"):
        ingest("k", target_types={"t": "number"})
    with pytest.raises(DataError, match="row 0: bag 1: target 't' is infinite"):
        ingest("x / 0")
    store = ingest("TRY_CAST(k AS DOUBLE)")
    np.testing.assert_array_equal(store.targets()[:, 0], [1.0, np.nan, np.nan])


def test_nothing_but_the_tables_can_be_read(tmp_path):
    """Even by a query that no expression can ask."""
    (tmp_path / "other.csv").write_text("a\n1\n")
    with Database(2**26) as database:
        for query in (
            f"FROM read_csv('{tmp_path}/other.csv')",
            f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
            f"ATTACH '{tmp_path}/new.db'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
        ):
            assert database.complaint(f"{query} -- table:///of") != ""
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 1_000), ("ns", 10**9)])
def test_durations_are_made_seconds_as_the_error_advises(unit, per_second, tmp_path):
    """Their whole numbers alone would depend on the unit of the file."""
    spans = pa.array([1 * per_second, 90 * per_second], pa.duration(unit))
    parquet.write_table(pa.table({"bag": [1, 2], "x": spans}), tmp_path / "t.parquet")
    arguments = {"id_column": "bag", "coordinates": ["x"]}
    with pytest.raises(DataError, match=r"'x' is duration.*coordinates=\{'x': '(.*)'\}") as error:
        ingest_tables(tmp_path / "t.parquet", tmp_path / "s.zarr", **arguments)
    advised = str(error.value).rpartition("{'x': '")[2].removesuffix("'}")
    arguments["coordinates"] = {"x": advised}
    store = ingest_tables(tmp_path / "t.parquet", tmp_path / "s.zarr", **arguments)
    assert store.read().points.ravel().tolist() == [1, 90]
