"""Written predictions read back: the same table of every format, and damage by its name."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import zarr

from bagbasis import BagStore, ModelError, ParameterError
from bagbasis.models import predictions, read_predictions, write_predictions
from tests.models.predicting import BAGS, N, Y, classifier, fitted, ids_of, regressor
from tests.oracles.labelled import stored

pytestmark = pytest.mark.usefixtures("many_blocks")

FORMATS = ("zarr", "parquet", "csv")
HOSTILE = ["007", "NA", "a\r\nb", 'he said "x"', "x,y", " blank ", "1e3", "True", "=1+1", "nan"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A store with ids of text that readers of CSV mistake, of which some bags were removed."""
    ids = [*HOSTILE, *(f"bag {i}" for i in range(N - len(HOSTILE)))]
    store = stored(tmp_path_factory.mktemp("hostile") / "s.zarr", BAGS, Y, ids=ids)
    return store.remove(["NA", "bag 3", *ids[-30:]])  # whole chunks among them


@pytest.mark.parametrize("name", ["two targets", "classes", "class names"])
def test_every_format_is_the_same_table(hostile, tmp_path, name):
    """Ids, predictions and probabilities, in the order of the bags, to the last bit."""
    model = fitted(name)
    tables = []
    for format in FORMATS:
        formulas = r"p\.csv: 1 texts, such as '=1\+1', .* spreadsheet programs take for formulas"
        with pytest.warns(match=formulas) if format == "csv" else nullcontext():
            write_predictions(model, hostile, tmp_path / f"p.{format}", columns=["outside"])
        tables.append(read_predictions(tmp_path / f"p.{format}"))
    remaining = [id for id in ids_of(hostile) if id not in ("NA", "bag 3") and id not in
            ids_of(hostile)[-30:]]  # fmt: skip
    assert tables[0]["id"].tolist() == remaining
    expected = model.predict([bag for bag, id in zip(BAGS, ids_of(hostile), strict=True)
                              if id in remaining])  # fmt: skip
    values = tables[0].filter(regex="^prediction").to_numpy().squeeze()
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(values, expected, atol=1e-12)
    else:
        assert values.tolist() == expected.tolist()
    for table in tables[1:]:
        assert table.columns.tolist() == tables[0].columns.tolist()
        for column in table:
            assert table[column].tolist() == tables[0][column].tolist()
    assert not any(table.attrs for table in tables)


@pytest.mark.parametrize("format", FORMATS)
def test_integer_ids(tmp_path, format):
    """Ids that are integers stay integers, -1 and others below 0 among them."""
    ids = np.arange(N)[::-1] - 1
    place, bags = tmp_path / f"p.{format}", stored(tmp_path / "s.zarr", BAGS, Y, ids=ids)
    write_predictions(fitted("one target"), bags, place)
    values = read_predictions(place)["id"]
    assert values.dtype == np.int64
    assert values.tolist() == ids.tolist()


@pytest.mark.parametrize("format", FORMATS)
def test_no_bags(tmp_path, format):
    """A table without rows, with the column of ids."""
    write_predictions(
        fitted("classes"), BagStore.create(tmp_path / "s", 2), tmp_path / f"p.{format}"
    )
    table = read_predictions(tmp_path / f"p.{format}")
    assert len(table) == 0
    assert table.columns[0] == "id"


@pytest.mark.parametrize("name", ["one target", "class names"])
def test_a_damaged_chunk_is_named(store, tmp_path, name):
    """A flipped bit of any array is told with the place, the array and the chunk."""
    place = tmp_path / "p.zarr"
    write_predictions(fitted(name), store, place)
    whole = read_predictions(place)
    arrays = [path for path in sorted(place.iterdir()) if (path / "c").exists()]
    assert len(arrays) > 1
    for array in arrays:
        chunk = max(path for path in (array / "c").rglob("*") if path.is_file())
        content = chunk.read_bytes()
        damaged = bytearray(content)
        damaged[len(content) // 2] ^= 4
        chunk.write_bytes(damaged)
        key = chunk.relative_to(place).as_posix()
        with pytest.raises(ModelError, match=rf"p\.zarr: .*object {key}\).*checksum"):
            read_predictions(place)
        chunk.write_bytes(content)
    pd.testing.assert_frame_equal(read_predictions(place), whole)


def test_a_missing_object_is_told(store, tmp_path):
    """An object that is gone would read as bags that were removed, or as predictions of NaN."""
    place = tmp_path / "p.zarr"
    write_predictions(fitted("class names"), store, place)
    for array in ("ids", "predictions", "probabilities"):
        chunk = next(path for path in sorted((place / array / "c").rglob("*")) if path.is_file())
        saved = chunk.rename(tmp_path / "kept")
        with pytest.raises(ModelError, match=rf"object {array}/c/0.*is missing"):
            read_predictions(place)
        saved.rename(chunk)
    for array in ("ids", "predictions", "probabilities"):
        next(path for path in sorted((place / array / "c").rglob("*")) if path.is_file()).unlink()
    with pytest.raises(ModelError, match=rf"holds predictions of \d+ of {N} bags; copy all of it"):
        read_predictions(place)


def test_damaged_tables(store, tmp_path):
    """A flip in Parquet is told with its file or changes nothing; a part that is gone is missed."""
    place = tmp_path / "p.parquet"
    write_predictions(fitted("one target"), store, place)
    part = sorted(place.iterdir())[1]
    content, whole, n_found = part.read_bytes(), read_predictions(place), 0
    for at in range(0, len(content), 61):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        part.write_bytes(damaged)
        try:
            pd.testing.assert_frame_equal(read_predictions(place), whole)
        except ModelError as error:
            assert re.search(rf"{part.name} is damaged|holds .* of", str(error))  # noqa: PT017 - or there is none
            n_found += 1
    assert n_found > 5
    part.unlink()
    with pytest.raises(ModelError, match=rf"holds predictions of \d+ of {N} bags"):
        read_predictions(place)


def test_what_is_not_predictions(store, tmp_path):
    """Nothing, a store, a model, unfinished predictions, a newer version's, another table."""
    fitted("one target").save(tmp_path / "m.zarr")
    (tmp_path / "t.csv").write_text("name,age\nx,3\n")
    place = tmp_path / "p.zarr"
    write_predictions(fitted("one target"), store, place)
    for name, value in (("newer", 9), ("begun", {})):
        shutil.copytree(place, tmp_path / name)
        zarr.open_group(tmp_path / name).update_attributes({"bagbasis_predictions": value})
    for name, message in {
        "nothing": "no predictions there",
        "m.zarr": "not written predictions",
        "t.csv": "not written predictions; their first column is 'id'",
        "newer": "predictions of format 9; this version reads 1",
        "begun": "predictions whose writing was interrupted; write the predictions again",
    }.items():
        with pytest.raises(ModelError, match=rf"{name}: .*{re.escape(message)}"):
            read_predictions(tmp_path / name)
    with pytest.raises(ModelError, match="not written predictions"):
        read_predictions(store.url)


@pytest.mark.parametrize(
    ("key", "value"),
    [("target_names", 3), ("target_names", ["a", "b"]), ("classes", 7), ("classes", [1]),
     ("target_names", None)],
)  # fmt: skip
def test_crafted_attributes(store, tmp_path, key, value):
    """Attributes of other types are told as damage, in one line of ours."""
    place = tmp_path / "p.zarr"
    write_predictions(fitted("classes" if key == "classes" else "two targets"), store, place)
    zarr.open_group(place).update_attributes({key: value})
    if (key, value) == ("target_names", ["a", "b"]):
        assert read_predictions(place).columns.tolist() == ["id", "a", "b"]
        return
    with pytest.raises(ModelError, match=r"p\.zarr: damaged predictions"):
        read_predictions(place)


def test_more_than_memory_holds(store, tmp_path, monkeypatch):
    """Predictions that do not fit into memory are refused before they are read."""
    write_predictions(fitted("one target"), store, tmp_path / "p.zarr")
    monkeypatch.setattr(predictions.reading, "available_memory", lambda: 1000)
    with pytest.raises(ModelError, match=r"the predictions take .* bytes, and 1,000 are free"):
        read_predictions(tmp_path / "p.zarr")


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_no_two_columns_of_one_name(tmp_path, format):
    """A target "id", or one that is called as a class's probabilities, would lose a column."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, ["id"])
    model = regressor().fit(store, target="id")
    with pytest.raises(ParameterError, match="target 'id': a table of predictions"):
        write_predictions(model, store, tmp_path / f"p.{format}")
    write_predictions(model, store, tmp_path / "p.zarr")
    codes = np.digitize(Y, [0.0]).astype(float)
    store = BagStore.create(tmp_path / "c.zarr", 2, target_names=["p_low"],
                            class_names={"p_low": ["low", "high"]}, overwrite=True)  # fmt: skip
    store.append(BAGS, {"p_low": np.array(["low", "high"])[codes.astype(int)]})
    model = classifier().fit(store, target="p_low")
    with pytest.raises(ParameterError, match="'p_low' has the name of the column"):
        write_predictions(model, store, tmp_path / f"p.{format}")
