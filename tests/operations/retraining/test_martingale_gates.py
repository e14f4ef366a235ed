"""Gates that bet, in rounds: each finds its drift, and nothing else; a repeated round bets once."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from bagbasis import BagStore
from bagbasis.core.saved import read_saved
from bagbasis.operations import DriftGate, retrain
from bagbasis.operations.retraining.gate_bets import GateBets, RowsMade
from bagbasis.operations.retraining.state import StateFolder
from tests.operations.retraining.problems import create, spec
from tests.operations.retraining.test_drift_gates import KINDS, draw, with_gate


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    """A store of 900 bags and its champion, and a round of 120 without drift."""
    folder = tmp_path_factory.mktemp("wealth")
    store = create(folder / "bags.zarr").append(*draw(900, 0))
    retrain(made(folder))
    store.append(*draw(120, 1))
    retrain(made(folder))
    return folder


def made(folder, **changes):
    return with_gate(folder, DriftGate(gate="e_process", n_bags=240, **changes))


def state_of(folder):
    return json.loads((folder / "registry.retrain" / "state.json").read_text())


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_right_gate_finds_each_drift(year, tmp_path, kind):
    """Within four rounds of 120 bags the gate of that name alarms, and no other one; without a
    drift none does. Then it begins anew, with the bags since the alarm as its reference."""
    shutil.copytree(year, tmp_path, dirs_exist_ok=True)
    store, alarmed = BagStore.open(tmp_path / "bags.zarr"), {}
    for seed in range(2, 6):
        first = store.n_bags
        store = store.append(*draw(120, seed, kind))
        gates = retrain(made(tmp_path)).report["gates"]
        assert list(gates["gates"]) == ["inputs", "concept", "labels"]
        for name, actual in gates["gates"].items():
            if actual["drifted"]:
                alarmed.setdefault(name, first)
                assert actual["p_value"] <= 0.05 / 3 * (1 + 1e-12)
                assert np.log10(actual["statistic"]) == pytest.approx(gates["wealth"][name])
        if set(alarmed) >= set(KINDS[kind]) and kind != "none":
            break
    assert sorted(alarmed) == sorted(KINDS[kind])
    bets = state_of(tmp_path)["bets"]
    for name, first in alarmed.items():
        assert (bets[name]["first"], bets[name]["used"]) == (first, first)
        assert bets[name]["betting"] is None


@pytest.mark.long
def test_no_bag_is_bet_on_twice(year, tmp_path, monkeypatch):
    """Over rounds each gate sees each bag at most once, and keeps a quarter for the reference,
    which comes oldest first."""
    shutil.copytree(year, tmp_path, dirs_exist_ok=True)
    seen, play = [], GateBets.play

    def playing(self, new, reference, how: RowsMade):
        if not how.are_features and how.units_differ:  # labels, which are all different
            seen.append((new.copy(), reference.copy()))
        return play(self, new, reference, how)

    monkeypatch.setattr(GateBets, "play", playing)
    store = BagStore.open(tmp_path / "bags.zarr")
    for seed in range(2, 9):
        store = store.append(*draw(120, seed))
        retrain(made(tmp_path))
    labels = [rows.ravel() for pair in seen for rows in pair]
    assert len(labels) == 14
    every = np.concatenate(labels)
    assert len(np.unique(every)) == len(every)
    stored = store.targets(0, store.n_bags).ravel()
    places = np.array([int(np.flatnonzero(stored == value)[0]) for value in every])
    used = np.split(places, np.cumsum([len(item) for item in labels])[:-1])
    new, reference = used[0::2], used[1::2]
    assert (np.diff(np.concatenate(reference)) > 0).all()
    assert [len(np.intersect1d(item, np.arange(1020 + 120 * i, 1140 + 120 * i))) == len(item)
            for i, item in enumerate(new)] == [True] * 7  # fmt: skip
    assert np.mean([len(item) / 120 for item in new]) == pytest.approx(0.75, abs=0.05)
    assert len(reference[0]) == 2 * len(new[0])


@pytest.mark.long
def test_a_repeated_round_bets_once(year, tmp_path, monkeypatch):
    """A round that dies before its decision is written leaves no trace in the bets; the same round
    again has the same capital and state as one that was not disturbed."""
    shutil.copytree(year, tmp_path, dirs_exist_ok=True)
    BagStore.open(tmp_path / "bags.zarr").append(*draw(120, 2))
    before = state_of(tmp_path)["bets"]
    with monkeypatch.context() as patch:

        def die(*_):
            raise KeyboardInterrupt

        patch.setattr(StateFolder, "decide", die)
        with pytest.raises(KeyboardInterrupt):
            retrain(made(tmp_path))
    assert state_of(tmp_path)["bets"] == before
    other = tmp_path / "other"
    for name in ("registry", "registry.retrain", "bags.zarr"):
        shutil.copytree(tmp_path / name, other / name)
    for folder in (tmp_path, other):
        retrain(made(folder))
    ours, theirs = (state_of(folder)["bets"] for folder in (tmp_path, other))
    for name in ("inputs", "labels"):
        assert ours[name] == theirs[name]
        assert ours[name]["betting"]["n_rounds"] == before[name]["betting"]["n_rounds"] + 1


@pytest.mark.long
def test_states_go_on(year, tmp_path):
    """What a gate goes on from comes out of its description as it was; permutations between rounds
    that bet leave it alone."""
    shutil.copytree(year, tmp_path, dirs_exist_ok=True)
    bets = state_of(tmp_path)["bets"]
    for values in bets.values():
        again = json.loads(json.dumps(read_saved(GateBets, values).to_dict()))
        assert again == values
    BagStore.open(tmp_path / "bags.zarr").append(*draw(120, 2))
    tests = made(tmp_path)
    retrain(replace(tests, drift=replace(tests.drift, gate="permutation")))
    assert state_of(tmp_path)["bets"] == bets


@pytest.mark.long
def test_small_drifts_are_none(year, tmp_path):
    """Capital alone is no alarm: the effect has to be large enough."""
    shutil.copytree(year, tmp_path, dirs_exist_ok=True)
    store = BagStore.open(tmp_path / "bags.zarr")
    for seed in range(2, 5):
        store = store.append(*draw(120, seed, "inputs"))
        values = retrain(made(tmp_path, min_effect=10.0)).report["gates"]["gates"]["inputs"]
    assert values["p_value"] < 0.05 / 3
    assert not values["drifted"]


@pytest.mark.long
def test_classes_and_new_features(tmp_path):
    """A gate of another task; a new sequence, whose features are others, keeps the capital and
    learns anew."""
    store = create(tmp_path / "bags.zarr", "classification")
    value = spec(tmp_path, "classification", drift=DriftGate(gate="e_process", n_bags=60))
    rng = np.random.default_rng(0)
    sizes = 150, 60, 60
    for i, n in enumerate(sizes):
        bags = [rng.random((8, 2)) for _ in range(n)]
        labels = rng.integers(0, 2 + (i == 2), n).astype(float)
        store = store.append(bags, labels)
        report = retrain(value).report
        if i == 1:
            key = state_of(tmp_path)["bets"]["labels"]["key"]
    bets = state_of(tmp_path)["bets"]["labels"]
    assert report["new_sequence"].startswith("new classes")
    assert bets["key"] != key
    assert bets["betting"]["n_rounds"] == 2
