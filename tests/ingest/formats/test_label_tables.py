"""Tables of labels of folders are read as long tables are: texts as they are written."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bagbasis import DataError, ParameterError
from bagbasis.ingest import ingest_patches

NAMES = ("0012", "0345", "NA", "None", "007", "7")
MISSING = "the bag id is missing"


@pytest.fixture
def slides(tmp_path):
    folder = tmp_path / "slides"
    folder.mkdir()
    for name in NAMES:
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file["features"] = np.ones((3, 2), "f4") * len(name)
    return folder


def labels_of(slides, table, tmp_path, **options):
    """What each slide is labelled, by target and name of the slide."""
    options = {"overwrite": True, **options}
    store = ingest_patches(slides, tmp_path / "s.zarr", target_table=table, **options)
    result, names = {}, store.ids().tolist()
    for name, column in zip(store.target_names, store.targets().T, strict=True):
        classes = store.meta.class_names.get(name)
        result[name] = {
            slide: classes[int(value)] if classes else value
            for slide, value in zip(names, column, strict=True)
            if not np.isnan(value)
        }
    return result


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("slide_id,arm\n0012,A\n0345,B\n", {}, {"arm": {"0012": "A", "0345": "B"}}),
        ("slide_id,arm\nNA,A\n0345.h5,B\n", {}, {"arm": {"NA": "A", "0345": "B"}}),
        ("slide_id,arm\n0012,None\n0345,drug\n", {}, {"arm": {"0012": "None", "0345": "drug"}}),
        ("slide_id,arm\n0012,NA\n0345,drug\n", {}, {"arm": {"0345": "drug"}}),
        ('slide_id,arm\n0012,"NA"\n0345,d\n', {}, {"arm": {"0012": "NA", "0345": "d"}}),
        (
            "slide_id,patient\n0012,007\n0345,7\nNone,07\n",
            {},
            {"patient": {"0012": "007", "0345": "7", "None": "07"}},
        ),
        ("slide_id,y\n007,1.5\n7,2\n", {}, {"y": {"007": 1.5, "7": 2.0}}),
        (
            "slide_id;y\n007;1,5\n7;2\n",
            {"read": {"decimal_separator": ","}},
            {"y": {"007": 1.5, "7": 2}},
        ),
        ("slide_id\ty\n007\t1\n", {}, {"y": {"007": 1.0}}),
        (
            "\n\nslide_id,y\n\n007,1\n\n\n7,2\n\n",
            {"read": {"skip": 2}},
            {"y": {"007": 1.0, "7": 2.0}},
        ),
        (
            "slide_id,arm\n0012,mal\u00e9\n".encode("latin-1"),
            {"read": {"encoding": "latin-1"}},
            {"arm": {"0012": "mal\u00e9"}},
        ),
        ("\ufeffslide_id,arm\r\n0012,A\r\n", {}, {"arm": {"0012": "A"}}),
        (",slide_id,y\n0,007,1\n1,7,2\n", {}, {"y": {"007": 1.0, "7": 2.0}}),
        ("slide_id,y,z\n007,1,a\n", {"targets": ["z"]}, {"z": {"007": "a"}}),
        ("slide_id,y\n007,-99\n7,2\n", {"read": {"nullstr": ["", "-99"]}}, {"y": {"7": 2.0}}),
    ],
)
def test_csv_is_read_as_it_is_written(text, options, expected, slides, tmp_path):
    """Names with zeros, NA and None; separators, encodings, blank lines, an unnamed index."""
    table = tmp_path / "t.csv"
    table.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert labels_of(slides, table, tmp_path, **options) == expected


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("slide_id,arm\n0012,A\n,\n", DataError, rf"t.csv, row 1 \(line 3\): {MISSING}"),
        ("slide_id,arm\n0012,A\n\n\n,B\n", DataError, rf"row 1 \(line 5\): {MISSING}"),
        ('slide_id,arm\n0012,"A\nB"\n12,C\n', ParameterError, r"row 1 \(line 4\): slide_id '12'"),
        ("slide_id,arm\n7,A\n7.h5,B\n", ParameterError, r"row 1 \(line 3\).*has a row already"),
        ("slide_id,y\n7,1\n007,2\nNA,x\n", DataError, r"row 2 \(line 4\): target 'y' is 'x'"),
        ("slide_id,y\n7,1\n007,inf\n", DataError, r"row 1 \(line 3\): target 'y' is infinite"),
        ("slide,y\n7,1\n", DataError, "no column 'slide_id'"),
        ("slide_id,y\n", DataError, "no rows"),
        ("", DataError, "t.csv"),
        ("slide_id,arm\n0012,mal\u00e9\n".encode("latin-1"), DataError, "encoding: latin-1"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_its_line(text, error, message, slides, tmp_path):
    """As an editor counts it, whatever lines are blank or broken within quotes."""
    table = tmp_path / "t.csv"
    table.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(error, match=message):
        labels_of(slides, table, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    "make",
    [
        dict,
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda columns: pd.DataFrame(columns).convert_dtypes(),
        lambda columns: pd.DataFrame(columns).astype({"slide_id": "category", "arm": "category"}),
        lambda columns: pd.DataFrame(columns).astype({"arm": "string[pyarrow]", "y": "Float64"}),
    ],
    ids=["mapping", "pandas", "polars", "arrow", "nullable", "categories", "arrow texts"],
)
def test_tables_in_memory(make, slides, tmp_path):
    """Tables of every library and dtype, with missing values."""
    columns = {"slide_id": ["0012", "NA", "7"], "arm": ["A", None, "B"], "y": [1.0, 2.5, None]}
    result = labels_of(slides, make(columns), tmp_path)
    assert result == {"arm": {"0012": "A", "7": "B"}, "y": {"0012": 1.0, "NA": 2.5}}


@pytest.mark.parametrize("none", [None, np.nan, pd.NA])
def test_a_missing_name_is_refused_by_its_row(none, slides, tmp_path):
    """Ids of a table in memory; whole floats in the other table are integers."""
    with pytest.raises(DataError, match=f"target_table, row 1: {MISSING}"):
        labels_of(slides, pd.DataFrame({"slide_id": [7, none], "y": [1, 2]}), tmp_path)
    with pytest.raises(DataError, match="target_table"):
        labels_of(slides, [1, 2], tmp_path)


def test_an_integer_is_no_name_with_zeros(slides, tmp_path):
    """7 is the file 7; 12 is not the file 0012, which the message offers."""
    assert labels_of(slides, {"slide_id": [7], "y": [1]}, tmp_path) == {"y": {"7": 1.0}}
    with pytest.raises(ParameterError, match="slide_id '12': no file has this name"):
        labels_of(slides, {"slide_id": [12], "y": [1]}, tmp_path)


@pytest.mark.parametrize("ending", ["parquet", "feather", "jsonl", "csv.gz", "txt"])
def test_files_of_every_kind(ending, slides, tmp_path):
    """A text file is CSV."""
    frame = pd.DataFrame({"slide_id": ["0012", "NA"], "arm": ["A", "B"]})
    table = tmp_path / f"t.{ending}"
    if ending == "jsonl":
        frame.to_json(table, orient="records", lines=True)
    elif ending in ("parquet", "feather"):
        getattr(frame, f"to_{ending}")(table)
    else:
        frame.to_csv(table, index=False)
    assert labels_of(slides, table, tmp_path) == {"arm": {"0012": "A", "NA": "B"}}


@pytest.mark.long
def test_classes_of_a_store_are_those_of_later_tables(slides, tmp_path):
    """Numerals are labels where the store has classes of this name."""
    (tmp_path / "t.csv").write_text("slide_id,arm\n0012,1\n0345,x\n7,2\nNA,x\n")
    labels_of(slides, tmp_path / "t.csv", tmp_path)
    with h5py.File(slides / "later.h5", "w") as file:
        file["features"] = np.ones((3, 2), "f4")
    (tmp_path / "t.csv").write_text("slide_id,arm\nlater,2\n")
    result = labels_of(
        slides, tmp_path / "t.csv", tmp_path, mode="append", known_ids="skip", overwrite=False
    )
    assert result["arm"]["later"] == "2"
