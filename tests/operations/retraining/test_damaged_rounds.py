"""Sums, states and stores that are not what a round left: counted again, or refused by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from bagbasis import ConfigError, DoubleBasisRegressor, MomentsEmbedding, ParameterError, StoreError
from bagbasis.models.fitting.partials import read_partial, write_partial
from bagbasis.operations import retrain
from bagbasis.operations.retraining import round as new_round
from tests.operations.retraining.problems import (
    create,
    difference,
    estimator,
    files_of,
    from_scratch,
    grow,
    model_of,
    retrain_grown,
    spec,
)


def rewrite(state_url, change):
    """Change the sums and write them with right checksums."""
    (path,) = Path(state_url).glob("sums-*.npz")
    sums = read_partial(path)
    change(sums)
    write_partial(path, sums)


@pytest.mark.long
def test_periodic_check_finds_planted_corruption(settings, store, tmp_path, caplog):
    """A changed number under a right checksum is found by the check, loudly, and goes with it."""
    made = spec(tmp_path, recompute_every=2)
    rewrite(made.state_folder, lambda sums: sums.train.gram.__setitem__(5, 1e-3))
    grow(store, 30)
    report = retrain(made).report
    assert (report["check"], report["corrupt"]) == (None, False)
    assert difference(model_of(made, report), from_scratch(store)) > 1e-6
    caplog.clear()
    grow(store, 30)
    report = retrain(made).report
    assert report["corrupt"]
    assert report["check"]["differences"]["gram"] > 1e-6
    assert "CORRUPT SUMS" in caplog.text
    assert report["recomputed"] == "periodic check"
    assert difference(model_of(made, report), from_scratch(store)) < 1e-8
    caplog.clear()
    for expected in (None, "periodic check"):
        grow(store, 30)
        report = retrain(made).report
        assert (report["recomputed"], report["corrupt"]) == (expected, False)
    assert caplog.text == ""


@pytest.mark.long
@pytest.mark.parametrize("how", ["flipped", "lost", "of other bags"])
def test_damaged_sums_are_counted_again(settings, store, caplog, how):
    """Sums that fail their checksums, are gone or of another number of bags: all bags are counted
    again, which the report and the log say."""
    (path,) = Path(settings.state_folder).glob("sums-*.npz")
    if how == "lost":
        path.unlink()
    elif how == "flipped":
        content = bytearray(path.read_bytes())
        content[-1500] ^= 1
        path.write_bytes(bytes(content))
    else:
        state = json.loads(Path(settings.state_folder, "state.json").read_text())
        Path(settings.state_folder, "state.json").write_text(json.dumps(state | {"start": 3}))
    report = retrain_grown(settings, store)
    assert "damaged" in report["recomputed"]
    assert "damaged" in caplog.text
    assert report["bag_passes"]["recomputation"] == 260 - (3 if how == "of other bags" else 0)
    if how != "of other bags":
        assert difference(model_of(settings, report), from_scratch(store)) < 1e-8


@pytest.mark.long
def test_sums_of_another_version_are_counted_again(settings, store, monkeypatch):
    """Features may change between versions: their sums are not mixed."""
    monkeypatch.setattr(new_round, "version", lambda name: "99")
    assert retrain_grown(settings, store)["recomputed"].startswith(
        "the sums were those of bagbasis"
    )
    assert retrain_grown(settings, store)["recomputed"] is None


@pytest.mark.long
def test_replaced_or_shrunk_store(settings, store, tmp_path):
    """Another store at the URL is one clear line, and nothing is done; put back, it goes on."""
    before = files_of(tmp_path / "registry.retrain")
    for n, message in ((100, "has 100 bags, 200 were learned from"), (250, "other ids or sizes")):
        other = create(tmp_path / f"other-{n}.zarr")
        grow(other, n // 2)
        grow(other, n - n // 2)
        with pytest.raises(StoreError, match=message):
            retrain(spec(tmp_path, data_url=other.url))
    wider = type(store).create(
        tmp_path / "wider.zarr", 2, target_names=("y",), box=[(0, 2), (0, 1)]
    )
    grow(wider, 210)
    with pytest.raises(StoreError, match="its box is"):
        retrain(spec(tmp_path, data_url=wider.url))
    assert files_of(tmp_path / "registry.retrain") == before
    assert retrain_grown(settings, store)["recomputed"] is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "what"), [("point", "points"), ("label", "targets"), ("id", "ids or sizes")]
)
def test_store_made_anew_with_other_content(settings, store, changed, what, tmp_path):
    """As many bags as large: sums of bags that changed are not added to those of new bags."""
    parts, y, ids = [store[i].copy() for i in range(200)], store.targets()[:, 0], np.arange(200)
    if changed == "point":
        parts[5][0, 0] /= 2
    elif changed == "label":
        y[5] += 1
    else:
        ids[5] = 1000
    made = create(tmp_path / "made-anew.zarr").append(parts, y, ids=ids)
    state = files_of(settings.state_folder)
    for _ in range(2):  # without new bags, and with some
        with pytest.raises(StoreError, match=rf"before 200 have other {what}; put it back"):
            retrain(spec(tmp_path, data_url=made.url))
        assert files_of(settings.state_folder) == state
        grow(made, 10)


@pytest.mark.long
def test_store_made_anew_with_the_same_content(settings, store, tmp_path):
    """Appends in other parts, or a copy, go on."""
    parts, y = [store[i] for i in range(200)], store.targets()[:, 0]
    made = create(tmp_path / "made-anew.zarr")
    for a, b in ((0, 7), (7, 200)):
        made.append(parts[a:b], y[a:b])
    grow(made, 10)
    assert retrain(spec(tmp_path, data_url=made.url)).report["recomputed"] is None


@pytest.mark.long
def test_changed_settings(settings, tmp_path):
    """What the models of a sequence are made with stays; the key is named, and what to do."""
    made = spec(tmp_path, settings={"model": {"alpha": 0.2}})
    with pytest.raises(ConfigError, match=r"key 'model.alpha' is 0.2, .* give another state_url"):
        retrain(made)
    fresh = spec(tmp_path, settings={"model": {"alpha": 0.2}}, state_url=str(tmp_path / "new"))
    assert retrain(fresh).report["new_sequence"] == "first round"


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "k"}, "key 'target' is 'k', .* were made with None"),
        ({"holdout": 0.5}, r"key 'holdout' is 0\.5, .* were made with 0\.2"),
        ({"sample_weight": "k"}, "key 'sample_weight' is 'k', .* made with None"),
        ({"estimator": estimator(alpha=100)}, r"'estimator\.alpha' is 100, .* made with 0\.1"),
        ({"estimator": estimator("classification")}, "'estimator.name' is 'DoubleBasisClassifier'"),
        (
            {"estimator": DoubleBasisRegressor(MomentsEmbedding(), alpha=0.1)},
            "'estimator.embedding.name' is 'MomentsEmbedding', .* made with 'ProjectionEmbedding'",
        ),
        ({"estimator": estimator(alphas=np.ones(2))}, "'estimator.alphas' .* with its default"),
    ],
)
def test_changed_arguments(settings, store, tmp_path, changes, message):
    """From Python, too, a sequence keeps its target, its holdout, its weights and its estimator."""
    grow(store, 60)
    before = files_of(tmp_path)
    with pytest.raises(ConfigError, match=message):
        retrain(spec(tmp_path, **changes))
    assert files_of(tmp_path) == before
    assert retrain(spec(tmp_path)).decision == "promoted"


@pytest.mark.long
def test_settings_of_earlier_versions(settings, store, tmp_path):
    """A sequence begun in Python before settings were derived has none, and takes those given."""
    path = Path(settings.state_folder, "state.json")
    state = json.loads(path.read_text())
    path.write_text(json.dumps({**state, "settings": {}}))
    grow(store, 60)
    assert retrain(settings).decision == "promoted"
    assert json.loads(path.read_text())["settings"] == state["settings"]
    with pytest.raises(ParameterError, match="settings cannot be written as JSON"):
        retrain(spec(tmp_path, settings={"model": object()}))


@pytest.mark.long
@pytest.mark.parametrize("name", ["registry", "bags.zarr"])
def test_state_in_a_place_that_is_taken(settings, tmp_path, name):
    """The state has a folder of its own."""
    with pytest.raises(ConfigError, match=r"key 'state_url': .* is taken"):
        retrain(spec(tmp_path, state_url=str(tmp_path / name)))


@pytest.mark.long
@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format_version": 0}'])
def test_damaged_state(settings, tmp_path, text):
    """A state that cannot be read is named; nothing is guessed."""
    Path(settings.state_folder, "state.json").write_text(text)
    with pytest.raises(StoreError, match=r"state\.json: damaged"):
        retrain(settings)


@pytest.mark.long
@pytest.mark.parametrize("place", ["state", "round"])
def test_state_of_a_newer_version(settings, place):
    """It is whole: the version and the names are told, and nobody is advised to begin anew."""
    path = Path(settings.state_folder, "state.json")
    values = json.loads(path.read_text())
    values["version"] = "9.1"
    (values if place == "state" else values["rounds"][-1])["zz_new"] = 1
    path.write_text(json.dumps(values))
    message = r"state\.json: version 9.1 of bagbasis wrote it, with 'zz_new'.*; update bagbasis$"
    with pytest.raises(StoreError, match=message):
        retrain(settings)


def test_state_that_is_a_pipe(settings):
    """It is refused at once; nobody waits for a writer that never comes."""
    path = Path(settings.state_folder, "state.json")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match=r"state\.json: not a regular file but a pipe"):
        retrain(settings)
