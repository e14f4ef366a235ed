"""Predicting a store: lazily, block by block, or written beside its ids."""

from __future__ import annotations

import uuid
from functools import cache, partial

import fsspec
import numpy as np
import pandas as pd
import pytest
import zarr

from pipeline import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    connect,
    features,
)
from pipeline.bags import reading
from pipeline.errors import DataError, ModelError, ParameterError, StoreError
from pipeline.models import iter_predictions, predictions, write_predictions
from pipeline.regression import prediction
from pipeline.regression.double_basis import HOLDOUT_SEED
from pipeline.regression.split import Split
from tests.oracles.labelled import features_by_loop, labelled_bags, stored

N = 70
BAGS, Y = labelled_bags(N, most=30)
CODES = np.digitize(Y, [-0.3, 0.4])
NAMES = np.array(["low", "middle", "üpper"])
IDS = {"int": np.arange(N)[::-1] * 7 - 20, "str": [f"bäg {i}" for i in range(N)]}


def bases():
    return ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(32)


def regressor(**params):
    return DoubleBasisRegressor(*bases(), **{"alpha": 0.1, "precision": "float64", **params})


def classifier(**params):
    return DoubleBasisClassifier(*bases(), **{"alpha": 0.1, "precision": "float64", **params})


FITS = {
    "one target": lambda: regressor().fit(BAGS, Y),
    "two targets": lambda: regressor().fit(BAGS, np.stack([Y, Y**2], axis=1)),
    "classes": lambda: classifier().fit(BAGS, CODES),
    "class names": lambda: classifier().fit(BAGS, NAMES[CODES]),
}


@cache
def fitted(name):
    return FITS[name]()


@pytest.fixture(scope="module", params=["int", "str"])
def store(request, tmp_path_factory):
    """Bags with integer or string ids, in many partitions."""
    url = tmp_path_factory.mktemp("data") / "s.zarr"
    return stored(url, BAGS, Y, ids=IDS[request.param], chunk_points=50)


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch):
    """Predictions are cut into blocks of a dozen bags, each of several partitions."""
    monkeypatch.setattr(prediction, "BLOCK_SECONDS", 12 * seconds_a_bag())
    monkeypatch.setattr(reading.partitions, "__defaults__", (60 * 16,))


def seconds_a_bag():
    model = fitted("one target").features_
    points = sum(map(len, BAGS)) / N
    products = model.n_features * model.embedding.n_features
    return points * model.embedding.cost + 5e-9 * model.n_features + 2e-11 * products


@pytest.fixture
def memory_url():
    place = f"memory://{uuid.uuid4().hex}/p"
    yield place
    fs = fsspec.filesystem("memory")
    if fs.exists(place):
        fs.rm(place, recursive=True)


def ids_of(store):
    return store.ids().tolist()


def read_zarr(url):
    group = zarr.open_group(str(url), mode="r", zarr_format=3)
    return {name: array[:] for name, array in group.arrays()}, dict(group.attrs)


@pytest.mark.parametrize("name", FITS)
def test_lazy_predictions(store, name):
    """A store's predictions are a dask.array of known shape, dtype and chunks; nothing is read
    before it is computed, and its values are those of the bags in memory."""
    model = fitted(name)
    lazy = model.predict(store)
    expected = model.predict(BAGS)
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    assert 5 <= len(lazy.chunks[0]) <= 7
    values = lazy.compute()
    if values.dtype.kind == "f":
        np.testing.assert_allclose(values, expected, atol=1e-12)
    else:
        np.testing.assert_array_equal(values, expected)
    assert values.dtype == expected.dtype
    if isinstance(model, DoubleBasisClassifier):
        shares = model.predict_proba(store)
        assert shares.shape == (N, 3)
        np.testing.assert_allclose(shares.compute(), model.predict_proba(BAGS), atol=1e-12)


def test_lazy_predictions_of_no_bags(tmp_path):
    """An empty store has predictions of length zero."""
    empty = BagStore.create(tmp_path / "s.zarr", 2)
    for name in FITS:
        model = fitted(name)
        assert model.predict(empty).compute().shape == ((0, 2) if name == "two targets" else (0,))
    assert fitted("classes").predict_proba(empty).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features(store, dtype):
    """features() gives z of every bag, or the embeddings alone, in chunks of bags, for any
    other library."""
    model = fitted("one target")
    first, second = model.features_.embedding, model.features_.fourier
    embedding, random_features = bases()
    z = features(store, embedding, random_features, dtype=dtype)
    a = features(store, embedding, dtype=dtype)
    assert z.shape == (N, 32)
    assert a.shape == (N, 16)
    assert z.dtype == a.dtype == dtype
    atol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(z.compute(), features_by_loop(model, BAGS), atol=atol)
    embedding.fit(BAGS)
    np.testing.assert_allclose(a.compute(), embedding.set_params(dtype=dtype).transform(BAGS))
    random_features.fit(embedding.set_params(dtype="float64").transform(BAGS))
    assert (embedding.spec_, random_features.spec_) == (first, second)
    again = features(store, embedding, random_features, dtype=dtype)
    np.testing.assert_array_equal(again.compute(), z.compute())


def test_chunks_of_features_fit_in_memory(store, monkeypatch):
    """Blocks of wide rows are cut by their bytes too."""
    monkeypatch.setattr(prediction, "BLOCK_BYTES", 5 * 32 * 4)
    assert features(store, *bases()).chunks[0] == (5,) * 14


def test_features_of_no_bags(tmp_path):
    """A width can not be measured on nothing: the error says so; embeddings need none."""
    empty = BagStore.create(tmp_path / "s.zarr", 2)
    assert features(empty, ProjectionEmbedding(n_per_dim=3)).compute().shape == (0, 9)
    with pytest.raises(DataError, match="no bags"):
        features(empty, *bases())


@pytest.mark.parametrize("name", FITS)
def test_written_as_zarr(store, tmp_path, name):
    """Arrays of predictions, probabilities and ids, and names in the attributes."""
    model = fitted(name)
    write_predictions(model, store, tmp_path / "p.zarr")
    arrays, attributes = read_zarr(tmp_path / "p.zarr")
    assert arrays["ids"].tolist() == ids_of(store)
    expected = model.predict(BAGS)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(arrays["predictions"], expected, atol=1e-12)
    else:
        assert arrays["predictions"].tolist() == expected.tolist()
    assert attributes["data_url"] == store.url
    assert attributes["target_names"] == []
    if isinstance(model, DoubleBasisClassifier):
        np.testing.assert_allclose(arrays["probabilities"], model.predict_proba(BAGS), atol=1e-12)
        assert attributes["classes"] == model.classes_.tolist()
    else:
        assert set(arrays) == {"ids", "predictions"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.zarr"]


@pytest.mark.parametrize("name", FITS)
def test_written_as_parquet(store, tmp_path, name):
    """One table in the order of the store: id, a column a target, and p_<class>."""
    model = fitted(name)
    write_predictions(model, store, tmp_path / "p", format="parquet")
    table = pd.read_parquet(tmp_path / "p")
    assert table["id"].tolist() == ids_of(store)
    expected = model.predict(BAGS)
    if name == "two targets":
        values = table[["prediction_0", "prediction_1"]].to_numpy()
    else:
        values = table["prediction"].to_numpy()
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(values, expected, atol=1e-12)
    else:
        assert values.tolist() == expected.tolist()
    if isinstance(model, DoubleBasisClassifier):
        columns = [f"p_{label}" for label in model.classes_.tolist()]
        np.testing.assert_allclose(table[columns], model.predict_proba(BAGS), atol=1e-12)
    assert len(list((tmp_path / "p").iterdir())) == len(model.predict(store).chunks[0])


def test_columns_are_named_by_the_targets(tmp_path):
    """A model fitted on a store's targets writes columns of their names."""
    table = np.stack([Y, Y**2], axis=1)
    two = stored(tmp_path / "s.zarr", BAGS, table, ["income", "age"])
    write_predictions(
        regressor().fit(two, target=["age", "income"]), two, tmp_path / "a", format="parquet"
    )
    assert pd.read_parquet(tmp_path / "a").columns.tolist() == ["id", "age", "income"]
    write_predictions(regressor().fit(two, target="age"), two, tmp_path / "b", format="parquet")
    assert pd.read_parquet(tmp_path / "b").columns.tolist() == ["id", "age"]


def test_on_workers(store, tmp_path):
    """Workers write their own blocks: the same files, ids and values as from one process."""
    with connect("local", n_workers=1, cores_per_worker=1):
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


@pytest.mark.parametrize("format", ["zarr", "parquet"])
def test_other_filesystems(store, memory_url, format):
    """Predictions go to any URL, and are replaced there when asked."""
    for model, overwrite in ((fitted("classes"), False), (fitted("one target"), True)):
        write_predictions(model, store, memory_url, format=format, overwrite=overwrite)
        if format == "zarr":
            arrays, _ = read_zarr(memory_url)
            values, ids = arrays["predictions"], arrays["ids"]
        else:
            table = pd.read_parquet(memory_url)
            values, ids = table["prediction"], table["id"]
        np.testing.assert_allclose(values, model.predict(BAGS), atol=1e-12)
        assert ids.tolist() == ids_of(store)


def test_empty_store(tmp_path):
    """Of no bags there are no predictions, written all the same."""
    empty = BagStore.create(tmp_path / "s.zarr", 2)
    write_predictions(fitted("classes"), empty, tmp_path / "p.zarr")
    arrays, _ = read_zarr(tmp_path / "p.zarr")
    assert arrays["predictions"].shape == (0,)
    write_predictions(fitted("classes"), empty, tmp_path / "p", format="parquet")
    assert list((tmp_path / "p").iterdir()) == []
    assert list(iter_predictions(fitted("classes"), empty)) == []


@pytest.mark.parametrize("kind", [regressor, classifier])
def test_subsets(store, kind):
    """ "holdout" are the bags that the fit left out, "train" the others, "all" both; rows say
    which bag a prediction is of."""
    held = Split(0.3, HOLDOUT_SEED).members(0, N)
    y = Y if kind is regressor else CODES
    model = kind().fit(BAGS, y, holdout=0.3)
    expected = model.predict(BAGS)
    for subset, members in (("holdout", held), ("train", ~held), ("all", np.full(N, True))):
        seen = []
        blocks = list(
            iter_predictions(
                model,
                store,
                subset=subset,
                progress=lambda done, total, seen=seen: seen.append(done),
            )
        )
        rows = np.concatenate([block.rows for block in blocks])
        assert rows.tolist() == np.flatnonzero(members).tolist()
        values = np.concatenate([block.prediction for block in blocks])
        np.testing.assert_allclose(values, expected[members], atol=1e-12)
        assert seen[-1] == N
        if kind is classifier:
            shares = np.concatenate([block.probabilities for block in blocks])
            np.testing.assert_allclose(shares, model.predict_proba(BAGS)[members], atol=1e-12)


def test_blocks_without_members_are_left_out(store):
    """A block none of whose bags is in the subset is not yielded."""
    model = regressor().fit(BAGS, Y, holdout=0.02)
    blocks = list(iter_predictions(model, store, subset="holdout"))
    held = Split(0.02, HOLDOUT_SEED).members(0, N)
    assert sum(len(block.rows) for block in blocks) == held.sum()
    assert all(len(block.rows) for block in blocks)


def test_wrong_requests(store, tmp_path):
    """An unknown subset or format, a holdout that was not, another dimension, no fit."""
    model = fitted("one target")
    write = partial(write_predictions, url=tmp_path / "p")
    with pytest.raises(ParameterError, match="subset is 'test'"):
        next(iter_predictions(model, store, subset="test"))
    with pytest.raises(ModelError, match="held no bags out"):
        next(iter_predictions(model, store, subset="holdout"))
    with pytest.raises(ParameterError, match="format is 'csv'"):
        write(model, store, format="csv")
    with pytest.raises(ModelError, match="not fitted"):
        write(regressor(), store)
    flat = stored(tmp_path / "flat.zarr", [bag[:, :1] for bag in BAGS], None)
    for attempt in (lambda: write(model, flat), lambda: next(iter_predictions(model, flat))):
        with pytest.raises(ModelError, match=r"dimension 2, .*flat\.zarr holds dimension 1"):
            attempt()
    assert not (tmp_path / "p").exists()


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
    for place in (store.url, tmp_path / "m.zarr", folder, folder / "thesis.txt"):
        with pytest.raises(ModelError, match="exists and is not written predictions"):
            write_predictions(fitted("one target"), store, place, overwrite=True)
    store.verify()
    assert (folder / "thesis.txt").read_text() == "years"


@pytest.mark.parametrize("format", ["zarr", "parquet"])
def test_failure_leaves_nothing(store, tmp_path, monkeypatch, format):
    """A failure in the middle leaves no half-written predictions, and the old ones as they
    were; a full disk is one clear error."""
    place = tmp_path / "p"
    write_predictions(fitted("one target"), store, place, format=format)
    files = sorted(path.name for path in place.rglob("*"))
    predict = predictions._PredictTask.__call__

    def failing(self, bag_range, report):
        if bag_range[0] > 30:
            raise OSError(28, "No space left on device")
        return predict(self, bag_range, report)

    monkeypatch.setattr(predictions._PredictTask, "__call__", failing)
    for target in (place, tmp_path / "q"):
        with pytest.raises(ModelError, match=r"writing predictions failed \(No space left"):
            write_predictions(fitted("classes"), store, target, format=format, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    assert sorted(path.name for path in place.rglob("*")) == files


def test_no_place_to_write(store, tmp_path):
    """A place that can not be written is one clear error."""
    (tmp_path / "file").write_text("")
    for format in ("zarr", "parquet"):
        with pytest.raises(ModelError, match=r"file/p: writing predictions failed"):
            write_predictions(fitted("one target"), store, tmp_path / "file" / "p", format=format)


def test_damaged_store(tmp_path):
    """A chunk that can not be read is the store's error, and leaves no predictions."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=50)
    shard = tmp_path / "s.zarr" / "points" / "c" / "0" / "0"
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.raises(StoreError, match=r"s\.zarr: array 'points'"):
        write_predictions(fitted("one target"), BagStore.open(store.url), tmp_path / "p.zarr")
    assert not (tmp_path / "p.zarr").exists()
