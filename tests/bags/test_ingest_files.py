"""Table files cut into pieces: every row is in exactly one of them, wherever the cuts fall."""

from __future__ import annotations

import fsspec
import pandas as pd
import pyarrow as pa
import pytest

from bagbasis.errors import DataError
from bagbasis.ingest import table_files
from bagbasis.ingest.columns import Kind, id_kind, plain, resolve
from bagbasis.ingest.survey import range_starts, survey_piece
from bagbasis.ingest.table_files import Columns, open_table, read_piece
from bagbasis.ingest.table_rows import Decoder, group, label

COLUMNS = Columns("id", ("x",), ("c",))
ROWS = {
    "id": ["1", "22", "a,b", 'say "hi"', "ü", None, "7"],
    "x": [1.0, -2.5, 1e-300, 4.0, None, 6.0, 7.25],
    "c": ["short", None, "a rather long label, with a comma", "NA", "e", "f", "g"],
}
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


def rows_of(path):
    table = open_table(path, COLUMNS)
    parts = [read_piece(piece, COLUMNS) for piece in table.pieces]
    return pa.concat_tables(parts).to_pydict(), len(table.pieces)


@pytest.mark.parametrize("size", [1, 10, 13, 14, 15, 40, 10**6])
@pytest.mark.parametrize(
    "text",
    [TEXT, TEXT + "\n", TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT, TEXT + "\n\n"],
    ids=["no last line break", "last line break", "two-byte line breaks", "BOM", "empty line"],
)
def test_a_csv_file_gives_the_same_rows_however_it_is_cut(text, size, tmp_path, monkeypatch):
    """Cuts within lines, at their ends and within the header; quotes, nulls and any text."""
    monkeypatch.setattr(table_files, "CSV_PIECE_BYTES", size)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    rows, n_pieces = rows_of(path)
    assert rows == {name: ROWS[name] for name in COLUMNS.names}
    assert n_pieces == -(-path.stat().st_size // size)


@pytest.mark.parametrize("size", [1, 50, 10**6])
def test_a_parquet_file_gives_the_same_rows_however_it_is_cut(size, tmp_path, monkeypatch):
    """Pieces are whole row groups; the number of rows of each is known."""
    monkeypatch.setattr(table_files, "PIECE_BYTES", size)
    pd.DataFrame(ROWS).to_parquet(tmp_path / "t.parquet", row_group_size=2)
    rows, n_pieces = rows_of(tmp_path / "t.parquet")
    assert rows == {name: ROWS[name] for name in COLUMNS.names}
    assert n_pieces == {1: 4, 50: 4, 10**6: 1}[size]
    table = open_table(tmp_path / "t.parquet", COLUMNS)
    assert sum(piece.n_rows for piece in table.pieces) == 7


def test_tables_on_another_filesystem(tmp_path):
    """Globs and files by URL, with the URL in errors."""
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/tables/b.csv", TEXT.encode())
    fs.pipe_file("/tables/a.csv", TEXT.encode())
    try:
        table = open_table("memory://tables/*.csv", COLUMNS)
        assert [file.rsplit("/", 1)[1] for file in table.files] == ["a.csv", "b.csv"]
        assert read_piece(table.pieces[1], COLUMNS)["x"].to_pylist() == ROWS["x"]
        with pytest.raises(DataError, match=r"memory://.*a\.csv: no column 'y'"):
            open_table("memory://tables/a.csv", Columns("y"))
    finally:
        fs.rm("/tables", recursive=True)


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (["1", "-3", "0", None], "either"),
        (["9223372036854775807", "-9223372036854775808"], "either"),
        (["1", "007"], "text"),
        (["1", "+7"], "text"),
        (["-0"], "text"),
        (["1.0"], "text"),
        (["1e3"], "text"),
        ([" 1"], "text"),
        (["9223372036854775808"], "text"),
        ([], "either"),
    ],
)
def test_ids_in_csv_are_integers_only_as_python_writes_them(ids, kind):
    """So that two ids that differ in the file never become one."""
    assert id_kind(pa.array(ids, pa.large_string()), "id", "t.csv").kind == kind


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(["a", "b"]),
        pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"], pa.string_view()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
    ],
    ids=lambda ids: str(ids.type)[:12],
)
def test_every_type_of_text_is_text(ids):
    """As pandas, Polars and others write it, dictionaries (categories) among them."""
    array = plain(pa.chunked_array([ids[:1], ids[1:]]))
    assert array.to_pylist() == ids.to_pylist()
    assert id_kind(array, "id", "t.parquet").kind == "text"


def test_kinds_of_several_files_are_resolved():
    """What CSV leaves open follows the other files; numbers and text do not mix."""
    number, text, either = (Kind(kind, f"{kind}.file") for kind in ("number", "text", "either"))
    assert resolve("it", [either, either]) == "number"
    assert resolve("it", [either, number]) == "number"
    assert resolve("it", [text, either]) == "text"
    with pytest.raises(DataError, match=r"it holds numbers in number\.file and text in text\.file"):
        resolve("it", [either, text, number])


def test_ranges_of_ids_hold_about_the_same_number_of_rows(tmp_path):
    """Whatever the order of the rows and the sizes of the pieces; a huge bag has its own range."""
    ids = [*range(4000), *[10**6] * 4000, *range(4000, 8000)]
    frame = pd.DataFrame({"id": ids, "x": 0.0})
    columns = Columns("id", ("x",))
    surveys = []
    for name, part in (("a", frame[:1000]), ("b", frame[1000:9000]), ("c", frame[9000:])):
        part.to_parquet(tmp_path / f"{name}.parquet")
        [piece] = open_table(tmp_path / f"{name}.parquet", columns).pieces
        surveys.append(survey_piece(piece, columns, "float32"))
    starts = range_starts(surveys, 6, "number")
    assert starts == sorted(set(starts))
    sizes = pd.Series(pd.cut(ids, [-1, *[s - 1 for s in starts], 10**7])).value_counts(sort=False)
    assert starts[-1] == 10**6
    assert sizes.tolist() == pytest.approx([2000, 2000, 2000, 2000, 4000], rel=0.25)
    assert range_starts(surveys, 1, "number") == []


def test_rows_become_bags_whatever_their_order(tmp_path):
    """Sorted by id and then by file and row; the target table's rows find their bags."""
    decoder = Decoder(Columns("id", ("x",)), "text", "float64", {}, (), (0,))
    frame = decoder.empty()
    frame["id"] = pd.array(["b", "a", "b", "a", "b"], dtype=frame["id"].dtype)
    frame["order"] = [1 << 40, 7, 5, 3, (1 << 40) + 1]
    frame["x0"] = [0.0, 1.0, 2.0, 3.0, 4.0]
    bags = group(frame, decoder)
    assert bags.ids.tolist() == ["a", "b"]
    assert [bag[:, 0].tolist() for bag in bags.bags] == [[3.0, 1.0], [2.0, 0.0, 4.0]]
    labels = Decoder(Columns("id", (), ("k",)), "text", "float64", {}, (), (0,))
    rows = labels.empty()
    rows["id"] = pd.array(["b"], dtype=rows["id"].dtype)
    rows["order"], rows["y0"] = [0], [2.5]
    labelled = label(bags, rows, labels, ["t.csv"])
    assert labelled.targets.tolist()[1] == [2.5]
    assert labelled.n_without_row == 1
