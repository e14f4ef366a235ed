"""Long tables that cannot be used: one clear error each, and nothing left behind.

On a cluster too (``on_both``) where the engine decides: what rows of several pieces say together,
and what is left when writing ends early.
"""

from __future__ import annotations

import errno
import gzip

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagStore, DataError, ParameterError, StoreError
from bagbasis.data.storage.zarr_writer import WriterStore
from bagbasis.ingest import ingest_tables
from tests.ingest.long_tables import COLUMNS, assert_holds, write

on_both = pytest.mark.usefixtures("client")


def good(**changes):
    """Six points of three bags, with targets; ``changes`` replace or (None) remove columns."""
    table = {
        "bag": [1, 2, 3, 1, 2, 3],
        "u": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
        "v": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
        "k": [10.0, 20.0, np.nan, 10.0, 20.0, np.nan],
        "c": ["a", "b", "a", "a", "b", "a"],
    }
    return pd.DataFrame({k: v for k, v in (table | changes).items() if v is not None})


@pytest.fixture(params=[".parquet", ".csv"])
def path(request, tmp_path):
    """A table file of each kind."""
    return tmp_path / f"p{request.param}"


@pytest.fixture
def refused(tmp_path):
    """Ingest, and assert that it is refused with all the words and leaves nothing."""

    def check(points, *words, error=DataError, ingest=ingest_tables, **options):
        url = tmp_path / "s.zarr"
        with pytest.raises(error) as caught:
            ingest(points, url, **(COLUMNS | options))
        assert type(caught.value) is error
        for word in words:
            assert str(word) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not url.exists()

    return check


@pytest.mark.parametrize("missing", ["bag", "v", "k"])
def test_a_missing_column_is_named_with_those_there_are(missing, path, refused):
    """Types of the id, of a coordinate, of a target."""
    write(good(**{missing: None}), path)
    refused(path, path, f"no column {missing!r}", "'u'", targets=["k"])


def test_files_with_differing_columns(path, tmp_path, refused):
    """Each file of a table needs every column: the one that lacks it is named."""
    other = write(good(v=None, w=1.0), tmp_path / f"other{path.suffix}")
    refused([write(good(), path), other], other, "no column 'v'", "'w'")


def row_of(path, row):
    """Return what messages call a row of a file with a header; of CSV with its line."""
    return f"{path}, row {row}" + (f" (line {row + 2})" if path.suffix == ".csv" else "")


@pytest.mark.parametrize(
    ("text", "read", "place"),
    [
        ('bag,u\n"a",1\na,two\n', {}, "row 1 (line 3)"),
        ('bag,u\n"a\nb",1\n"c\n",2\nc,two\n', {}, "row 2 (line 6)"),
        ("a note\n\nbag;u\na;1\na;two\n", {"skip": 2, "delim": ";"}, "row 1 (line 5)"),
        ("# note\nbag,u\n# a\na,1\na,two\n", {"comment": "#"}, "row 1 (line 5)"),
        ("a,1\na,two\n", {"names": ["bag", "u"]}, "row 1 (line 2)"),
        ("\ufeffbag,u\r\na,1\r\na,two\r\n", {}, "row 1 (line 3)"),
    ],
)
def test_lines_of_csv_are_those_of_an_editor(tmp_path, refused, text, read, place):
    """Values of several lines, lines that are skipped, comments, and files without a header."""
    path = tmp_path / "p.csv"
    path.write_text(text, newline="")
    refused(path, f"{path}, {place}: bag", "'two'", coordinates=["u"], read=read)


def test_text_in_a_coordinate_column(path, refused):
    """The value in CSV, the type in Parquet."""
    write(good(v=["1", "2", "3", "4", "five", "6"]), path)
    if path.suffix == ".csv":
        refused(path, f"{path}, row 4", "bag '2'", "coordinate 'v' is 'five', not a number")
    else:
        refused(path, path, "coordinate column 'v'", "string, not numbers")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_a_coordinate_that_is_not_a_finite_float32(value, path, refused):
    """NaN, infinite or too large for the dtype of the store: the bag and the row are named."""
    write(good(u=[0.0, 0.0, value, 0.0, 0.0, 0.0]), path)
    bag = repr("3" if path.suffix == ".csv" else 3)
    refused(path, f"{row_of(path, 2)}: bag {bag}: coordinate 'u' is", "not a finite float32")


def test_the_row_of_a_bad_value_is_counted_in_its_file(tmp_path, ingest_cut, refused):
    """Also when the file is read in many pieces, and after another file."""
    u = np.zeros(600)
    u[471] = np.inf
    frame = pd.concat([good()] * 100, ignore_index=True)
    write(frame, tmp_path / "a.csv")
    write(frame.assign(u=u), tmp_path / "b.csv")
    words = (f"{tmp_path / 'b.csv'}, row 471 (line 473):", "coordinate 'u' is inf")
    refused(f"{tmp_path}/*.csv", *words, ingest=ingest_cut)


@pytest.mark.parametrize("ids", [[1, 2, None, 1, 2, 3], ["x", "y", None, "x", "y", "z"]])
@on_both
def test_a_missing_id(ids, path, refused):
    """In Parquet, a missing integer is found by its row as well as a missing text."""
    frame = good(bag=ids)
    frame["bag"] = frame["bag"].convert_dtypes()
    refused(write(frame, path), f"{row_of(path, 2)}: the bag id is missing")


def test_ids_that_are_neither_numbers_nor_text_nor_dates(tmp_path, refused):
    """Truth values; a float that is not a number, which pandas makes of a missing integer."""
    path = write(good(bag=[True, False, True] * 2), tmp_path / "p.parquet")
    refused(path, path, "id column 'bag' is bool; ids are whole numbers, text or dates")
    path = write(good(bag=[1.0, np.nan, 3.0] * 2), tmp_path / "p.parquet")
    refused(path, f"{path}, row 1: the bag id is missing")


def test_ids_beyond_int64(tmp_path, refused):
    """Unsigned integers that do not fit."""
    path = write(good(bag=np.array([1, 2, 2**63] * 2, dtype=np.uint64)), tmp_path / "p.parquet")
    refused(path, path, "exceed int64")


def test_ids_that_are_integers_in_one_file_and_text_in_another(tmp_path, refused):
    """1 and "1" may or may not be the same bag."""
    a = write(good(), tmp_path / "a.parquet")
    b = write(good(bag=["x", "y", "z"] * 2), tmp_path / "b.parquet")
    refused([a, b], a, b, "such as 'x'")


def test_targets_that_are_numbers_in_one_file_and_text_in_another(tmp_path, refused):
    """A class and a number are not the same target."""
    a = write(good(), tmp_path / "a.parquet")
    b = write(good(k=good()["c"]), tmp_path / "b.csv")
    refused([a, b], "target 'k'", a, b, targets=["k"])


def test_no_file(tmp_path, refused):
    """A path, a glob and a directory without tables, and no path at all."""
    (tmp_path / "empty").mkdir()
    for source in ("none.parquet", "*.csv", "empty"):
        refused(tmp_path / source, tmp_path / source, "no files found")
    refused([], "no table files given")


def test_a_file_of_another_kind_or_given_twice(path, tmp_path, refused):
    """Neither is read."""
    write(good(), path)
    refused([path, f"{tmp_path}/p*"], path, "given twice")
    link = tmp_path / f"z{path.name}"
    link.symlink_to(path.name)
    refused(f"{tmp_path}/*{path.name}", f"{link}: given twice, by a link too: {path}")
    link.unlink()
    (tmp_path / "p.txt").write_text("bag,u,v\n1,2,3\n")
    refused(tmp_path / "p.txt", "p.txt: not a table", "bagbasis.ingest.ingest_frame")


def test_an_unreadable_file(path, tmp_path, refused):
    """Bytes that are not what the name says."""
    path.write_bytes(b"\x00\xff\xfe" * 100)
    refused([write(good(), tmp_path / "a.csv"), path], path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(
            gzip.compress(b"bag,u,v\n1,0,1\n"),
            "it is compressed: unpack it, or give a file of gzip",
            id="gzip",  # whose bytes have the time
        ),
        (b"", "p.csv: the file has no columns, not even a header"),
    ],
)
def test_a_packed_and_an_empty_file(content, words, tmp_path, refused):
    """gzip under the name of a CSV file is not text in another encoding."""
    (tmp_path / "p.csv").write_bytes(content)
    refused(tmp_path / "p.csv", words)


@pytest.mark.long
@on_both
def test_a_file_cut_off(tmp_path, refused):
    """A Parquet file without its end, a Parquet file with a damaged page, a gzip cut short."""
    parquet = write(good(), tmp_path / "p.parquet")
    whole = parquet.read_bytes()
    parquet.write_bytes(whole[:-40])
    refused(parquet, parquet, "cannot be read")
    parquet.write_bytes(b"PAR1" + b"\xff" * 400 + whole[404:])
    refused(parquet, parquet, "cannot be read")
    good_one = write(good(), tmp_path / "good.parquet")
    refused([good_one, parquet], parquet, "cannot be read")
    gzip = write(pd.concat([good()] * 99), tmp_path / "p.csv.gz")
    gzip.write_bytes(gzip.read_bytes()[:-20])
    refused(gzip, gzip, "cannot be read")


def test_a_csv_row_of_another_length(tmp_path, refused):
    """Not filled up, not cut."""
    path = write(good(), tmp_path / "p.csv")
    path.write_text(path.read_text() + "1,2\n")
    refused(path, path, "Expected 5 columns, got 2")


def test_no_rows(path, refused):
    """A table of headers alone."""
    refused(write(good()[:0], path), path, "the table has no rows")


@pytest.mark.long
@on_both
def test_a_target_that_varies_within_a_bag(path, refused):
    """The bag and both values, for numbers, labels and a value that is there only sometimes."""
    write(good(), path)
    write(good(k=[10.0, 20.0, 3.0, 10.0, 21.5, 3.0]), path)
    refused(path, "bag 2: target 'k' is 20.0 in one row and 21.5", targets=["k"])
    write(good(c=["a", "b", "a", "a", "b", "b"]), path)
    refused(path, "bag 3: target 'c' is 'a' in one row and 'b'", targets=["c"])
    write(good(k=[10.0, 20.0, 3.0, np.nan, 20.0, 3.0]), path)
    refused(path, "bag 1: target 'k' is 10.0 in one row and nan", targets=["k"])


@pytest.mark.long
def test_an_integer_that_float64_does_not_tell_from_its_neighbours(path, tmp_path, refused):
    """Two classes would be one; as the names of classes they stay themselves."""
    write(good(k=[1, 2**60 + 1, 2**60] * 2), path)
    message = f"target 'k': {2**60 + 1} is an integer beyond ±2^53"
    refused(path, f"{path}, row 1", message, "target_types to class", targets=["k"])
    ingested = {"targets": ["k"], "target_types": {"k": "class"}, **COLUMNS}
    store = ingest_tables(path, tmp_path / "classes.zarr", **ingested)
    assert store.meta.class_names["k"] == ["1", str(2**60), str(2**60 + 1)]


@pytest.mark.parametrize(
    "texts",
    [
        ["4,5", "2", "1.234,5"],
        ["-1,5", "0,25", "3"],
        ["12 %", "7%", "8.5 %"],
        ["$5", "$1,200", "3"],
    ],
)
def test_numbers_with_signs_are_no_classes(texts, path, tmp_path, refused):
    """Each would be a class of its own; they are classes if that is said."""
    write(good(k=texts * 2), path)
    words = "target 'k' is text such as", repr(min(texts)), "decimal_separator", "{k: class}"
    refused(path, *words, targets=["k"])
    options = {"targets": ["k"], "target_types": {"k": "class"}, **COLUMNS}
    store = ingest_tables(path, tmp_path / "classes.zarr", **options)
    assert store.meta.class_names["k"] == sorted(texts)
    write(good(k=[*texts[:2], "about 3"] * 2), path)
    store = ingest_tables(path, tmp_path / "texts.zarr", targets=["k"], **COLUMNS)
    assert store.meta.class_names["k"] == sorted([*texts[:2], "about 3"])


def test_an_infinite_target(path, refused):
    """The file and the row."""
    write(good(k=[1, np.inf, 3, 1, 2, 3]), path)
    refused(path, f"{path}, row 1", "target 'k' is infinite", targets=["k"])


@pytest.mark.long
def test_free_text_is_no_class(path, refused):
    """More labels than any classifier has: most likely the wrong column."""
    labels = [f"remark {i}" for i in range(2**14 + 1)]
    write(pd.DataFrame({"bag": range(len(labels)), "u": 0.0, "v": 0.0, "c": labels}), path)
    refused(path, "target 'c' is text with more than 16384 different values", targets=["c"])


@pytest.mark.long
@on_both
def test_a_target_table_with_a_repeated_id(path, tmp_path, refused):
    """Both rows are named, in whatever files they are."""
    points = write(good(), tmp_path / "points.parquet")
    write(pd.DataFrame({"bag": [1, 2], "k": [1.0, 2.0]}), path)
    again = write(pd.DataFrame({"bag": [3, 2], "k": [3.0, 2.0]}), tmp_path / "again.csv")
    words = (f"{row_of(again, 1)}: id 2 is repeated", f"first in {row_of(path, 1)}")
    refused(points, *words, targets=["k"], target_table=[path, again])


def test_a_target_table_with_an_unknown_id(path, tmp_path, refused):
    """An id that no point has: most likely the wrong table."""
    points = write(good(), tmp_path / "points.parquet")
    write(pd.DataFrame({"bag": [1, 99], "k": [1.0, 2.0]}), path)
    words = (f"{row_of(path, 1)}: id 99", "unknown")
    refused(points, *words, targets=["k"], target_table=path)


def test_a_full_folder_of_temporary_files_is_named(tmp_path, refused, monkeypatch):
    """Lines of JSON are copied to it; the file itself is sound."""

    def fails(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bagbasis.ingest.tables.files.copy_as_parquet", fails)
    (tmp_path / "t.jsonl").write_text('{"bag": 1, "u": 1, "v": 2}')
    refused(tmp_path / "t.jsonl", "t.jsonl", "temporary files", "TMPDIR")


def test_a_target_table_without_a_column_or_a_value_or_rows(path, tmp_path, refused):
    """The target table is checked as the points are."""
    points = write(good(), tmp_path / "points.parquet")
    labels = pd.DataFrame({"bag": [1, 2, None], "k": [1.0, 2.0, 3.0]}).convert_dtypes()
    options = {"targets": ["k"], "target_table": write(labels, path)}
    refused(points, f"{row_of(path, 2)}: the bag id is missing", **options)
    refused(points, path, "no column 'name'", target_id_column="name", **options)
    write(labels.rename(columns={"bag": "patient"}), path)
    refused(points, path, "no column 'bag'", "['patient', 'k']", "as target_id_column", **options)
    write(labels[:0], path)
    refused(points, path, "the table has no rows", **options)


def answers(**changes):
    """Responses in the plane for two of the bags."""
    table = {"bag": [3, 1, 3], "p": [0.0, 1.0, 2.0], "q": [5.0, 6.0, 7.0]}
    return pd.DataFrame({k: v for k, v in (table | changes).items() if v is not None})


@pytest.mark.long
@on_both
def test_responses_of_an_unknown_bag(path, tmp_path, refused):
    """An id that no point has is named with its file and row, wherever it sorts."""
    points = write(good(), tmp_path / "points.parquet")
    for unknown in (-99, 2_000):
        write(answers(bag=[3, unknown, 3]), path)
        words = (f"{row_of(path, 1)}: id {unknown} of the response table", "no point has it")
        refused(points, *words, responses=path, response_coordinates=["p", "q"])


@pytest.mark.long
def test_a_table_of_responses_is_checked_as_the_points_are(path, tmp_path, refused):
    """A value that is not finite, a missing column or id, ids of another kind, no rows."""
    points = write(good(), tmp_path / "points.parquet")
    options = {"responses": path, "response_coordinates": ["p", "q"]}
    write(answers(q=[1.0, 1e39, 2.0]), path)
    refused(points, f"{row_of(path, 1)}: bag", "coordinate 'q' is", "finite float32", **options)
    write(answers(q=None), path)
    refused(points, path, "no column 'q'", **options)
    refused(points, path, "no column 'name'", response_id_column="name", **options)
    write(answers(bag=["x", "y", "z"]), path)
    refused(points, points, path, "such as 'x'", **options)
    write(answers()[:0], path)
    refused(points, path, "the table has no rows", **options)
    refused(points, "none.csv", "no files found", **options | {"responses": tmp_path / "none.csv"})


def test_parameters_of_responses(path, refused):
    """Those that make sense only with a table of responses, and those that it needs."""
    write(good(), path)
    for name, value in (
        ("response_coordinates", ["u"]),
        ("response_id_column", "bag"),
        ("response_box", [(0, 1)]),
    ):
        refused(path, f"{name} is given, but not responses", error=ParameterError, **{name: value})
    refused(path, "no response_coordinates", error=ParameterError, responses=path)
    options = {"responses": path, "response_coordinates": ["u"]}
    refused(path, "response_box has 2 dimensions", response_box=[(0, 1)] * 2, **options)
    refused(path, "response_coord", error=ParameterError, **options | {"response_coordinates": 5})


def test_parameters_that_do_not_go_together(path, refused):
    """Nothing is read for them."""
    write(good(), path)
    refused(path, "different names", error=ParameterError, targets=["k", "k"])
    refused(path, "but no targets", error=ParameterError, target_table=path)
    refused(path, "1 dimensions", box=[(0, 1)])


@pytest.mark.long
@on_both
def test_a_store_that_is_there_is_kept(path, tmp_path):
    """It is replaced only on request, and then not before all rows were found to be good."""
    url = tmp_path / "s.zarr"
    ingest_tables(write(good(), path), url, **COLUMNS)
    with pytest.raises(StoreError, match="exists already"):
        ingest_tables(path, url, **COLUMNS)
    write(good(u=np.nan), path)
    with pytest.raises(DataError):
        ingest_tables(path, url, overwrite=True, **COLUMNS)
    assert_holds(BagStore.open(url), good(), [1, 2, 3])
    write(good()[:5], path)
    ingest_tables(path, url, overwrite=True, **COLUMNS)
    assert_holds(BagStore.open(url), good()[:5], [1, 2, 3])


def test_what_is_there_and_is_no_store_is_never_replaced(path, tmp_path):
    """Not even on request."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep")
    with pytest.raises(StoreError, match="not a bag store"):
        ingest_tables(write(good(), path), tmp_path / "notes", overwrite=True, **COLUMNS)
    assert (tmp_path / "notes" / "mine.txt").read_text() == "keep"


@pytest.mark.long
@pytest.mark.parametrize("calls", range(5))
@on_both
def test_writing_that_fails_leaves_nothing(calls, path, monkeypatch, refused):
    """A disk that is full at once, when the store is made for good, and before the commit."""
    sync, remaining = WriterStore.sync, [calls]

    def full(self):
        if not remaining[0]:
            raise OSError(28, "No space left on device")
        remaining[0] -= 1
        sync(self)

    monkeypatch.setattr(WriterStore, "sync", full)
    refused(write(good(), path), "No space left on device", error=StoreError)


@on_both
def test_an_interrupt_leaves_nothing(path, tmp_path):
    """Control-C while the points are written."""
    url = tmp_path / "s.zarr"

    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest_tables(write(good(), path), url, progress=interrupt, **COLUMNS)
    assert not url.exists()


def test_a_missing_coordinate_that_is_allowed_is_not_blamed(path, refused):
    """What is wrong with the row is its target; the point would have been dropped."""
    points = good(v=[np.nan, *[1.0] * 5], k=[np.inf, *[20.0] * 5])
    messages = f"{path}, row 0", "target 'k' is infinite"
    refused(write(points, path), *messages, targets=["k"], missing="drop_point")
