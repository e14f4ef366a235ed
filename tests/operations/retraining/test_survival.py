"""Retraining processes that are killed, or that meet: the round is done once, as it was decided."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bagbasis import BagStore, BusyError, StoreError
from bagbasis.jobs.commands.retrain import exit_code
from bagbasis.jobs.commands.retrain_report import round_lines
from bagbasis.operations import Registry, retrain
from bagbasis.operations.registry import registry as registry_module
from bagbasis.operations.registry.registry import POINTER
from bagbasis.operations.retraining import state
from tests.data.store.processes import running
from tests.operations.retraining.problems import create, grow, spec

DEATHS = ["counting", "registered", "sums written", "decided", "promoted", "committed", "published"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A store, and a sequence whose first round is done, with new bags since."""
    folder = tmp_path_factory.mktemp("base")
    store = grow(create(folder / "bags.zarr"), 150)
    retrain(spec(folder))
    grow(store, 60)
    return folder


def copied(folder, to, base):
    """The retraining with a copy of the folder's registry and state; the store is shared."""
    for name in ("registry", "registry.retrain"):
        shutil.copytree(folder / name, to / name)
    return spec(to, data_url=str(base / "bags.zarr"))


@pytest.fixture
def settings(base, tmp_path):
    return copied(base, tmp_path, base)


@pytest.fixture(scope="module")
def undisturbed(base, tmp_path_factory):
    """The report of the second round when nobody dies."""
    return retrained(copied(base, tmp_path_factory.mktemp("undisturbed"), base))[0].report


@pytest.fixture(scope="module")
def dead(base, tmp_path_factory):
    """A sequence whose second round was decided when its process was killed."""
    folder = tmp_path_factory.mktemp("dead")
    killed(copied(base, folder, base), "decided")
    return folder


@pytest.fixture
def decided(base, dead, tmp_path):
    return copied(dead, tmp_path, base)


# ---------------------------------------------------------------------- what processes do


def retrain_and_stop(pipe, settings, where):
    """Retrain, and wait for ever at that place."""

    def wait(*args, **kwargs):
        pipe.send("there")
        pipe.recv()

    def after(function):
        return lambda *args, **kwargs: (function(*args, **kwargs), wait())

    @contextmanager
    def computing(store):
        if where == "counting":
            wait()
        yield None

    publish = None
    if where == "registered":
        state.StateFolder.write_sums = wait
    elif where == "sums written":
        state.StateFolder.decide = wait
    elif where == "decided":
        state.StateFolder.decide = after(state.StateFolder.decide)
    elif where == "promoted":
        Registry.promote = after(Registry.promote)
    elif where == "committed":
        publish = wait
    elif where == "published":
        state.StateFolder.close = wait
    retrain(settings, publish=publish, computing=computing)


def retrain_and_tell(pipe, settings):
    published = []
    outcome = retrain(settings, publish=lambda *what: published.append(what))
    pipe.send((outcome, published))


def retrained(settings):
    """What a process did that nobody killed, and what it published.

    Not in the tests' own process: the number of threads that BLAS has got there by now decides
    the last digits of a model, and so its name.
    """
    with running(retrain_and_tell, settings) as (process, pipe):
        assert pipe.poll(120)
        message = pipe.recv()
        process.join()
    return message


def killed(settings, where):
    """A process that got there, and was killed by SIGKILL."""
    with running(retrain_and_stop, settings, where) as (process, pipe):
        assert pipe.poll(60)
        assert pipe.recv() == "there"
        process.kill()
        process.join()


# ---------------------------------------------------------------------- kills


@pytest.mark.long
@pytest.mark.parametrize("where", DEATHS)
def test_killed_anywhere(settings, undisturbed, where):
    """The next call leaves what an undisturbed one does: the same model, promoted once, the same
    report and one round; and then there is nothing to do."""
    killed(settings, where)
    registry = Registry(settings.registry_url)
    first = registry.history()[0].name
    half = Path(settings.state_folder, f".sums-000002-{'0' * 8}.npz.{'0' * 32}.partial")
    half.touch()  # what a kill within the writing of sums leaves, under a name of its own
    promoted = where in ("promoted", "committed", "published")
    assert registry.current() == (undisturbed["model"] if promoted else first)
    outcome, published = retrained(settings)
    volatile = ("seconds", "at", "registry_url")
    assert outcome.decision == "promoted"
    for key in undisturbed:
        if key not in volatile:
            assert outcome.report[key] == undisturbed[key], key
    assert [report for report, _ in published] == [outcome.report]
    assert [item.number for item in published[0][1]] == [1, 2]
    assert [change.name for change in registry.history()] == [first, undisturbed["model"]]
    assert {record.name for record in registry.list()} == {first, undisturbed["model"]}
    assert retrain(settings).decision == "nothing"
    names = {path.name for path in Path(settings.state_folder).glob("*")}
    (sums,) = names - {"points", "state.json"}
    assert sums.startswith("sums-000002-")
    state_ = json.loads((Path(settings.state_folder) / "state.json").read_text())
    assert state_["spending"] == {"n_tested": 1, "alpha_spent": 0.05 / 365}


@pytest.mark.long
def test_kept_champion_stays_kept(base, settings, tmp_path):
    """A round that was decided against the challenger, and cut off, promotes nothing later."""
    shutil.copytree(base / "bags.zarr", tmp_path / "bags.zarr")
    store = BagStore.open(tmp_path / "bags.zarr")
    store.append([0.1 * bag for bag in store.read(0, 60)], store.targets(0, 60))
    settings = spec(tmp_path)
    drift = replace(settings.drift, action="refuse")
    killed(replace(settings, drift=drift), "decided")
    registry = Registry(settings.registry_url)
    before = registry.history()
    outcome = retrain(settings)
    assert outcome.decision == "kept"
    assert registry.history() == before
    assert outcome.report["reasons"][0].startswith("the new bags drifted")


@pytest.mark.long
def test_champion_changed_between_death_and_return(settings, caplog):
    """Whoever changed the champion since the decision knows better: it stays."""
    registry = Registry(settings.registry_url)
    killed(settings, "promoted")
    first = registry.rollback()
    retrain(settings)
    assert registry.current() == first
    assert "the champion was changed since" in caplog.text
    assert len(registry.history()) == 3


@pytest.mark.long
def test_new_bags_since_the_death(base, decided, tmp_path):
    """A call that finishes a round goes on with the bags that came since."""
    shutil.copytree(base / "bags.zarr", tmp_path / "bags.zarr")
    value = spec(tmp_path)
    grow(BagStore.open(value.data_url), 30)
    rounds = []
    outcome = retrain(value, publish=lambda report, _: rounds.append(report["number"]))
    assert rounds == [2, 3]
    assert (outcome.report["n_new"], outcome.report["stop"]) == (30, 240)


@pytest.mark.long
def test_report_that_could_not_be_written(settings):
    """The round is committed; the next call writes its report again."""

    def failing(report, rounds):
        raise StoreError("disk full")

    with pytest.raises(StoreError, match="disk full"):
        retrain(settings, publish=failing)
    state_file = json.loads(Path(settings.state_folder, "state.json").read_text())
    assert len(state_file["rounds"]) == 2
    published = []
    retrain(settings, publish=lambda report, _: published.append(report["number"]))
    assert published == [2]


# ---------------------------------------------------------------------- two at once


@pytest.mark.long
def test_two_at_once(settings, tmp_path):
    """The second says that another is running, and did nothing; one with a state of its own is not
    in the way; after the first died the way is free."""
    with running(retrain_and_stop, settings, "counting") as (process, pipe):
        assert pipe.poll(60)
        with pytest.raises(BusyError, match="another retraining is running; nothing was done"):
            retrain(settings)
        other = retrain(replace(settings, state_url=str(tmp_path / "other")))
        assert other.report["new_sequence"] == "first round"
        process.kill()
        process.join()
    assert retrain(settings).decision == "promoted"


@pytest.mark.long
def test_champion_changed_while_the_round_ran(decided):
    """A round whose champion was changed before it could promote says so: in its decision, its
    report, the rounds and the picture; the model is registered and nothing is promoted."""
    registry = Registry(decided.registry_url)
    first = registry.current()
    other = registry.register(registry.load_current().set_params(validation_fraction=0.2))
    registry.promote(other)
    published = []
    outcome = retrain(decided, publish=lambda *what: published.append(what))
    assert outcome.decision == outcome.report["decision"] == "overtaken"
    assert outcome.report["reasons"][0].endswith(f"it stays {other}")
    assert [item.decision for item in published[0][1]] == ["promoted", "overtaken"]
    assert registry.current() == other != first
    assert round_lines(outcome.report)[0].startswith("Round 2: overtaken: the champion was changed")
    assert exit_code(outcome.report) == 3
    assert retrain(decided).decision == "nothing"


@pytest.mark.long
def test_champion_changed_right_before_the_promotion(decided, monkeypatch):
    """Between the look at the registry and the promotion: it does not replace another's, either."""
    registry, is_content = Registry(decided.registry_url), registry_module.is_content
    other = registry.register(registry.load_current().set_params(validation_fraction=0.2))

    def be_overtaken(group, name):
        monkeypatch.undo()
        registry.promote(other)
        return is_content(group, name)

    monkeypatch.setattr(registry_module, "is_content", be_overtaken)
    assert retrain(decided).decision == "overtaken"
    assert registry.current() == other


@pytest.mark.long
def test_registry_that_lost_its_champion_while_the_round_ran(decided):
    """An older registry in its place is a champion that was changed, too: nothing is promoted."""
    Path(decided.registry_url, POINTER).unlink()
    outcome = retrain(decided)
    assert outcome.decision == "overtaken"
    assert outcome.report["reasons"][0].endswith("there is none now")
    assert Registry(decided.registry_url).current() is None
