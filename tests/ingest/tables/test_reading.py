"""CSV as other programs write it: encodings, quotes, comments, no header, thousands."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from bagbasis import DataError, ParameterError
from bagbasis.ingest import ingest_tables
from bagbasis.ingest.tables.reading import ReadOptions

RNG = np.random.default_rng(0)
BAGS = [("köln", RNG.normal(size=300)), ("x;'y'", RNG.normal(size=200)), ("#é", RNG.normal(size=9))]
NAMES = [name for name, _ in BAGS]


def rows(quote="", escape=None, delimiter=";"):
    """Rows of a bag's name and a number; the name in quotes, where there is a sign for them."""

    def text(name):
        inside = name if escape is None else name.replace(quote, escape + quote)
        return f"{quote}{inside}{quote}"

    return [f"{text(name)}{delimiter}{x!r}" for name, xs in BAGS for x in xs.tolist()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("lines", "encoding", "read"),
    [
        (["bag|x", *rows(delimiter="|")], "latin-1", {"encoding": "latin-1"}),
        (["bag|x", *rows(delimiter="|")], "utf-16", {"encoding": "utf-16"}),
        (["bag;x", *rows("'", "'")], "utf-8", {"quote": "'", "escape": "'"}),
        (["bag;x", *rows("'", "\\")], "utf-8", {"quote": "'", "escape": "\\"}),
        (["bag:x", *rows(delimiter=":")], "utf-8", {"delim": ":", "quote": ""}),
        (["made by;'me", "", "bag|x", *rows(delimiter="|")], "utf-8", {"skip": 2}),
        (
            ['% "units', "bag|x", "% m", *rows(delimiter="|"), "%"],
            "utf-8",
            {"comment": "%"},
        ),
        (rows('"', '"'), "utf-8-sig", {"names": ["bag", "x"]}),
        (["no", *rows(delimiter="|")], "utf-16", {"names": ["bag", "x"], "skip": 1,
                                                 "encoding": "utf-16"}),
    ],
)  # fmt: skip
def test_what_is_written_is_read(lines, encoding, read, tmp_path, client, ingest_cut):
    """By this process and, cut in small pieces, by workers: the same bytes."""
    path = tmp_path / "f.csv"
    path.write_bytes("\n".join([*lines, ""]).encode(encoding))
    arguments = {"id_column": "bag", "coordinates": ["x"], "dtype": "float64", "read": read}
    store = ingest_cut(path, tmp_path / "s.zarr", **arguments)
    assert store.ids().tolist() == sorted(NAMES)
    for name, bag in zip(store.ids(), store.read(), strict=True):
        np.testing.assert_array_equal(bag[:, 0], dict(BAGS)[name])


@pytest.mark.long
@pytest.mark.parametrize(
    ("thousands", "decimal", "cells"),
    [
        (",", ".", ['"1,234.5"', '"-12,345,678"', "17.25", '" 1,000"']),
        (".", ",", ["1.234,5", "-12.345.678", "17,25", "1.000,"]),
        (" ", ".", ["1 234.5", "-12 345 678", "17.25", "1 000"]),
        ("'", ".", ["1'234.5", "-12'345'678", "17.25", "+1'000"]),
    ],
)
def test_thousands(thousands, decimal, cells, tmp_path):
    """In coordinates and targets; what is no group of three digits is refused, and named."""
    path = tmp_path / "f.csv"
    arguments = {"id_column": "bag", "coordinates": ["x"], "targets": ["y"], "dtype": "float64"}
    arguments["read"] = {"thousands": thousands, "decimal_separator": decimal}

    def ingest(cells, name):
        path.write_text("bag;x;y\n" + "".join(f"{i};{x};{x}\n" for i, x in enumerate(cells)))
        return ingest_tables(path, tmp_path / name, **arguments)

    store = ingest(cells, "s.zarr")
    expected = [1234.5, -12345678, 17.25, 1000]
    np.testing.assert_array_equal(store.read().points[:, 0], expected)
    np.testing.assert_array_equal(store.targets()[:, 0], expected)
    for bad in (f"1{thousands}5", f"12{thousands}34{decimal}5", f"1234{thousands}567"):
        with pytest.raises(
            DataError, match=r"row 1 \(line 3\): bag '1': coordinate 'x' is .*, not a number"
        ):
            ingest(["1", bad, "2", "3"], "bad.zarr")


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ({"encoding": "cp1252"}, "encoding of read is 'cp1252'; expected one of .*'latin-1'"),
        ({"encodig": "utf-8"}, r"read has 'encodig' \(did you mean 'encoding'\?\)"),
        ({"quote": "''"}, "quote of read is \"''\"; expected one sign"),
        ({"quote": ";", "delim": ";"}, "two are the same"),
        ({"names": []}, "names of read are empty"),
        ({"skip": -1}, "skip of read is -1"),
        ({"skip": "2"}, "skip of read is '2'; expected an integer"),
        ({"types": {"x": "REAL"}}, "types of read, of 'x' is 'REAL'; expected one of"),
        ({"decimal_separator": ";"}, "decimal_separator of read is ';'; expected one of"),
        ({"thousands": "."}, r"thousands and decimal_separator of read: both '\.'"),
        ({"delim": "é"}, "delim of read is 'é'"),
        ({"comment": "#", "skip": 1}, "comment and skip; remove one"),
    ],
)
def test_what_is_no_option(read, message, tmp_path):
    """The key is named before a file is looked at."""
    with pytest.raises(ParameterError, match=message):
        ingest_tables(
            tmp_path / "no.csv", tmp_path / "s.zarr", id_column="a", coordinates=["x"], read=read
        )


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        (b"a,1,2\n", {"names": ["bag", "x"]}, "2 columns are named, its first row has 3: ..a'"),
        ("bag,x\nä,1\n".encode("latin-1"), None, "cannot be read .*read: .encoding: latin-1"),
        (
            "bag,x\nä,1\n".encode("utf-16"),
            None,
            "cannot be read .*read: .encoding: latin-1., or utf-16",
        ),
        ("%\nbag,x\na,1\n".encode("utf-8-sig"), {"comment": "%"}, "mark and a comment.*skip"),
        (b'"no\nbag,x\n"a",1\n', {"skip": 1}, "has a quote without an end"),
    ],
)
def test_files_that_are_written_otherwise(text, read, message, tmp_path):
    """Names the file, and what to give."""
    path = tmp_path / "f.csv"
    path.write_bytes(text)
    with pytest.raises(DataError, match=f"f.csv: .*{message}"):
        ingest_tables(path, tmp_path / "s.zarr", id_column="bag", coordinates=["x"], read=read)


def test_header_is_the_same_row_for_duckdb_and_for_names():
    """Comments before it are skipped, an escape is none of the name."""
    options = ReadOptions(escape="\\", comment="#")
    sample = b'# two\n"a\\"b",x\n1,2\n'
    assert options.read_header(sample, ['a"b']) == (",", ['a"b', "x"])


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("skipped", [0, 2])
def test_a_header_that_is_longer_than_the_sample(tmp_path, ending, skipped):
    """All names are read, however long they are together; the last column is the last."""
    names = ["id", *(f"{'gene' * 500}{i}" for i in range(70))]
    rows = [[bag, *range(100 * bag, 100 * bag + 70)] for bag in (0, 0, 1)]
    lines = ["# notes"] * skipped + [",".join(map(str, row)) for row in [names, *rows]]
    path = tmp_path / f"wide{ending}"
    pack = gzip.compress if ending.endswith("gz") else bytes
    path.write_bytes(pack("\n".join([*lines, ""]).encode()))
    store = ingest_tables(
        path,
        tmp_path / "s.zarr",
        id_column="id",
        coordinates=[names[-1]],
        read={"skip": skipped},
    )
    np.testing.assert_array_equal(store.read().points, [[69], [69], [169]])
