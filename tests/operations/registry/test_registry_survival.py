"""Processes that are killed or that meet in a registry: the champion stays whole, and so do all
models and the history."""

from __future__ import annotations

import errno
import json
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest

from bagbasis import ModelError, load_model
from bagbasis.data.storage import folders
from bagbasis.data.storage.partials import partial_path
from bagbasis.operations import Registry
from bagbasis.operations.registry import registry
from tests.data.store.processes import running
from tests.models.predicting import BAGS, fitted
from tests.oracles.planned import set_solution

OLD, NEW = "one target", "two targets"


@pytest.fixture
def saved(tmp_path):
    """URLs of two saved models."""
    for name in (OLD, NEW):
        fitted(name).save(tmp_path / f"{name}.zarr")
    return [str(tmp_path / f"{name}.zarr") for name in (OLD, NEW)]


@pytest.fixture
def champion(tmp_path, saved):
    """A registry whose champion is the first of the models, the other one not there."""
    made = Registry(tmp_path / "registry")
    made.promote(made.register(saved[0]))
    return made


def models_in(place):
    return sorted(path.name for path in (Path(place.url) / "models").iterdir())


# ---------------------------------------------------------------------- what processes do


def stop_at(pipe, where):
    """Make this process wait for ever when it comes there."""

    def wait(*args, **kwargs):
        pipe.send("there")
        pipe.recv()

    if where == "saved":
        registry.content_name = wait
    elif where == "synced":
        Path.rename = wait
    elif where == "published":
        folders.fsync_folder, sync_folder = (
            lambda folder: wait() if folder.name == "models" else sync_folder(folder),
            folders.fsync_folder,
        )
    elif where == "pointer written":
        Path.replace = wait


def register_and_stop(pipe, url, model_url, where):
    stop_at(pipe, where)
    name = Registry(url).register(model_url)
    pipe.send(name)
    pipe.recv()


def promote_and_stop(pipe, url, name, where):
    stop_at(pipe, where)
    Registry(url).promote(name)


def variants(place, model_url, n):
    """Names of so many new models in the registry, which differ in their coefficients."""
    model, names = load_model(model_url), []
    for i in range(n):
        set_solution(model, coef=model.model_.solution.coef + 1.0 + i)
        names.append(place.register(model))
    return names


def register_many(pipe, url, model_url, first):
    """Model after model, each with other coefficients."""
    model = load_model(model_url)
    set_solution(model, coef=model.model_.solution.coef + first)
    while True:
        set_solution(model, coef=model.model_.solution.coef + 0.25)
        Registry(url).register(model)
        pipe.send("one more")


def promote_many(pipe, url, names):
    place, i = Registry(url), 0
    while True:
        i += 1
        place.promote(names[i % 2])
        pipe.send("one more")


def promote_in_turn(pipe, url, names, n_attempts):
    """Promote one name and the other in turn; says what was done, and why the rest was not."""
    place, done, refused = Registry(url), [], set()
    pipe.send("ready")
    pipe.recv()
    for _ in range(n_attempts):
        name = names[len(done) % 2]
        try:
            place.promote(name)
            done.append(name)
        except ModelError as error:
            refused.add(str(error))
    pipe.send((done, refused))


def register_when_told(pipe, url, model_url):
    pipe.send("ready")
    pipe.recv()
    pipe.send(Registry(url).register(model_url))


# ---------------------------------------------------------------------- kills


@pytest.mark.long
@pytest.mark.parametrize("where", ["saved", "synced", "published", "registered"])
def test_killed_before_promotion(champion, saved, where):
    """kill -9 while or after a model is registered: the old champion stays, the new model is
    there entirely or missing, and can be registered and promoted."""
    old = champion.current()
    with running(register_and_stop, champion.url, saved[1], where) as (process, pipe):
        assert pipe.poll(60)
        pipe.recv()
        process.kill()
        process.join()
    assert champion.current() == old
    np.testing.assert_array_equal(champion.load_current().predict(BAGS), fitted(OLD).predict(BAGS))
    whole = where in ("published", "registered")
    assert len(champion.list()) == 1 + whole
    for record in champion.list():
        load_model(record.url)
    new = champion.register(saved[1])
    assert len(champion.list()) == 2
    champion.promote(new)
    np.testing.assert_array_equal(champion.load_current().predict(BAGS), fitted(NEW).predict(BAGS))
    assert champion.rollback() == old


@pytest.mark.long
def test_killed_with_the_new_pointer_written_and_not_in_place(champion, saved):
    """The champion stays, the lock is free, and the next promotion is not in the way of it."""
    old, new = champion.current(), champion.register(saved[1])
    with running(promote_and_stop, champion.url, new, "pointer written") as (process, pipe):
        assert pipe.poll(60)
        pipe.recv()
        with pytest.raises(ModelError, match="another promotion or rollback is under way"):
            champion.promote(new)
        process.kill()
        process.join()
    assert champion.current() == old
    assert len(champion.history()) == 1
    champion.promote(new)
    assert champion.rollback() == old
    assert sorted(n for n in os.listdir(champion.url) if not n.endswith(".partial")) == [
        "champion.json",
        "models",
        "points",
    ]


@pytest.mark.long
def test_registering_killed_at_any_moment(champion, saved):
    """Every model that is listed can be promoted, whenever the processes that added them died."""
    moments = random.Random(0)
    for i in range(4):
        with running(register_many, champion.url, saved[1], 1000.0 * i) as (process, pipe):
            pipe.recv()
            time.sleep(moments.uniform(0.0, 0.15))
            process.kill()
            process.join()
    records = champion.list()
    assert len(records) >= 5
    for record in records:
        champion.promote(record.name)


@pytest.mark.long
def test_promoting_killed_at_any_moment(champion, saved):
    """The pointer is whole, its history only grows, and nothing is locked."""
    names = [champion.current(), champion.register(saved[1])]
    moments = random.Random(1)
    for _ in range(4):
        before = champion.history()
        with running(promote_many, champion.url, names) as (process, pipe):
            pipe.recv()
            time.sleep(moments.uniform(0.0, 0.1))
            process.kill()
            process.join()
        assert champion.history()[: len(before)] == before
        champion.promote(names[0])
        assert champion.current() == names[0]
    assert len(champion.history()) >= 5


def test_what_killed_processes_left_goes_after_a_day(champion, saved):
    """A staged model is deleted when it is old, never one that may be being written."""
    models = Path(champion.url) / "models"
    old, young = (partial_path(models / "staged") for _ in range(2))
    two_days_ago = time.time() - 2 * 86400
    for place in (old, young):
        (place / "coef").mkdir(parents=True)
    for path in (old / "coef", old):
        os.utime(path, (two_days_ago, two_days_ago))
    new = champion.register(saved[1])
    assert models_in(champion) == sorted([young.name, f"{champion.current()}.zarr", f"{new}.zarr"])


# ---------------------------------------------------------------------- two at once


@pytest.mark.long
def test_two_processes_promote(champion, saved):
    """Each promotion is in the history once or was refused; readers never see a torn pointer."""
    names = variants(champion, saved[1], 4)
    ones, twos = names[:2], names[2:]
    with (
        running(promote_in_turn, champion.url, ones, 25) as (_, item),
        running(promote_in_turn, champion.url, twos, 25) as (_, two),
    ):
        for pipe in (item, two):
            pipe.recv()
        for pipe in (item, two):
            pipe.send("go")
        lengths = []
        while not (item.poll() and two.poll()):
            assert champion.current() is not None
            lengths.append(len(champion.history()))
        (done_one, refused_one), (done_two, refused_two) = item.recv(), two.recv()
    assert lengths == sorted(lengths)
    history = [change.name for change in champion.history()][1:]
    assert [name for name in history if name in ones] == done_one
    assert [name for name in history if name in twos] == done_two
    assert len(history) == len(done_one) + len(done_two) > 0
    assert champion.current() == history[-1]
    for message in refused_one | refused_two:
        assert f"{champion.url}: another promotion or rollback is under way" in message


@pytest.mark.long
def test_two_processes_register_the_same_model(champion, saved):
    """Both get its name, and it is there once and whole."""
    args = (champion.url, saved[1])
    with (
        running(register_when_told, *args) as (_, item),
        running(register_when_told, *args) as (_, two),
    ):
        for pipe in (item, two):
            pipe.recv()
        for pipe in (item, two):
            pipe.send("go")
        names = {item.recv(), two.recv()}
    (name,) = names
    assert models_in(champion) == sorted(f"{n}.zarr" for n in (champion.current(), name))
    champion.promote(name)


@pytest.mark.long
def test_a_model_that_appears_meanwhile_stays(champion, saved, monkeypatch):
    """The second of two that register the same model finds it in place and leaves it there."""
    rename, times = Path.rename, []

    def rename_after_another(self, target):
        if target.parent.name != "models" or ".staged." in target.name:
            return rename(self, target)
        monkeypatch.undo()
        Registry(champion.url).register(saved[1])
        times.append(target.stat().st_ino)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_after_another)
    name = champion.register(saved[1])
    assert times == [Path(champion.model_url(name)).stat().st_ino]
    assert len(models_in(champion)) == 2
    champion.promote(name)


# ---------------------------------------------------------------------- disks


def test_everything_is_on_the_disk_before_it_is_seen(champion, saved, monkeypatch):
    """A model's files before its rename, the pointer's before its own, and then the folders."""
    root = Path(champion.url)
    steps = []
    fsync, rename, replace = os.fsync, Path.rename, Path.replace

    def recorded_fsync(fd):
        fsync(fd)
        steps.append(Path(os.readlink(f"/proc/self/fd/{fd}")))

    def recorded_rename(self, target):
        files = {path for path in self.rglob("*")} | {self}
        assert files <= set(steps)
        steps.append("renamed")
        return rename(self, target)

    def recorded_replace(self, target):
        if target == root / "champion.json":
            assert self in steps
            steps.append("replaced")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "rename", recorded_rename)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    champion.promote(champion.register(saved[1]))
    assert root / "models" in steps[steps.index("renamed") :]
    assert steps[steps.index("replaced") :] == ["replaced", root]


@pytest.mark.parametrize("step", ["model", "pointer"])
def test_a_disk_that_fails(champion, saved, monkeypatch, step):
    """A full or failing disk is one clear error; the champion and the models stay."""
    old = champion.current()
    name = champion.register(saved[1]) if step == "pointer" else None
    before = models_in(champion)
    fsync = os.fsync

    def failing_fsync(fd):
        path = os.readlink(f"/proc/self/fd/{fd}")
        if os.path.isfile(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing_fsync)
    consequence = "the champion stays" if name else "the model was not registered"
    with pytest.raises(
        ModelError,
        match=rf"registry.*: cannot be .*written \(No space left on device\); {consequence}",
    ):
        champion.promote(name) if name else champion.register(saved[1])
    monkeypatch.undo()
    assert champion.current() == old
    assert models_in(champion) == before
    champion.promote(champion.register(saved[1]))


def test_nothing_in_it_can_be_executed(champion, saved):
    """Zarr's JSON and chunks, one pointer of plain JSON, and no pickle."""
    champion.promote(champion.register(saved[1]))
    assert json.loads((Path(champion.url) / "champion.json").read_text())["format_version"] == 1
    for path in Path(champion.url).rglob("*"):
        if path.is_file():
            assert path.read_bytes()[:1] != b"\x80"
            if path.suffix == ".json":
                assert "pickle" not in json.dumps(json.loads(path.read_text()))
