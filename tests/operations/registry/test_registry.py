"""The registry: names by content, one champion with its history, and clear refusals."""

from __future__ import annotations

import re
import shutil
import uuid
from datetime import datetime

import fsspec
import numpy as np
import pytest

from bagbasis import (
    ModelError,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    load_model,
)
from bagbasis.data.storage.lock import Hold, writer_lock
from bagbasis.operations import Registry
from bagbasis.operations.registry import content, registry as registry_module
from tests.models.edited import edit_state
from tests.models.predicting import BAGS, FITS, Y, fitted, regressor
from tests.oracles.labelled import stored
from tests.oracles.planned import set_solution


def files_of(registry):
    """Every object of a registry but its lock, by its path in it."""
    fs, root = fsspec.core.url_to_fs(registry.url)
    by_name = {path.removeprefix(root): fs.cat_file(path) for path in fs.find(root)}
    return {path: by_name[path] for path in by_name if not path.endswith(".lock")}


def triple():
    bases = ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(n_features=16, seed=3)
    return TripleBasisRegressor(
        *bases, response_embedding=ProjectionEmbedding(n_per_dim=3), alpha=0.1
    )


def fitted_triple():
    return triple().fit(BAGS, [1 - bag[:9] for bag in BAGS])


# ---------------------------------------------------------------------- names


@pytest.mark.long
@pytest.mark.parametrize("kind", [*FITS, "densities"])
def test_a_name_is_the_content(registry, kind, tmp_path):
    """Fitted again, saved and loaded, registered elsewhere or later: the same model, one name."""
    fit = FITS.get(kind, fitted_triple)
    model = fit()
    name = registry.register(model)
    assert re.fullmatch("[0-9a-f]{16}", name)
    before = files_of(registry)
    model.save(tmp_path / "m.zarr")
    again = [fit(), load_model(tmp_path / "m.zarr"), tmp_path / "m.zarr", registry.model_url(name)]
    assert [registry.register(same) for same in again] == [name] * 4
    assert files_of(registry) == before
    assert Registry(tmp_path / "other").register(tmp_path / "m.zarr") == name
    loaded = load_model(registry.model_url(name))
    for array in ("coef_", "intercept_", "alphas_"):
        np.testing.assert_array_equal(getattr(loaded, array), getattr(model, array))
    if kind != "densities":
        np.testing.assert_array_equal(loaded.predict(BAGS), model.predict(BAGS))


@pytest.mark.long
def test_names_differ_with_whatever_differs(registry, tmp_path):
    """Coefficients, parameters, bases, data and their count: every difference is another name."""
    single = regressor().fit(BAGS, Y)
    nudged = regressor().fit(BAGS, Y)
    coef = nudged.model_.solution.coef.copy()
    coef[0, 0] = np.nextafter(coef[0, 0], np.inf)
    set_solution(nudged, coef=coef)
    counted = regressor().fit(BAGS, Y)
    counted.model_.report["n_bags"] = 71
    models = [
        single,
        nudged,
        counted,
        regressor(alpha=0.2).fit(BAGS, Y),
        regressor(validation_fraction=0.3).fit(BAGS, Y),
        regressor().set_params(random_features__seed=4).fit(BAGS, Y),
        regressor().fit(BAGS, Y[:, None]),
        regressor().fit(stored(tmp_path / "s.zarr", BAGS, Y)),
        fitted("classes"),
        fitted("class names"),
    ]
    names = {registry.register(model) for model in models}
    assert len(names) == len(models) == len(registry.list())


def test_how_a_fit_went_is_not_in_the_name(registry):
    """Seconds, and what a fit took from checkpoints, differ between runs of the same fit."""
    first, other = regressor().fit(BAGS, Y), regressor().fit(BAGS, Y)
    other.model_.report.update({"seconds": {"solve": 1e9}, "n_bags_resumed": 5})
    assert registry.register(first) == registry.register(other)


@pytest.mark.long
def test_what_a_choice_took_is_not_in_the_name(registry, monkeypatch):
    """Two fits that chose the same embedding are one model; a name with the seconds is known."""

    def chosen(seconds):
        model = regressor().fit(BAGS, Y)
        model.model_.report["choice"] = {"chosen": "moments", "tried": [], "seconds": seconds}
        return model

    name = registry.register(chosen(1.5))
    assert registry.register(chosen(2.5)) == name
    monkeypatch.setattr(
        registry_module, "content_name", lambda group: content.content_names(group)[1]
    )
    earlier = registry.register(chosen(2.5))
    assert earlier != name
    registry.promote(earlier)  # which refuses a model that is not what its name says
    assert registry.current() == earlier


def test_a_saved_model_keeps_the_versions_it_was_fitted_with(registry, tmp_path):
    """A model registered by its URL says what made it, not what copied it."""
    fitted("one target").save(tmp_path / "m.zarr")
    edit_state(tmp_path / "m.zarr", lambda state: state.update(versions={"numpy": "1.0"}))
    name = registry.register(tmp_path / "m.zarr")
    assert load_model(registry.model_url(name)).versions_ == {"numpy": "1.0"}
    assert registry.register(fitted("one target")) == name


# ---------------------------------------------------------------------- the champion


@pytest.mark.long
def test_promote_and_roll_back(registry):
    """Rollbacks lead back through the champions, one after the other; history only grows."""
    a, b, c = (registry.register(fitted(kind)) for kind in ("one target", "two targets", "classes"))
    assert registry.current() is None
    for name in (a, b, b, c):
        registry.promote(name)
        assert registry.current() == name
    assert registry.rollback() == registry.current() == b
    registry.promote(a)
    assert registry.rollback() == b
    assert registry.rollback() == registry.current() == a
    with pytest.raises(ModelError, match=f"no champion before {a}; promote a model"):
        registry.rollback()
    assert registry.current() == a
    changes = [(change.action, change.name) for change in Registry(registry.url).history()]
    up, back = "promote", "rollback"
    assert changes == [(up, a), (up, b), (up, c), (back, b), (up, a), (back, b), (back, a)]
    np.testing.assert_array_equal(
        registry.load_current().predict(BAGS), fitted("one target").predict(BAGS)
    )


def test_listing(registry):
    """Each model with its times, its place as champion and what is known of it."""
    assert registry.list() == ()
    first = registry.register(fitted("one target"), report={"error": 0.25, "gates": ["drift"]})
    second = registry.register(fitted("classes"))
    third = registry.register(fitted("two targets"))
    registry.promote(first)
    registry.promote(second)
    records = {record.name: record for record in registry.list()}
    assert [record.name for record in registry.list()] == [first, second, third]
    assert [records[name].current for name in (first, second, third)] == [False, True, False]
    times = [records[name].promoted for name in (first, second, third)]
    assert times == [*(change.at for change in registry.history()), None]
    assert records[first].report == {"error": 0.25, "gates": ["drift"]}
    assert records[second].report == {}
    assert records[second].estimator == "DoubleBasisClassifier"
    assert records[first].fit == fitted("one target").report_
    assert records[first].damage is None
    created = datetime.fromisoformat(records[first].created)
    assert created.utcoffset().total_seconds() == 0
    assert abs((datetime.now(created.tzinfo) - created).total_seconds()) < 600
    assert load_model(records[third].url).predict(BAGS).shape == (len(BAGS), 2)


def test_the_first_report_stays(registry):
    """Registering twice changes nothing, not even what was said of the model."""
    name = registry.register(fitted("one target"), report={"error": 1})
    assert registry.register(fitted("one target"), report={"error": 2}) == name
    assert [record.report for record in registry.list()] == [{"error": 1}]


@pytest.mark.parametrize("report", [{"r2": float("nan")}, {"a": np.arange(2)}, {"a": {1, 2}}])
def test_a_report_that_json_can_not_hold(registry, report):
    """It is refused before anything is written."""
    with pytest.raises(ParameterError, match="report cannot be stored as JSON"):
        registry.register(fitted("one target"), report=report)
    assert files_of(registry) == {}


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", ["0123456789abcdef", "", "../models", "current", "0123"])
def test_a_name_that_is_not_there(registry, name):
    """It is refused with the names that are there; nothing changes."""
    there = registry.register(fitted("one target"))
    registry.promote(there)
    with pytest.raises(ModelError, match=f"no model '{name}'; registered are: {there}"):
        registry.promote(name)
    assert registry.current() == there


def test_an_empty_registry(registry):
    """Nothing registered, nothing promoted: every question is answered, nothing is written."""
    assert registry.current() is None
    assert registry.list() == registry.history() == ()
    with pytest.raises(ModelError, match="no model was promoted; register and promote one"):
        registry.load_current()
    with pytest.raises(ModelError, match="no champion before any"):
        registry.rollback()
    with pytest.raises(ModelError, match="registered are: none"):
        registry.promote("0123456789abcdef")
    assert files_of(registry) == {}


@pytest.mark.long
def test_the_second_promotion_says_so(tmp_path):
    """While one process changes the champion, another is refused; reading goes on."""
    registry = Registry(tmp_path / "registry")
    a, b = registry.register(fitted("one target")), registry.register(fitted("classes"))
    registry.promote(a)
    registry.promote(b)
    with writer_lock(registry.url):
        for change in (lambda: registry.promote(a), registry.rollback):
            with pytest.raises(ModelError, match="another promotion or rollback is under way"):
                change()
        assert registry.current() == b
        registry.register(fitted("two targets"))
    assert registry.rollback() == a


@pytest.mark.long
def test_a_promotion_that_is_overtaken(monkeypatch):
    """Among objects nothing is locked: whoever writes the pointer second is refused."""
    registry = Registry(f"memory://{uuid.uuid4().hex}/registry")
    a, b = registry.register(fitted("one target")), registry.register(fitted("classes"))
    for champions in ([b], [b, a, b]):
        read = Hold.read

        def read_and_be_overtaken(self, name, read=read, champions=champions):
            content = read(self, name)
            monkeypatch.undo()
            for champion in champions:
                Registry(registry.url).promote(champion)
            return content

        monkeypatch.setattr(Hold, "read", read_and_be_overtaken)
        with pytest.raises(ModelError, match="another promotion or rollback is under way"):
            registry.promote(a)
        assert registry.current() == b
    assert [change.name for change in registry.history()] == [b, a, b]
    registry.promote(a)
    assert registry.rollback() == b


def test_a_rollback_of_another_champion(registry, monkeypatch):
    """What is rolled back is the champion that was seen, never one promoted in between."""
    names = [registry.register(fitted(k)) for k in ("one target", "two targets", "classes")]
    for name in names[:2]:
        registry.promote(name)
    is_content = registry_module.is_content

    def promoted_meanwhile(group, name):
        monkeypatch.undo()
        registry.promote(names[2])
        return is_content(group, name)

    monkeypatch.setattr(registry_module, "is_content", promoted_meanwhile)
    with pytest.raises(ModelError, match=f"meanwhile .* made {names[2]} the champion"):
        registry.rollback()
    assert registry.current() == names[2]
    assert len(registry.history()) == 3


def test_what_can_not_be_registered(registry, tmp_path):
    """An estimator that is not fitted, a URL without a model: one error, nothing written."""
    with pytest.raises(ModelError, match="not fitted"):
        registry.register(regressor())
    with pytest.raises(ModelError, match="nothing: no model there"):
        registry.register(tmp_path / "nothing")
    with pytest.raises(ModelError, match="not a saved model"):
        registry.register(stored(tmp_path / "s.zarr", BAGS, Y).url)
    assert files_of(registry) == {}


def test_a_place_that_is_no_registry(tmp_path):
    """A store, a model, a file or an unknown protocol is refused, and stays as it is."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    fitted("one target").save(tmp_path / "m.zarr")
    (tmp_path / "file").write_text("years")
    for place in ("s.zarr", "m.zarr"):
        with pytest.raises(ModelError, match=rf"{place}: a store or a model, not a registry"):
            Registry(tmp_path / place).register(fitted("one target"))
        assert not (tmp_path / place / "models").exists()
    store.verify()
    with pytest.raises(
        ModelError, match=r"file/zarr\.json: cannot be read \(Not a directory\); the model"
    ):
        Registry(tmp_path / "file").register(fitted("one target"))
    with pytest.raises(ModelError, match="nowhere://r"):
        Registry("nowhere://r").register(fitted("one target"))
    with pytest.raises(ModelError, match="nowhere://r"):
        Registry("nowhere://r").current()


def test_a_registry_moves(tmp_path):
    """Nothing in it depends on where it is."""
    registry = Registry(tmp_path / "a")
    names = [registry.register(fitted(kind)) for kind in ("one target", "classes")]
    for name in names:
        registry.promote(name)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    moved = Registry(f"file://{tmp_path}/b")
    assert moved.rollback() == names[0]
    assert registry.current() == names[1]
