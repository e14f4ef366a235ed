"""Predictions written next to the bags' ids: whole, in order, and never over something else."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagStore, DoubleBasisClassifier, ModelError, ParameterError, StoreError
from bagbasis.models import iter_predictions, read_predictions, write_predictions
from bagbasis.models.predictions import stored as stored_predictions
from tests.models.predicting import BAGS, FITS, IDS, N, Y, fitted, ids_of, read_zarr
from tests.oracles.labelled import stored
from tests.workers import two_workers

pytestmark = pytest.mark.usefixtures("many_blocks")
EACH_FIT = pytest.mark.parametrize(
    ("name", "store"), [*zip(FITS, [*IDS, *IDS], strict=True)], indirect=["store"]
)


@pytest.mark.long
@EACH_FIT
def test_as_other_programs_read_them(store, tmp_path, name):
    """Arrays with names in the attributes, or one table: ids, a column per target, p_<class>."""
    model = fitted(name)
    write_predictions(model, store, tmp_path / "p.zarr")
    write_predictions(model, store, tmp_path / "p", format="parquet")
    arrays, attributes = read_zarr(tmp_path / "p.zarr")
    table = pd.read_parquet(tmp_path / "p")
    assert (attributes["data_url"], attributes["target_names"]) == (store.url, [])
    assert arrays["ids"].tolist() == table["id"].tolist() == ids_of(store)
    expected = model.predict(BAGS)
    columns = ["prediction_0", "prediction_1"] if name == "two targets" else "prediction"
    for values in (arrays["predictions"], table[columns].to_numpy()):
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(values, expected, atol=1e-12)
        else:
            assert values.tolist() == expected.tolist()
    if isinstance(model, DoubleBasisClassifier):
        assert attributes["classes"] == model.classes_.tolist()
        columns = [f"p_{label}" for label in model.classes_.tolist()]
        for values in (arrays["probabilities"], table[columns]):
            np.testing.assert_allclose(values, model.predict_proba(BAGS), atol=1e-12)
    else:
        assert set(arrays) == {"ids", "predictions"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p", "p.zarr"]
    assert len(list((tmp_path / "p").iterdir())) == len(model.predict(store).chunks[0])


@pytest.mark.long
def test_on_workers(store, tmp_path):
    """Workers write their own blocks: the same files, ids and values as from one process."""
    with two_workers():
        for name in FITS:
            model = fitted(name)
            for format in ("zarr", "parquet"):
                place = tmp_path / f"{name} {format}"
                seen = []
                write_predictions(
                    model, store, place, format=format,
                    progress=lambda done, total, seen=seen: seen.append((done, total)),
                )  # fmt: skip
                assert seen[-1] == (N, N)
                assert seen == sorted(seen)
            expected = model.predict(BAGS).tolist()
            arrays, _ = read_zarr(tmp_path / f"{name} zarr")
            assert arrays["ids"].tolist() == ids_of(store)
            table = pd.read_parquet(tmp_path / f"{name} parquet")
            assert table["id"].tolist() == ids_of(store)
            written = table.iloc[:, 1:3].to_numpy() if name == "two targets" else table.iloc[:, 1]
            for values in (arrays["predictions"].tolist(), np.asarray(written).tolist()):
                assert values == (
                    expected if "class" in name else pytest.approx(np.array(expected), abs=1e-12)
                )
        rows = np.concatenate([block.rows for block in iter_predictions(fitted("classes"), store)])
        assert sorted(rows) == list(range(N))
        lazy = fitted("class names").predict(store).compute()
        assert lazy.tolist() == fitted("class names").predict(BAGS).tolist()


@pytest.mark.long
@pytest.mark.parametrize("format", ["zarr", "parquet"])
def test_other_filesystems(store, memory_url, format):
    """Predictions go to any URL, are replaced there when asked, and are read again."""
    for model, overwrite in ((fitted("classes"), False), (fitted("one target"), True)):
        write_predictions(model, store, memory_url, format=format, overwrite=overwrite)
        if format == "zarr":
            arrays, _ = read_zarr(memory_url)
            values, ids = arrays["predictions"], arrays["ids"]
        else:
            table = pd.read_parquet(memory_url)
            values, ids = table["prediction"], table["id"]
        np.testing.assert_allclose(values, model.predict(BAGS), atol=1e-12)
        assert ids.tolist() == ids_of(store) == read_predictions(memory_url)["id"].tolist()


@pytest.mark.long
@pytest.mark.parametrize("format", ["zarr", "parquet"])
def test_overwriting(store, tmp_path, format):
    """Predictions that are there are replaced only when asked, whatever their format."""
    place = tmp_path / "p"
    write_predictions(fitted("one target"), store, place, format="zarr")
    before = {path.name for path in place.iterdir()}
    with pytest.raises(ModelError, match="exists already"):
        write_predictions(fitted("classes"), store, place, format=format)
    assert {path.name for path in place.iterdir()} == before
    for _ in range(2):
        write_predictions(fitted("classes"), store, place, format=format, overwrite=True)
    if format == "parquet":
        assert len(pd.read_parquet(place)) == N
    else:
        assert len(read_zarr(place)[0]["probabilities"]) == N
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_only_predictions_are_replaced(tmp_path):
    """overwrite=True never deletes the data, a model or somebody's folder."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    fitted("one target").save(tmp_path / "m.zarr")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "part-000000000000.parquet").write_text("")
    (folder / "thesis.txt").write_text("years")
    places = {
        store.url: None,
        tmp_path / "m.zarr": None,
        folder: None,
        folder / "thesis.txt": "zarr",
    }
    for place, format in places.items():
        with pytest.raises(ModelError, match="exists and is not written predictions"):
            write_predictions(fitted("one target"), store, place, format=format, overwrite=True)
    store.verify()
    assert (folder / "thesis.txt").read_text() == "years"
    table = tmp_path / "mine.csv"
    table.write_text("name,value\na,1\n")
    with pytest.raises(ModelError, match="exists already and holds no predictions of bagbasis"):
        write_predictions(fitted("one target"), store, table, overwrite=True)
    assert table.read_text() == "name,value\na,1\n"
    table.write_text("")
    for _ in range(2):
        write_predictions(fitted("one target"), store, table, overwrite=True)
    assert len(read_predictions(table)) == N


@pytest.mark.long
@pytest.mark.parametrize("format", ["zarr", "parquet"])
def test_failure_leaves_nothing(store, tmp_path, monkeypatch, format):
    """A failure in the middle leaves no half-written predictions, and the old ones as they
    were; a full disk is one clear error."""
    place = tmp_path / "p"
    write_predictions(fitted("one target"), store, place, format=format)
    files = sorted(path.name for path in place.rglob("*"))
    finish = stored_predictions.CollectedPredictions.finish

    def failing(self):
        block = finish(self)
        if block.rows[0] > 30:
            raise OSError(28, "No space left on device")
        return block

    monkeypatch.setattr(stored_predictions.CollectedPredictions, "finish", failing)
    for target in (place, tmp_path / "q"):
        with pytest.raises(ModelError, match=r"writing predictions failed \(No space left"):
            write_predictions(fitted("classes"), store, target, format=format, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    assert sorted(path.name for path in place.rglob("*")) == files


def test_no_place_to_write(store, tmp_path):
    """A place that cannot be written is one clear error."""
    (tmp_path / "file").write_text("")
    for format in ("zarr", "parquet"):
        with pytest.raises(ModelError, match=r"file/p: writing predictions failed"):
            write_predictions(fitted("one target"), store, tmp_path / "file" / "p", format=format)


def test_damaged_store(tmp_path):
    """A chunk that cannot be read is the store's error, and leaves no predictions."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=50)
    shard = tmp_path / "s.zarr" / "points" / "c" / "0" / "0"
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.raises(StoreError, match=r"s\.zarr: array 'points'"):
        write_predictions(fitted("one target"), BagStore.open(store.url), tmp_path / "p.zarr")
    assert not (tmp_path / "p.zarr").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "format", "text"),
    [
        (
            "p.csv",
            "zarr",
            "format is 'zarr'; name it .zarr, or take format 'csv'",
        ),
        ("p.PARQUET", "csv", "ends in .parquet"),
        ("p.txt", None, "names that end in .zarr, .parquet, .csv"),
    ],
)
def test_the_names_ending_says_the_format(tmp_path, store, name, format, text):
    with pytest.raises(ParameterError, match=re.escape(text)):
        write_predictions(fitted("one target"), store, tmp_path / name, format=format)
    assert not (tmp_path / name).exists()
    write_predictions(fitted("one target"), store, tmp_path / "p.parquet")
    assert sorted(pd.read_parquet(tmp_path / "p.parquet")["id"]) == sorted(ids_of(store))


def test_empty_store(tmp_path):
    """Without bags there are no predictions, and they are written all the same."""
    empty = BagStore.create(tmp_path / "s.zarr", 2)
    write_predictions(fitted("classes"), empty, tmp_path / "p.zarr")
    arrays, _ = read_zarr(tmp_path / "p.zarr")
    assert arrays["predictions"].shape == (0,)
    write_predictions(fitted("classes"), empty, tmp_path / "p", format="parquet")
    assert list((tmp_path / "p").iterdir()) == []
    assert list(iter_predictions(fitted("classes"), empty)) == []


@pytest.mark.long
@pytest.mark.parametrize("store", IDS, indirect=True)
def test_csv(tmp_path, store):
    """One file, in the order of the bags, of numbers with all digits; it is replaced whole."""
    model, place = fitted("two targets"), tmp_path / "p.csv"
    write_predictions(model, store, place)
    table = pd.read_csv(place)
    assert table["id"].tolist() == ids_of(store)
    assert np.abs(table.drop(columns="id").to_numpy() - model.predict(BAGS)).max() <= 1e-12
    before = place.read_bytes()
    with pytest.raises(ModelError, match="exists already"):
        write_predictions(model, store, place)
    write_predictions(fitted("classes"), store, place, overwrite=True)
    assert before != place.read_bytes()
    assert list(tmp_path.glob("p.csv*")) == [place]
