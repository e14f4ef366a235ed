"""Rounds: what they cost, that their models are those of full fits, and what they decide."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import numpy as np
import pytest

from bagbasis import BagStore, BusyError, DataError, ModelError
from bagbasis.operations import DriftGate, Registry, Window, retrain
from bagbasis.operations.retraining import round as new_round
from tests.models.splits import HOLDOUT_SEED, Split
from tests.operations.retraining.problems import (
    HOLDOUT,
    TASKS,
    count_embedded,
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

# ---------------------------------------------------------------------- models and their cost


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
def test_models_are_those_of_full_fits(tmp_path, task):
    """Three rounds on a growing store, of every task: each model is that of a full fit to all bags
    there are, and the champion."""
    store, made = create(tmp_path / "bags.zarr", task), spec(tmp_path, task)
    for n in (150, 40, 25):
        grow(store, n, task)
        outcome = retrain(made)
        model, fit = model_of(made, outcome.report), from_scratch(store, task)
        assert difference(model, fit) < 1e-8
        assert model.report_["n_bags_fitted"] == fit.report_["n_bags_fitted"]
        assert outcome.decision == "promoted"
        assert Registry(made.registry_url).current() == outcome.report["model"]
    assert outcome.report["bag_passes"]["new"] == 25
    assert outcome.report["champion_error"] > 0
    if task == "classification":
        np.testing.assert_array_equal(model.classes_, fit.classes_)
    if task == "densities":
        np.testing.assert_allclose(model.mean_coefficients_, fit.mean_coefficients_, atol=1e-12)


@pytest.mark.long
def test_weights_of_a_column(tmp_path):
    """Models of a sequence with weights are those of weighted full fits, from new bags alone."""
    store = BagStore.create(tmp_path / "bags.zarr", 2, target_names=["y", "w"], dtype=np.float64)
    made = spec(tmp_path, target="y", sample_weight="w")
    for n in (150, 40):
        w = np.arange(n) % 4 / 2
        grow(store, n, targets=lambda y, w=w: np.stack([y, w], axis=1))
        outcome = retrain(made)
        fit = estimator("regression").fit(store, target="y", sample_weight="w", holdout=HOLDOUT)
        model = model_of(made, outcome.report)
        assert difference(model, fit) < 1e-8
        assert model.weights_ == {"column": "w", "by_class": None}
    assert outcome.report["bag_passes"]["new"] == 40


@pytest.mark.long
def test_errors_are_those_of_the_newest_held_out_bags(settings, store):
    """Both models are judged on the same bags, the newest that entered neither."""
    before = model_of(settings, {"model": Registry(settings.registry_url).current()})
    grow(store, 60)
    report = retrain(settings).report
    model = model_of(settings, report)
    rows = np.flatnonzero(Split(model.holdout_, HOLDOUT_SEED).members(0, 260))[-40:]
    assert report["n_judged"] == len(rows) == 40
    truth = store.targets()[rows, 0]
    for first, error in ((model, report["error"]), (before, report["champion_error"])):
        predicted = first.predict(store.read()[rows])
        assert error == pytest.approx(np.sqrt(np.mean((predicted - truth) ** 2)), rel=1e-10)


@pytest.mark.long
def test_one_percent_of_new_bags_costs_five_percent_of_passes(tmp_path, monkeypatch):
    """Counted where bags enter the first basis: 1 % of new bags cost at most 5 % of a full fit,
    gates included, and give the model of a full fit to 1e-8."""
    store = grow(create(tmp_path / "bags.zarr"), 2000)
    gate = DriftGate(n_bags=10, n_permutations=19)
    made = spec(tmp_path, drift=gate, evaluate_bags=20)
    retrain(made)
    grow(store, 20)
    counted = count_embedded(monkeypatch)
    report = retrain(made).report
    n_passes = sum(counted)
    monkeypatch.undo()
    assert n_passes <= 0.05 * store.n_bags
    assert n_passes <= sum(report["bag_passes"].values()) <= 0.05 * store.n_bags
    assert difference(model_of(made, report), from_scratch(store)) < 1e-8


@pytest.mark.long
def test_window_of_bags_slides(tmp_path):
    """Each round's model is that of the newest bags alone; what leaves is subtracted."""
    store = create(tmp_path / "bags.zarr")
    made = spec(tmp_path, window=Window(bags=120))
    for n, window, passes in (
        (150, [30, 150], {"new": 120}),
        (30, [60, 180], {"new": 30, "leaving": 30}),
        (80, [140, 260], {"new": 80, "recomputation": 40}),
        (130, [270, 390], {"new": 120}),
    ):
        grow(store, n)
        report = retrain(made).report
        assert report["window"] == window
        assert {key: report["bag_passes"][key] for key in passes} == passes
        assert model_of(made, report).report_["n_bags"] == 120
    fresh = spec(tmp_path, window=Window(bags=120), registry_url=str(tmp_path / "other"))
    assert difference(model_of(made, report), model_of(fresh, retrain(fresh).report)) < 1e-8


@pytest.mark.long
def test_window_of_days(tmp_path, monkeypatch):
    """Bags leave with the round that found them, so many days later."""
    begun = datetime(2026, 1, 1, tzinfo=UTC)

    class Clock(datetime):
        day = 0

        @classmethod
        def now(cls, tz):
            return begun + timedelta(days=cls.day)

    monkeypatch.setattr(new_round, "datetime", Clock)
    store, made = create(tmp_path / "bags.zarr"), spec(tmp_path, window=Window(days=2.5))
    for day, window in ((0, [0, 60]), (1, [0, 120]), (2, [0, 180]), (3, [60, 240])):
        Clock.day = day
        assert retrain_grown(made, store)["window"] == window


# ---------------------------------------------------------------------- nothing to do


def test_twice_without_new_bags(settings, tmp_path):
    """The second call says so and changes nothing, in the registry or in the state."""
    before = files_of(tmp_path)
    outcome = retrain(settings)
    assert outcome.decision == "nothing"
    assert "nothing new" in outcome.report["reason"]
    assert files_of(tmp_path) == before


@pytest.mark.long
def test_too_few_labels_wait(settings, store, tmp_path):
    """New bags without labels wait, and are counted with the ones that come later."""
    made = spec(tmp_path, min_new_bags=30)
    grow(store, 50, targets=lambda y: np.where(np.arange(50) < 20, y, np.nan))
    before = files_of(tmp_path / "registry.retrain")
    assert retrain(made).report["reason"].startswith("20 of 50 new bags have a label, fewer than")
    assert files_of(tmp_path / "registry.retrain") == before
    grow(store, 10)
    report = retrain(made).report
    assert (report["n_new"], report["n_new_labelled"]) == (60, 30)
    assert difference(model_of(made, report), from_scratch(store)) < 1e-8


@pytest.mark.long
def test_no_cluster_is_opened_for_nothing(settings):
    """What reads bags is entered only when there are any to read."""
    retrain(settings, computing=lambda store: pytest.fail("nothing is new"))


# ---------------------------------------------------------------------- gates


@pytest.mark.long
def test_worse_challenger_is_refused(settings, store, tmp_path):
    """Wrong labels make a worse model: the champion stays, the model is in the registry, and the
    same bags are not tried again. When they have left the window it is promoted."""
    champion = Registry(settings.registry_url).current()
    made = spec(tmp_path, tolerance=0.05)
    grow(store, 500, targets=lambda y: np.where(np.arange(500) < 250, 3 - y, y))
    outcome = retrain(made)
    assert outcome.decision == "kept"
    assert outcome.report["reasons"][0].startswith("its error is")
    assert outcome.report["error"] > 1.05 * outcome.report["champion_error"]
    registry = Registry(made.registry_url)
    assert registry.current() == champion
    assert outcome.report["model"] in {record.name for record in registry.list()}
    assert retrain(made).decision == "nothing"
    grow(store, 200)
    assert retrain(spec(tmp_path, tolerance=0.05, window=Window(bags=450))).decision == "promoted"


@pytest.mark.long
def test_tolerance(settings, store, tmp_path):
    """An error over the champion's, but within the tolerance, is let through."""
    grow(store, 500, targets=lambda y: np.where(np.arange(500) < 250, 3 - y, y))
    assert retrain(spec(tmp_path, tolerance=100.0)).decision == "promoted"


@pytest.mark.long
@pytest.mark.parametrize(("action", "decision"), [("report", "promoted"), ("refuse", "kept")])
def test_drift(settings, store, tmp_path, action, decision):
    """New bags of another distribution are found; they refuse the model if that is asked for."""
    bags = [0.1 * bag for bag in store.read(0, 60)]
    store.append(bags, store.targets(0, 60))
    gate = DriftGate(horizon=30, n_bags=60, n_permutations=99, action=action)
    outcome = retrain(spec(tmp_path, drift=gate))
    assert outcome.report["drift"]["drifted"]
    assert outcome.report["p_value"] <= outcome.report["gates"]["level"] == 0.05 / 30 / 3
    assert outcome.decision == decision
    assert outcome.report["alarms"][0].startswith("the new bags drifted (p = ")
    assert outcome.report["reasons"] == (outcome.report["alarms"] if action == "refuse" else [])


@pytest.mark.long
def test_small_drifts_are_none(settings, store, tmp_path):
    """However small its p-value, a drift below the least effect does not alarm."""
    store.append([0.1 * bag for bag in store.read(0, 60)], store.targets(0, 60))
    report = retrain(spec(tmp_path, drift=DriftGate(horizon=30, n_bags=60, min_effect=1e3))).report
    values = report["gates"]["gates"]["inputs"]
    assert values["p_value"] <= report["gates"]["level"]
    assert 0.01 < values["effect"] < 1e3
    assert not values["drifted"]
    assert report["alarms"] == []


@pytest.mark.long
def test_nothing_to_judge_on(settings, store, tmp_path):
    """Without a labelled bag held out in the window no model replaces the champion."""
    held_out = retrain_grown(settings, store, 8)
    assert held_out["n_judged"] > 0
    made = spec(tmp_path, window=Window(bags=1))
    outcome = None
    while outcome is None or outcome.report.get("n_judged"):
        grow(store, 1)
        try:
            outcome = retrain(made)
        except DataError:  # the one bag of the window is held out, so there is none to fit
            continue
    assert outcome.decision == "kept"
    assert "nothing judges the models" in outcome.report["reasons"][0]


@pytest.mark.long
def test_champion_of_another_kind(settings, store, tmp_path):
    """A champion that predicts something else is refused by name, and stays."""
    registry = Registry(settings.registry_url)
    other = grow(create(tmp_path / "classes.zarr", "classification"), 100, "classification")
    name = registry.register(from_scratch(other, "classification"))
    registry.promote(name)
    grow(store, 30)
    with pytest.raises(ModelError, match=f"the champion {name} has another kind"):
        retrain(settings)
    assert registry.current() == name


@pytest.mark.long
def test_rolled_back_champion_is_the_one_to_beat(settings, store):
    """The round after a rollback judges against the champion of the registry, and goes on from the
    sums of the last model."""
    registry = Registry(settings.registry_url)
    first = registry.current()
    retrain_grown(settings, store)
    registry.rollback()
    report = retrain_grown(settings, store)
    assert report["champion_before"] == first
    assert difference(model_of(settings, report), from_scratch(store)) < 1e-8


@pytest.mark.long
def test_new_class_begins_a_new_sequence(tmp_path):
    """A label that no model of the sequence knows: features and classes are decided anew, from all
    bags, and the report says so."""
    store = grow(create(tmp_path / "bags.zarr", "classification"), 150, "classification")
    made = spec(tmp_path, "classification")
    retrain(made)
    bags = list(store.read(0, 20))
    store.append(bags, np.full((20, 1), 7.0))
    report = retrain(made).report
    assert report["new_sequence"] == report["recomputed"] == "new classes: 7"
    assert model_of(made, report).classes_.tolist() == [0, 1, 2, 7]
    assert difference(model_of(made, report), from_scratch(store, "classification")) < 1e-8
    grow(store, 20, "classification")
    assert retrain(made).report["new_sequence"] is None


# ---------------------------------------------------------------------- places and times


@pytest.mark.long
def test_on_a_filesystem_of_objects(tmp_path):
    """Registry and state at URLs of objects: two rounds, and nothing new."""
    store = grow(create(tmp_path / "bags.zarr"), 100)
    place = f"memory://{tmp_path.name}"
    made = spec(tmp_path, registry_url=f"{place}/registry")
    try:
        retrain(made)
        report = retrain_grown(made, store)
        assert difference(model_of(made, report), from_scratch(store)) < 1e-8
        assert retrain(made).decision == "nothing"
        names = {path.rsplit("/", 1)[-1] for path in files_of(f"{place}/registry.retrain")}
        (sums,) = names - {"state.json", "round.json"}
        assert sums.startswith("sums-000002-")
    finally:
        fsspec.filesystem("memory").rm(place, recursive=True)


@pytest.mark.long
def test_two_at_once_among_objects(tmp_path):
    """Where nothing can be locked, the second that decides a round is refused and leaves nothing
    behind; the round is done once."""
    store = grow(create(tmp_path / "bags.zarr"), 100)
    place = f"memory://{tmp_path.name}-2"
    made = spec(tmp_path, registry_url=f"{place}/registry")
    reports = []

    @contextmanager
    def overtaken(opened):
        reports.append(retrain(made).report)
        yield None

    try:
        for number in (1, 2):
            with pytest.raises(BusyError, match="another retraining is running; nothing was done"):
                retrain(made, computing=overtaken)
            assert reports[-1]["number"] == number
            assert len(Registry(made.registry_url).history()) == number
            assert retrain(made).decision == "nothing"
            grow(store, 60)
        report = retrain(made).report
        assert report["number"] == 3
        assert difference(model_of(made, report), from_scratch(store)) < 1e-8
        names = {path.rsplit("/", 1)[-1] for path in files_of(f"{place}/registry.retrain")}
        assert len(names) == 3
    finally:
        fsspec.filesystem("memory").rm(place, recursive=True)


@pytest.mark.long
def test_append_during_a_round(settings, store):
    """Bags that come while a round runs are left to the next one."""

    @contextmanager
    def computing(opened):
        grow(store, 25)
        yield None

    grow(store, 40)
    report = retrain(settings, computing=computing).report
    assert (report["n_new"], report["stop"]) == (40, 240)
    assert store.n_bags == 265
    report = retrain(settings).report
    assert (report["n_new"], report["stop"]) == (25, 265)
    assert difference(model_of(settings, report), from_scratch(store)) < 1e-8


@pytest.mark.long
def test_rounds_leave_one_file_of_sums(settings, store):
    """Old sums and the journal go when a round is done; the history stays."""
    for _ in range(2):
        retrain_grown(settings, store)
    folder = Path(settings.state_folder)
    (sums,) = {path.name for path in folder.glob("*")} - {"points", "state.json"}
    assert sums.startswith("sums-000003-")
    state = json.loads((folder / "state.json").read_text())
    assert [item["stop"] for item in state["rounds"]] == [200, 260, 320]
