"""Saving and loading: the same model comes back, written atomically, and nothing is executed."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import fsspec
import numpy as np
import pytest
import zarr

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ModelError,
    ProjectionEmbedding,
    load_model,
)
from bagbasis.data.storage import folders
from bagbasis.models import loading, save_model, saving
from tests.models.predicting import BAGS, CODES, NAMES, N, Y, bases, classifier
from tests.oracles.labelled import stored


def regressor(embedding=None, n_features=32, **params):
    """In float32, unlike the models that are only predicted with."""
    first, second = bases()
    second.set_params(n_features=n_features)
    return DoubleBasisRegressor(embedding or first, second, **{"alpha": 0.1, **params})


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(BAGS, Y)


@pytest.fixture(params=["path", "memory://"])
def url(request, tmp_path):
    """A place for a model: a local path, or a filesystem of objects."""
    folder = tmp_path if request.param == "path" else request.getfixturevalue("memory_url")
    return f"{folder}/model.zarr"


MODELS = {
    "defaults": lambda: DoubleBasisRegressor(alpha=1.0).fit(BAGS[:9], Y[:9]),
    "several targets": lambda: regressor().fit(BAGS, np.stack([Y, Y**2], axis=1)),
    "one row of targets": lambda: regressor().fit(BAGS, Y[:, None]),
    "ball": lambda: regressor(ProjectionEmbedding(basis="legendre", max_norm=2.5)).fit(BAGS, Y),
    "auto": lambda: regressor(ProjectionEmbedding(max_norm="auto")).fit(BAGS, Y),
    "marginals": lambda: regressor(
        ProjectionEmbedding(basis="trigonometric", n_per_dim=5, marginals=1, out_of_box="drop")
    ).fit(BAGS, Y),
    "given box": lambda: regressor(
        ProjectionEmbedding(n_per_dim=3, box=np.array([[0, 1.5], [-0.1, 1]]))
    ).fit(BAGS, Y),
    "gcv": lambda: regressor(alpha="gcv", alphas=np.array([1e-3, 1.0])).fit(BAGS, Y),
    "validation in double": lambda: regressor(alpha="validation", precision="float64").fit(BAGS, Y),
    "holdout": lambda: regressor(alpha=np.float32(0.5)).fit(BAGS, Y, holdout=0.3),
    "small weights": lambda: regressor().fit(BAGS, Y, sample_weight=np.full(N, 0.1 / N)),
    "least squares": lambda: regressor(n_features=200, alpha=0).fit(BAGS, Y),
    "classes": lambda: classifier().fit(BAGS, CODES),
    "class names": lambda: classifier().fit(BAGS, NAMES[CODES]),
    "classes that are no integers": lambda: classifier().fit(BAGS, CODES * 0.1),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_round_trip(url, name):
    """Whatever was fitted predicts the same bits after loading, and keeps what it knows."""
    model = MODELS[name]()
    model.save(url)
    loaded = load_model(url)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(BAGS), model.predict(BAGS))
    assert loaded.predict(BAGS).dtype == model.predict(BAGS).dtype
    for array in ("coef_", "intercept_", "alphas_", "alpha_scores_", "mean_coefficients_"):
        if hasattr(model, array):
            np.testing.assert_array_equal(getattr(loaded, array), getattr(model, array))
    for attribute in ("features_", "alpha_", "holdout_", "target_names_", "report_"):
        assert getattr(loaded, attribute) == getattr(model, attribute)
    if isinstance(model, DoubleBasisClassifier):
        np.testing.assert_array_equal(loaded.predict_proba(BAGS), model.predict_proba(BAGS))
        assert loaded.classes_.dtype.kind == model.classes_.dtype.kind
        assert loaded.classes_.tolist() == model.classes_.tolist()


@pytest.mark.long
@pytest.mark.parametrize("name", ["auto", "given box", "gcv", "class names", "defaults"])
def test_parameters_come_back(tmp_path, name):
    """A loaded model can be fitted again: its parameters are those it was made with."""
    model = MODELS[name]()
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    y = NAMES[CODES] if isinstance(model, DoubleBasisClassifier) else Y
    again = loaded.fit(BAGS, y)
    np.testing.assert_array_equal(again.predict(BAGS), model.fit(BAGS, y).predict(BAGS))


def test_the_run_that_saved_a_model_is_known(fitted, tmp_path):
    """By its name; a model that no run saved is of none."""
    for run in ("first", "second", None):
        save_model(fitted, tmp_path / "m.zarr", overwrite=True, run=run)
        known = [saving.is_of_run(tmp_path / "m.zarr", name) for name in ("first", "second", None)]
        assert known == [run == "first", run == "second", False]


@pytest.mark.parametrize("n_features", [32, 64])
def test_model_that_is_replaced_while_it_is_read(url, fitted, monkeypatch, n_features):
    """The reader gets the new model, and not the old one's state with the new one's arrays."""
    other = regressor(n_features=n_features, alpha=7.0).fit(BAGS, Y)
    fitted.save(url)
    read_state = loading.read_model_state

    def replaced(place):
        state = read_state(place)
        monkeypatch.setattr(loading, "read_model_state", read_state)
        other.save(url, overwrite=True)
        return state

    monkeypatch.setattr(loading, "read_model_state", replaced)
    loaded = load_model(url)
    assert loaded.alpha_ == 7.0
    np.testing.assert_array_equal(loaded.predict(BAGS), other.predict(BAGS))


def test_model_remembers_its_data(tmp_path):
    """Box, names, versions, the data's URL and its counts at the time of the fit."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, ["income"], box=[(0, 2), (-1, 1)])
    regressor().fit(store).save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    assert loaded.features_.embedding.box.bounds == [[0.0, 2.0], [-1.0, 1.0]]
    assert loaded.target_names_ == ("income",)
    assert loaded.report_["data_url"] == store.url
    assert loaded.report_["n_bags"] == N
    assert loaded.report_["n_points"] == store.n_points
    assert {"bagbasis", "numpy", "python"} <= set(loaded.versions_)


def test_nothing_on_disk_can_be_executed(tmp_path):
    """The files are Zarr's JSON and its chunks: no pickle, by name or by content."""
    for name in ("class names", "auto"):
        MODELS[name]().save(tmp_path / name)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        assert path.name == "zarr.json" or path.parts[-2] in ("c", "0"), path
        content = path.read_bytes()
        if path.name == "zarr.json":
            text = json.dumps(json.loads(content)).lower()
            assert "pickle" not in text
            assert "object" not in text
        else:
            assert content[:1] != b"\x80"  # a pickle begins with it


def test_overwriting(fitted, url):
    """A model that is there is replaced only when asked, and then as a whole."""
    fitted.save(url)
    other = MODELS["several targets"]()
    with pytest.raises(ModelError, match=r"model\.zarr: exists already; .*overwrite=True"):
        other.save(url)
    np.testing.assert_array_equal(load_model(url).predict(BAGS), fitted.predict(BAGS))
    other.save(url, overwrite=True)
    np.testing.assert_array_equal(load_model(url).predict(BAGS), other.predict(BAGS))


def test_only_models_are_replaced(fitted, tmp_path):
    """overwrite=True never deletes what is not a model: a store, a folder, a file."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years")
    file.write_text("years")
    for place in (store.url, folder, file):
        with pytest.raises(ModelError, match="exists and is not a saved model"):
            fitted.save(place, overwrite=True)
    BagStore.open(store.url).verify()
    assert (folder / "thesis.txt").read_text() == file.read_text() == "years"


class Crash(BaseException):
    """What is not an Exception: a signal, an exit."""


@pytest.mark.parametrize("error", [Crash(), OSError(28, "No space left on device"), KeyError("k")])
@pytest.mark.parametrize("step", ["arrays", "attributes", "exchange_paths", "rename"])
def test_crash_leaves_the_old_model(fitted, tmp_path, monkeypatch, error, step):
    """Whatever fails while a model is replaced, the old one is there afterwards, and nothing
    else; a full disk is one clear error."""
    place = tmp_path / "m.zarr"
    fitted.save(place)
    rename = Path.rename

    def failing_rename(a, b):
        if Path(b) == place and ".partial" in a.name and len(list(tmp_path.iterdir())) == 2:
            monkeypatch.setattr(Path, "rename", rename)
            raise error
        return rename(a, b)

    def fail(*args, **kwargs):
        raise error

    with monkeypatch.context() as patch:
        if step == "arrays":
            patch.setattr(zarr.Group, "create_array", fail)
        elif step == "attributes":
            patch.setattr(zarr.Group, "update_attributes", fail)
        elif step == "exchange_paths":
            patch.setattr(folders, "exchange_paths", fail)
        else:
            patch.setattr(folders, "exchange_paths", lambda *names: False)
            patch.setattr(Path, "rename", failing_rename)
        expected = ModelError if isinstance(error, OSError) else type(error)
        with pytest.raises(expected) as caught:
            MODELS["several targets"]().save(place, overwrite=True)
    if isinstance(error, OSError):
        assert "m.zarr: saving failed (No space left on device); nothing was saved" in str(
            caught.value
        )
    assert [path.name for path in tmp_path.iterdir()] == ["m.zarr"]
    np.testing.assert_array_equal(load_model(place).predict(BAGS), fitted.predict(BAGS))


def test_interrupted_saving_of_objects(fitted, monkeypatch):
    """Where nothing can be renamed, nothing is there before the last write."""
    place = f"memory://{uuid.uuid4().hex}/m.zarr"

    def fail(*args, **kwargs):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(zarr.Group, "update_attributes", fail)
        with pytest.raises(Crash):
            fitted.save(place)
    with pytest.raises(ModelError, match="no model there"):
        load_model(place)
    fitted.save(place)
    np.testing.assert_array_equal(load_model(place).predict(BAGS), fitted.predict(BAGS))


def test_no_place_to_save(fitted, tmp_path):
    """A place that cannot be written, or a protocol that is not there, is one clear error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"file/m\.zarr: saving failed"):
        fitted.save(tmp_path / "file" / "m.zarr")
    with pytest.raises(ModelError, match="nowhere://m"):
        fitted.save("nowhere://m")
    with pytest.raises(ModelError, match="nowhere://m"):
        load_model("nowhere://m")


def test_not_fitted(tmp_path):
    """There is nothing to save before fit."""
    with pytest.raises(ModelError, match="not fitted"):
        regressor().save(tmp_path / "m.zarr")
    assert not (tmp_path / "m.zarr").exists()


def test_embedding_that_is_not_registered(fitted, tmp_path):
    """An embedding that loading would not know is refused before anything is written."""

    class Mine(ProjectionEmbedding):
        pass

    model = regressor(Mine(n_per_dim=3))
    model.fit(BAGS, Y)
    with pytest.raises(ModelError, match="embedding of type Mine cannot be saved"):
        model.save(tmp_path / "m.zarr")
    assert list(tmp_path.iterdir()) == []


def test_model_moves(fitted, url, tmp_path):
    """A model is its folder: it can be copied anywhere, and replaced there."""
    fitted.save(url)
    fs, path = fsspec.core.url_to_fs(str(url))
    fs.get(path, str(tmp_path / "elsewhere" / "b.zarr"), recursive=True)
    loaded = load_model(Path(tmp_path / "elsewhere" / "b.zarr"))
    np.testing.assert_array_equal(loaded.predict(BAGS), fitted.predict(BAGS))
    loaded.save(tmp_path / "elsewhere" / "b.zarr", overwrite=True)
