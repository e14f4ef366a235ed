"""Table files as DuckDB reads them, whole or in pieces: every row is in exactly one piece."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from itertools import product

import fsspec
import pandas as pd
import pyarrow.parquet as pq
import pytest

from bagbasis import DataError, ExhaustedError, StoreError
from bagbasis.ingest import ingest_tables
from bagbasis.ingest.tables import Database
from bagbasis.ingest.tables.engines import range_starts
from bagbasis.ingest.tables.files import check_pages, open_table
from bagbasis.ingest.tables.scans import Coding, Scan, scans_of
from bagbasis.ingest.tables.surveys import ColumnKind, resolve_kinds, sample_ids, survey_scan
from bagbasis.ingest.tables.values import Columns, values_of

X = values_of("coordinates", ["x"])
COLUMNS = Columns(("id",), X, values_of("targets", ["c"]))
ROWS = [
    ("1", 1.0, "short"),
    ("22", -2.5, None),
    ("a,b", 1e-300, "a rather long label, with a comma"),
    ('say "hi"', 4.0, "NA"),
    ("ü", None, "e"),
    (None, 6.0, "f"),
    ("7", 7.25, "g"),
]
TEXT = (
    "x,unused,id,c\n"
    "1,,1,short\n"
    "-2.5,u,22,NA\n"
    '1e-300,u,"a,b","a rather long label, with a comma"\n'
    '4,u,"say ""hi""","NA"\n'
    "nan,u,ü,e\n"
    "6,u,,f\n"
    "7.25,u,7,g"
)


def rows_of(path, piece_bytes):
    """The rows of all pieces, and the number of pieces."""
    _, [file] = open_table(path, COLUMNS)
    pieces = file.cut(piece_bytes, 3)
    rows = []
    with Database(2**28) as database:
        for piece in pieces:
            scan = Scan(COLUMNS, (piece,))
            query = f"SELECT id, x0, y0 FROM ({scan.values([0])}) ORDER BY row"
            rows += map(tuple, map(dict.values, database.fetch(query)))
    return rows, len(pieces)


@pytest.mark.long
@pytest.mark.parametrize("size", [3, 10, 13, 14, 15, 40, 10**6])
@pytest.mark.parametrize(
    "text",
    [TEXT, TEXT + "\n", TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT, TEXT + "\n\n"],
    ids=["no last line break", "last line break", "two-byte line breaks", "BOM", "empty line"],
)
def test_a_csv_file_gives_the_same_rows_however_it_is_cut(text, size, tmp_path):
    """Cuts within lines, at their ends and within the header; quotes, nulls and any text."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    rows, n_pieces = rows_of(path, size)
    assert rows == ROWS
    assert n_pieces == -(-path.stat().st_size // size)


@pytest.mark.parametrize(("size", "expected"), [(1, 4), (50, 4), (10**6, 1)])
def test_a_parquet_file_gives_the_same_rows_however_it_is_cut(size, expected, tmp_path):
    """Pieces are whole row groups; the number of rows of each is known."""
    frame = pd.DataFrame(ROWS, columns=["id", "x", "c"])
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=2)
    rows, n_pieces = rows_of(tmp_path / "t.parquet", size)
    assert rows == ROWS
    assert n_pieces == expected
    _, [file] = open_table(tmp_path / "t.parquet", COLUMNS)
    assert sum(piece.n_rows for piece in file.cut(size, 3)) == 7


def test_rows_are_numbered_through_all_files(tmp_path):
    """Files of another layout, with other columns or with types of their own, are other scans."""
    frames = [pd.DataFrame({"id": ["a"] * n, "x": range(n), "c": "k"}) for n in (3, 1, 4, 2)]
    frames[1].to_csv(tmp_path / "1.csv", index=False)
    frames[2].astype({"x": "float32"}).to_parquet(tmp_path / "2.parquet")
    for i in (0, 3):
        frames[i].to_parquet(tmp_path / f"{i}.parquet")
    _, files = open_table(
        [
            tmp_path / f"{i}.{kind}"
            for i, kind in enumerate(["parquet", "csv", "parquet", "parquet"])
        ],
        COLUMNS,
    )
    scans = scans_of(COLUMNS, files)
    assert [len(scan.files) for scan in scans] == [1, 1, 1, 1]
    starts, coding = [[0], [3], [4], [8]], Coding("text", {"c": ["k"]})
    query = " UNION ALL ".join(s.coded(at, coding) for s, at in zip(scans, starts, strict=True))
    with Database(2**28) as database:
        rows = [tuple(row.values()) for row in database.fetch(f"{query} ORDER BY row")]
    expected = [*range(3), 0, *range(4), *range(2)]
    assert rows == [("a", row, float(x), 0.0) for row, x in enumerate(expected)]


@pytest.mark.long
def test_csv_files_of_a_folder_are_told(tmp_path, caplog):
    """A folder is read without them: they were left out without a word."""
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "a.CSV.gz").write_bytes(b"")
    call = {"id_column": "id", "coordinates": ["x"]}
    with pytest.raises(DataError, match=r"1 CSV files of the folder are not read; .*\*\.CSV\.gz"):
        ingest_tables(tmp_path, tmp_path / "s.zarr", **call)
    pd.DataFrame({"id": [1, 2], "x": [1.0, 2.0]}).to_parquet(tmp_path / "part" / "b.parquet")
    store = ingest_tables(tmp_path, tmp_path / "s.zarr", **call)
    assert len(store) == 2
    assert "1 CSV files of the folder are not read, such as" in caplog.text


@pytest.mark.parametrize(
    ("places", "n_rows", "is_told"),
    [
        (("a.csv", "b.csv"), 9, True),
        (("a.parquet", "b.parquet"), 9, True),
        (("day=1/a.csv", "day=2/a.csv"), 9, False),
        (("a.csv", "b.csv"), 0, False),
    ],
)
def test_copies_of_a_file_are_told(places, n_rows, is_told, tmp_path, caplog):
    """Their points count twice; folders whose names are values, and empty tables, may be alike."""
    frame = pd.DataFrame({"id": range(n_rows), "x": 1.5, "c": "k"})
    for place in places:
        (tmp_path / place).parent.mkdir(exist_ok=True)
        getattr(frame, "to_csv" if place.endswith("csv") else "to_parquet")(
            tmp_path / place, index=False
        )
    open_table([tmp_path / place for place in places], COLUMNS)
    assert (f"{places[1]} has the bytes of " in caplog.text) == is_told


def test_tables_on_another_filesystem():
    """Globs and files by URL, with the URL in errors."""
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/tables/b.csv", TEXT.encode())
    fs.pipe_file("/tables/a.csv", TEXT.encode() + b",too,long")
    try:
        _, files = open_table("memory://tables/*.csv", COLUMNS)
        assert [file.url.rsplit("/", 1)[1] for file in files] == ["a.csv", "b.csv"]
        with Database(2**28) as database:
            assert len(database.fetch(Scan(COLUMNS, files[1:]).values([0]))) == 7
            with pytest.raises(DataError, match=r"memory://.*a\.csv: cannot .*Expected 4 columns"):
                database.fetch(Scan(COLUMNS, files[:1]).values([0]))
        with pytest.raises(DataError, match=r"memory://.*a\.csv: no column 'y'"):
            open_table("memory://tables/a.csv", Columns(("y",)))
    finally:
        fs.rm("/tables", recursive=True)


def test_kinds_of_several_files_are_resolved():
    """What CSV leaves open follows the other files; numbers and text do not mix."""
    number, text, either = (
        ColumnKind(kind, f"{kind}.file") for kind in ("number", "text", "either")
    )
    assert resolve_kinds("it", [either, either]) == "number"
    assert resolve_kinds("it", [either, number]) == "number"
    assert resolve_kinds("it", [text, either]) == "text"
    with pytest.raises(DataError, match=r"it holds numbers in number\.file and text in text\.file"):
        resolve_kinds("it", [either, text, number])


def test_times_in_one_file_and_numbers_in_another(tmp_path):
    """Days since 1970 among other numbers would be one coordinate of two meanings."""
    days = pd.DataFrame({"id": [1], "x": pd.to_datetime(["2001-09-09"])})
    days.to_parquet(tmp_path / "a.parquet")
    call = {"id_column": "id", "coordinates": ["x"], "mode": "overwrite"}
    dates = days.assign(id=2, x=[pd.Timestamp("2001-09-10").date()])
    dates.to_parquet(tmp_path / "b.parquet")
    store = ingest_tables(tmp_path, tmp_path / "s.zarr", **call)
    assert store.read().points.ravel().tolist() == [11574, 11575]
    days.assign(x=[1.5]).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"'x' holds times in .*a.parquet and numbers in .*b.parq"):
        ingest_tables(tmp_path, tmp_path / "t.zarr", **call)


def test_ranges_of_ids_hold_about_the_same_number_of_rows(tmp_path):
    """Whatever the order of the rows and the sizes of the pieces; a huge bag has its own range."""
    ids = [*range(4000), *[10**6] * 4000, *range(4000, 8000)]
    frame, columns = pd.DataFrame({"id": ids, "x": 0.0}), Columns(("id",), X)
    surveys = []
    for name, part in (("a", frame[:1000]), ("b", frame[1000:9000]), ("c", frame[9000:])):
        part.to_parquet(tmp_path / f"{name}.parquet")
        scan = Scan(*open_table(tmp_path / f"{name}.parquet", columns))
        with Database(2**28) as database:
            [survey] = survey_scan(scan, database)
            surveys.append((survey.n_rows, sample_ids(scan, 512, database)))
    starts = range_starts(surveys, 6, "number")
    assert starts == sorted(set(starts))
    sizes = pd.Series(pd.cut(ids, [-1, *[s - 1 for s in starts], 10**7])).value_counts(sort=False)
    assert starts[-1] == 10**6
    assert sizes.tolist() == pytest.approx([2000, 2000, 2000, 2000, 4000], rel=0.25)
    assert range_starts(surveys, 1, "number") == []


def test_sorting_without_room_is_one_clear_error(tmp_path):
    """Neither memory nor disk suffice: the folder and what to do are named."""
    with Database(2**24, str(tmp_path / "spill")) as database:
        database.fetch("SET max_temp_directory_size = '1MB'")
        with pytest.raises(StoreError, match="set TMPDIR") as caught:
            for _ in database.stream(
                "SELECT random() AS a, i FROM range(10000000) t(i) ORDER BY a"
            ):
                pass
    assert "\n" not in str(caught.value)


def test_no_memory_says_nothing_of_a_file():
    """DuckDB got none from the system; of a file that cannot be read there is no word."""
    with (
        pytest.raises(ExhaustedError, match=r"^tables: this process gets no more memory"),
        Database(2**24) as database,
    ):
        database.fetch("SELECT error('Failed to allocate block of 2 bytes (bad allocation)')")


def test_the_function_has_a_name():
    """`ingest_tables`, made from a class, is shown and pickled like any other function."""
    assert ingest_tables.__name__ == "ingest_tables"
    assert pickle.loads(pickle.dumps(ingest_tables)) is ingest_tables


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "data_page_version": "2.0"}])
def test_pages_that_are_unlike_their_checksums_are_found(options, tmp_path):
    """A flipped bit of any column and row group is an error in its piece, and in no other."""
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame(ROWS, columns=["id", "x", "c"])
    frame.to_parquet(path, row_group_size=2, compression=None, **options)
    assert not open_table(path, COLUMNS)[1][0].has_checksums
    frame.to_parquet(path, row_group_size=2, compression=None, write_page_checksum=True, **options)
    whole, metadata = path.read_bytes(), pq.read_metadata(path)
    for group, column in product(range(4), range(3)):
        chunk = metadata.row_group(group).column(column)
        end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
        path.write_bytes(whole[: end - 1] + bytes([whole[end - 1] ^ 1]) + whole[end:])
        _, [file] = open_table(path, COLUMNS)
        for i, piece in enumerate(file.cut(1, 3)):
            refused = pytest.raises(DataError, match=f"{path}: cannot be read .*checksum")
            with refused if i == group else nullcontext():
                check_pages(piece, COLUMNS)
        with Database(2**28) as database, pytest.raises(DataError, match="checksum"):
            survey_scan(Scan(COLUMNS, (file,)), database)
