"""What stands besides columns of numbers: folders' names, Arrow files, truth values, data sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pytest

from bagbasis import DataError
from bagbasis.ingest import ingest_frame, ingest_tables
from tests.ingest.formats.test_frames import assert_is_ragged, long_frame, ragged
from tests.ingest.long_tables import COLUMNS, assert_holds

PLACES = ["JFK", "a/b=c", "Zürich %", "it's"]


def by_folders(tmp_path, ending):
    """A long table cut by two columns, whose values are names of folders."""
    frame = long_frame()
    rng = np.random.default_rng(1)
    place_of = dict(zip(frame["bag"].unique(), rng.choice(PLACES, 30), strict=True))
    frame["st"] = frame["bag"].map(place_of)
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 2, len(frame)), "D")
    frame["level"] = rng.integers(-1, 1, len(frame))
    parts = frame.assign(day=frame["day"].dt.date)
    columns = ["st", "day", "level"]
    if ending == ".parquet":
        parts.to_parquet(tmp_path / "t", partition_cols=columns, index=False)
        return frame, tmp_path / "t"
    for i, (values, part) in enumerate(parts.groupby(columns)):
        quoted = [
            str(v).replace("%", "%25").replace("/", "%2F").replace("=", "%3D") for v in values
        ]
        folder = tmp_path.joinpath("t", *map("=".join, zip(columns, quoted, strict=True)))
        folder.mkdir(parents=True)
        part.drop(columns=columns).to_csv(folder / f"{i}.csv", index=False)
    return frame, f"{tmp_path}/t/**/*.csv"


@pytest.mark.long
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_columns_that_folders_tell(ending, tmp_path, client, ingest_cut):
    """As a part of the id, a target, a number or a date; the same in small pieces."""
    frame, source = by_folders(tmp_path, ending)
    store = ingest_cut(
        *(source, tmp_path / "s.zarr"),
        id_column=["st", "bag"],
        coordinates=["u", {"depth": "-level"}, "day"],
        read={"types": {"day": "DATE"}},
        targets=["st"],
        dtype="float64",
    )
    frame["days"] = (frame["day"] - pd.Timestamp(0)).dt.days
    groups = frame.assign(id=frame["st"] + "/" + frame["bag"]).groupby("id")
    assert store.ids().tolist() == list(groups.groups)
    classes = store.meta.class_names["st"]
    assert [classes[int(c)] for c in store.targets()[:, 0]] == groups["st"].first().tolist()
    for bag, (_, rows) in zip(store.read(), groups, strict=True):
        expected = rows.assign(level=-rows["level"])[["u", "level", "days"]]
        expected = expected.sort_values(["u"]).to_numpy()
        np.testing.assert_allclose(bag[np.argsort(bag[:, 0])], expected, rtol=1e-15)


@pytest.mark.long
def test_folders_beside_lists_and_what_they_do_not_tell(tmp_path):
    """A coordinate of all points of a file; a missing value; a folder not of a column in use."""
    table = ragged()
    for name, rows in (("d=1.5", slice(0, 20)), ("d=__HIVE_DEFAULT_PARTITION__", slice(20, 30))):
        (tmp_path / name).mkdir()
        part = table.slice(rows.start, rows.stop - rows.start)
        pa.parquet.write_table(part, tmp_path / name / "p.parquet")
    arguments = {"id_column": "name", "coordinates": ["x", "d"], "targets": ["t"]}
    with pytest.raises(DataError, match="coordinate 'd' is missing"):
        ingest_tables(tmp_path, tmp_path / "s.zarr", **arguments)
    store = ingest_tables(tmp_path, tmp_path / "s.zarr", missing="drop_bag", **arguments)
    assert store.n_bags == 20
    assert (store.read().points[:, 1] == 1.5).all()
    (tmp_path / "z=7").mkdir()
    pa.parquet.write_table(table, tmp_path / "z=7" / "p.parquet")
    arguments["coordinates"] = ["x", "y"]
    assert_is_ragged(ingest_tables(tmp_path / "z=7", tmp_path / "own.zarr", **arguments))
    with pytest.raises(DataError, match="no column 'e'"):
        ingest_tables(tmp_path, tmp_path / "e.zarr", **arguments | {"coordinates": ["x", "e"]})


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_folders_that_say_otherwise_than_a_column_of_the_file(ending, tmp_path):
    """One of the two is wrong. Values that are written otherwise agree."""
    folder = tmp_path / "label=True" / "level=01"
    columns = {"bag": [1, 2], "x": [0.5, 1.5], "level": [1, 1], "label": [True, True]}
    arguments = {"id_column": "bag", "coordinates": ["x"], "targets": ["level", "label"]}
    source = str(tmp_path / "label=True" / "level=*" / f"p.{ending}")

    def write(frame):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"p.{ending}"
        if ending == "parquet":
            frame.to_parquet(path)
        elif ending == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_json(path, orient="records", lines=True)

    write(pd.DataFrame(columns))
    assert ingest_tables(source, tmp_path / "s.zarr", **arguments).targets()[:, 0].tolist() == [
        1,
        1,
    ]
    write(pd.DataFrame(columns | {"level": [1, 3]}))
    with pytest.raises(DataError, match=r"row 1.*'level' is '3', but .* folder level=01"):
        ingest_tables(source, tmp_path / "o.zarr", **arguments)
    write(pd.DataFrame(columns | {"level": [1, None]}))
    with pytest.raises(DataError, match=r"row 1.*'level' is None, but .* folder level=01"):
        ingest_tables(source, tmp_path / "o.zarr", **arguments)
    expressions = arguments | {"targets": {"high": "level > 2"}}
    with pytest.raises(DataError, match=r"'level' is None, but .* folder level=01"):
        ingest_tables(source, tmp_path / "o.zarr", **expressions)
    assert (
        len(ingest_tables(source, tmp_path / "o.zarr", **arguments | {"targets": ["label"]})) == 2
    )
    twice = tmp_path / "level=1" / folder.relative_to(tmp_path)
    twice.parent.mkdir(parents=True)
    folder.rename(twice)
    with pytest.raises(DataError, match="two folders give 'level' a value"):
        ingest_tables(twice / f"p.{ending}", tmp_path / "t.zarr", **arguments)


@pytest.mark.parametrize("kind", ["feather", "arrow", "ipc", "folder"])
def test_arrow_files(kind, tmp_path, client):
    """Files and streams, compressed or not, alone and in a folder next to Parquet."""
    frame = long_frame()
    half, path = len(frame) // 2, tmp_path / f"f.{kind}"
    if kind == "feather":
        frame.to_feather(path, compression="lz4")
    elif kind == "folder":
        path.mkdir()
        frame[:half].to_parquet(path / "0.parquet", index=False)
        frame[half:].reset_index(drop=True).to_feather(path / "1.feather")
    else:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        new = pa.ipc.new_stream if kind == "arrow" else pa.ipc.new_file
        with new(path, table.schema) as file:
            file.write_table(table, max_chunksize=20)
    store = ingest_tables(path, tmp_path / "s.zarr", targets=["size", "kind"], **COLUMNS)
    assert_holds(store, frame, sorted(set(frame["bag"])))


def test_arrow_files_that_can_not_be_used(tmp_path):
    """The file is named, not its copy; so is the row."""
    (tmp_path / "a.arrow").write_bytes(b"no such thing")
    with pytest.raises(DataError, match=r"a\.arrow: cannot be read"):
        ingest_tables(tmp_path / "a.arrow", tmp_path / "s.zarr", **COLUMNS)
    frame = long_frame()
    frame.loc[3, "u"] = np.nan
    frame.to_feather(tmp_path / "b.feather")
    with pytest.raises(DataError, match=r"b\.feather, row 3: bag .* coordinate 'u' is missing|nan"):
        ingest_tables(tmp_path / "b.feather", tmp_path / "s.zarr", **COLUMNS)
    assert not (tmp_path / "s.zarr").exists()


WORDS = {
    "true": ["true", "false"],
    "True": ["True", "False"],
    "yes": ["YES", "no"],
    "letters": ["T", "f"],
    "numbers": ["1", "0"],
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("ending", "client"), [(".csv", "here"), (".parquet", "cluster")], indirect=["client"]
)
def test_truth_values_as_text(ending, tmp_path, client, ingest_cut):
    """In an expression however they are written; a word that is none is refused with its row."""
    frame = long_frame()
    flags = np.random.default_rng(2).random((len(frame), len(WORDS))) < 0.5
    for j, (name, words) in enumerate(WORDS.items()):
        frame[name] = np.where(flags[:, j], *words)
    arguments = {"id_column": "bag", "dtype": "float64"}
    arguments["coordinates"] = [*({name: f'CAST("{name}" AS BOOLEAN)'} for name in WORDS), "u"]
    path = tmp_path / f"f{ending}"

    def written():
        frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path, index=False)
        return path, tmp_path / "s.zarr"

    store = ingest_cut(*written(), **arguments)
    frame[list(WORDS)] = flags
    for bag, (_, rows) in zip(store.read(), frame.groupby("bag"), strict=True):
        np.testing.assert_array_equal(bag, rows[[*WORDS, "u"]].to_numpy(float))
    if ending == ".csv":
        types = {"types": dict.fromkeys(WORDS, "BOOLEAN")}
        plain = arguments | {"coordinates": [*WORDS, "u"], "read": types}
        again = ingest_tables(*written(), mode="overwrite", **plain)
        np.testing.assert_array_equal(again.read().points, store.read().points)
    frame["letters"] = "maybe"
    message = r"row 0(?: \(line 2\))?: bag .* coordinate 'letters' cannot be .*'maybe' to BOOL"
    with pytest.raises(DataError, match=message):
        ingest_tables(*written(), mode="overwrite", **arguments)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["lists", "arrays", "stream", "selected", "saved"])
def test_data_sets_of_huggingface(kind, tmp_path):
    """Lists per coordinate or arrays of points; streamed, shuffled, and the files of one."""
    import datasets

    table = ragged("arrays" if kind == "arrays" else "lists")
    data = datasets.Dataset.from_dict(table.to_pydict())
    names = ["x", "y"]
    if kind == "arrays":
        points = datasets.Array2D((None, 2), "float64")
        data, names = data.cast_column("p", points), ["p"]
    if kind == "stream":
        data = data.to_iterable_dataset()
    if kind == "selected":
        data = datasets.concatenate_datasets([data, data]).select(range(45, 15, -1))
    arguments = {"id_column": "name", "coordinates": names, "targets": ["t"]}
    if kind == "saved":
        data.save_to_disk(tmp_path / "d")
        store = ingest_tables(tmp_path / "d", tmp_path / "s.zarr", **arguments)
    else:
        store = ingest_frame(data, tmp_path / "s.zarr", **arguments)
    assert_is_ragged(store)


def test_a_data_set_without_rows(tmp_path):
    """Refused, as is one of several splits."""
    import datasets

    data = datasets.Dataset.from_dict({"b": [], "x": []})
    arguments = {"id_column": "b", "coordinates": ["x"]}
    with pytest.raises(DataError, match="there are no rows"):
        ingest_frame(data, tmp_path / "s.zarr", **arguments)
    with pytest.raises(DataError, match=r"points is .*expected a table"):
        ingest_frame(datasets.DatasetDict({"train": data}), tmp_path / "s.zarr", **arguments)


@pytest.mark.parametrize(
    ("line", "delim", "message"),
    [
        ("sep=;", ";", "skip: 1}"),
        ('"sep=,"', ",", "skip: 1}"),
        ("SEP=^", "^", r"skip: 1, delim: '\^'}"),
    ],
)
def test_the_line_of_the_separator_that_excel_writes(line, delim, message, tmp_path):
    """It is not taken for the names of columns; the message says how to leave it out."""
    path = tmp_path / "t.csv"
    path.write_text(f"{line}\np{delim}x\n1{delim}2\n2{delim}3\n")
    arguments = {"id_column": "p", "coordinates": ["x"]}
    with pytest.raises(DataError, match=f"line 1 is .*Excel .*{message}"):
        ingest_tables(path, tmp_path / "s", **arguments)
    read = {"skip": 1, "delim": delim}
    assert ingest_tables(path, tmp_path / "s", read=read, **arguments).n_bags == 2


@pytest.mark.parametrize(
    ("text", "message", "read"),
    [
        ("# of 2026\np,x\n1,2\n# moved\n2,3\n", r"set read: \{comment: '#'\}", {"comment": "#"}),
        ("p,x\r\n1,2\r\n2,3\n3,4\n", "lines end in two ways", None),
    ],
)
def test_comments_and_mixed_line_ends_are_named(text, message, read, tmp_path):
    """The message says how the file can be read."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    arguments = {"id_column": "p", "coordinates": ["x"]}
    with pytest.raises(DataError, match=message):
        ingest_tables(path, tmp_path / "s", **arguments)
    path.write_bytes(text.replace("\r", "").encode())
    ingest_tables(path, tmp_path / "s", read=read, **arguments)


AMOUNTS = {
    "{} kg": True,
    "<{}": True,
    "\N{MINUS SIGN}{}": True,
    "1.{}mg": True,
    "{0} {0}": False,
    "v{}": False,
}


@pytest.mark.parametrize(("text", "is_amount"), AMOUNTS.items(), ids=AMOUNTS)
def test_amounts_that_are_read_as_classes_are_warned_of(text, is_amount, tmp_path, caplog):
    """Unless they are declared, few, or of several units."""
    path = tmp_path / "t.csv"
    rows = [f"{i},{i * i},{text.format(i)}" for i in range(1, 7)]
    arguments = {"id_column": "p", "coordinates": ["x"], "targets": ["m"], "overwrite": True}

    def warns(*lines, **options):
        caplog.clear()
        path.write_text("\n".join(["p,x,m", *lines]), encoding="utf-8")
        ingest_tables(path, tmp_path / "s", **arguments, **options)
        return "looks like an amount, and is read as 6 classes" in caplog.text

    assert warns(*rows) == is_amount
    assert not warns(*rows, target_types={"m": "class"})
    assert not warns(*rows[:4])
    assert not warns(*rows[:5], "6,36,unknown")


@pytest.mark.parametrize("word", ["Total", "p", "# of rows"])
def test_a_word_among_numbers_as_ids_is_warned_of(word, tmp_path, caplog):
    """Sums below a table and a header within it are bags like any other, unless they are told."""
    path = tmp_path / "t.csv"

    def warns(*ids):
        caplog.clear()
        path.write_text("\n".join(["p,x", *(f"{name},{i}" for i, name in enumerate(ids))]))
        store = ingest_tables(
            path, tmp_path / "s", id_column="p", coordinates=["x"], overwrite=True
        )
        assert sorted(store.ids().tolist()) == sorted({*ids})
        return f"the id is text such as {word!r} in 1 of {len(ids)} rows" in caplog.text

    numbers = [str(i // 2) for i in range(60)]
    assert warns(*numbers, word)
    assert not warns(*numbers[:15], word)
    assert not warns(*numbers[1:], *["b", "c", "d", word])
    assert not warns(*[f"a{number}" for number in numbers], word)


@pytest.mark.long
@pytest.mark.parametrize("value", ["007", "00"])
def test_numerals_that_begin_with_zeros_are_told_of(value, tmp_path, caplog):
    """They may be names; either type that is declared is the answer."""
    path = tmp_path / "t.csv"
    path.write_text(f"p,x,arm\n1,2,{value}\n2,3,7\n3,5,0\n")
    arguments = {"id_column": "p", "coordinates": ["x"], "targets": ["arm"], "overwrite": True}
    store = ingest_tables(path, tmp_path / "s", **arguments)
    assert store.targets().ravel().tolist() == [int(value), 7, 0]
    assert f"target 'arm' is '{value}' in a row and is read as a number" in caplog.text
    caplog.clear()
    for kind in ("class", "number"):
        ingest_tables(path, tmp_path / "s", target_types={"arm": kind}, **arguments)
    path.write_text("p,x,arm\n1,2,0.5\n2,3,7\n3,5,0\n")
    ingest_tables(path, tmp_path / "s", **arguments)
    assert "read as a number" not in caplog.text
