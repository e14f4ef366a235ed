"""Models that are damaged, of another version, or none: one clear error when they are loaded."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import zarr

from bagbasis import BagbasisError, ModelError, load_model
from bagbasis.models.saving import MODEL_CHECKSUM, MODEL_KEY
from tests.models.edited import edit_attributes, edit_state, saved_state
from tests.models.predicting import BAGS, Y, fitted
from tests.oracles.labelled import stored


def test_not_a_model(tmp_path):
    """Nothing, a file, an empty folder, another Zarr group and a bag store are no models."""
    (tmp_path / "file").write_text("{}")
    (tmp_path / "folder").mkdir()
    zarr.open_group(str(tmp_path / "group"), mode="w").attrs["bagbasis_model"] = 5
    stored(tmp_path / "store", BAGS, Y)
    with pytest.raises(ModelError, match="nothing: no model there"):
        load_model(tmp_path / "nothing")
    for name in ("file", "folder", "group", "store"):
        with pytest.raises(ModelError, match=f"{name}: not a saved model"):
            load_model(tmp_path / name)


@pytest.fixture
def saved(tmp_path):
    fitted("one target").save(tmp_path / "m.zarr")
    return tmp_path / "m.zarr"


def test_model_of_a_later_version(saved):
    """A format this version does not know is refused with both numbers."""
    edit_state(saved, lambda state: state.update(format_version=2))
    with pytest.raises(ModelError, match="model of format 2; this version reads 1"):
        load_model(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(estimator="os.system"),
        lambda state: state.pop("features"),
        lambda state: state["features"]["embedding"].update(n_per_dim=5),
        lambda state: state["features"]["embedding"].update(basis="haar"),
        lambda state: state["features"]["embedding"].update(box=[[0, 0], [0, 1]]),
        lambda state: state["features"]["random_features"].update(n_features=64),
        lambda state: state["features"]["random_features"].update(n_inputs=17),
        lambda state: state.update(classes=[1, 2, 3]),
        lambda state: state.update(features=None),
        lambda state: state.update(random_features=7),
        lambda state: state["params"].update(precision=2**70),
        lambda state: state["params"].update(precision={}),
        lambda state: state["params"].update(precision=["f4"]),
        lambda state: state.update(report=[[1]]),
        lambda state: state["report"].update(n_points_seen=[]),
        lambda state: state["report"].update(n_points_seen="1"),
        lambda state: state["report"].update(n_points_outside_box={}),
        lambda state: state["report"].update(n_bags_fitted=-1),
        *(
            lambda state, key=key, weight=weight: state["report"].update({key: weight})
            for key in ("weight_fitted", "baseline_alpha")
            for weight in (-1.0, "1", True, float("inf"))
        ),
        lambda state: state["report"].update(coordinates="xy"),
        lambda state: state["report"].update(coordinates=[1, 2]),
        lambda state: state["report"].update(choice="moments"),
        lambda state: state["report"].update(choice={"tried": [1]}),
        lambda state: state["report"].update(frame_columns=3),
    ],
)
def test_damaged_description(saved, change):
    """A description that does not fit together is one clear error, never a wrong prediction."""
    edit_state(saved, change)
    with pytest.raises(ModelError, match=r"m\.zarr: damaged model"):
        load_model(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["features"]["random_features"].update(scale=0.5),
        lambda state: state["report"].update(n_bags=99),
        lambda state: state["params"].update(alpha=9.0),
    ],
)
def test_a_state_without_its_checksum(saved, change):
    """Values that could be right are refused; a model of an earlier version has no checksum."""
    expected = load_model(saved).predict(BAGS)
    edit_attributes(saved, lambda attributes: attributes.pop(MODEL_CHECKSUM))
    np.testing.assert_array_equal(load_model(saved).predict(BAGS), expected)
    edit_state(saved, lambda state: None)
    edit_attributes(saved, lambda attributes: change(attributes[MODEL_KEY]))
    with pytest.raises(ModelError, match=r"m\.zarr: damaged model \(.*checksum.*; restore it"):
        load_model(saved)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("zz_new", lambda state: state["params"].update(zz_new=1)),
        ("wrong", lambda state: state["features"]["random_features"].update(wrong=1)),
    ],
)
@pytest.mark.parametrize("saved_by", ["9.1", None])
def test_names_of_a_newer_version(saved, saved_by, name, change):
    """A name that this version does not know is told, with the version that saved the model."""
    edit_state(saved, change)
    own = saved_state(saved)["versions"]["bagbasis"]
    if saved_by is not None:
        edit_state(saved, lambda state: state["versions"].update(bagbasis=saved_by))
    message = f"m\\.zarr: version {saved_by or own} of bagbasis wrote it, with '{name}'.*; update"
    with pytest.raises(ModelError, match=message) as caught:
        load_model(saved)
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(estimator="DoubleBasisForecaster"),
        lambda state: state.update(format_version=2),
    ],
)
def test_values_of_a_newer_version(saved, change):
    """An estimator or a format of a later version is not damage either."""
    edit_state(saved, change)
    edit_state(saved, lambda state: state["versions"].update(bagbasis="9.1"))
    with pytest.raises(ModelError, match=r"version 9.1 of bagbasis wrote it.*update") as caught:
        load_model(saved)
    assert "damaged" not in str(caught.value)


def test_an_embedding_that_is_not_registered(saved):
    """Nor is one of another package, or of a later version: the error says what is missing."""
    edit_state(saved, lambda state: state["features"]["embedding"].update(name="hologram"))
    with pytest.raises(ModelError, match=r"m\.zarr: .*embedding 'hologram'.*install") as caught:
        load_model(saved)
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize("bag", [0, 3, len(BAGS) - 1])
def test_a_removed_bag_is_not_predicted(tmp_path, bag):
    """It is named, with what to do; the store is whole and not to be verified."""
    store = stored(tmp_path / "s.zarr", BAGS, Y).remove([bag])
    message = rf"bag {bag}\b.*it has no points: it is empty, or was removed; leave it out"
    with pytest.raises(BagbasisError, match=message):
        fitted("one target").predict(store.read())


def chunk_of(place, array):
    return next(path for path in (place / array).rglob("*") if path.is_file() and "c" in path.parts)


@pytest.mark.parametrize("array", ["coef", "alphas"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied"])
def test_damaged_chunk(saved, array, damage):
    """A chunk cut short, with one bit changed, or emptied is found when the model is loaded."""
    chunk = chunk_of(saved, array)
    content = bytearray(chunk.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "emptied":
        content = bytearray()
    else:
        content[len(content) // 2] ^= 4
    chunk.write_bytes(content)
    with pytest.raises(ModelError, match=r"m\.zarr: damaged model"):
        load_model(saved)


@pytest.mark.parametrize("array", ["coef", "intercept"])
@pytest.mark.parametrize("lost", ["chunk", "array"])
def test_lost_data(saved, array, lost):
    """Coefficients that are gone are an error, not zeros."""
    if lost == "chunk":
        chunk_of(saved, array).unlink()
    else:
        shutil.rmtree(saved / array)
    with pytest.raises(ModelError, match=r"m\.zarr: damaged model"):
        load_model(saved)


@pytest.mark.parametrize("current", ["../other.zarr", "coef", f"generation-{'0' * 32}", 7])
def test_a_model_that_points_nowhere(saved, current):
    """What holds the arrays is a generation within the model, and nothing else."""
    fitted("one target").save(saved.parent / "other.zarr")
    edit_attributes(saved, lambda attributes: attributes.update(bagbasis_current=current))
    with pytest.raises(ModelError, match=r"m\.zarr: damaged model"):
        load_model(saved)
