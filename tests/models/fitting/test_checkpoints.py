"""Checkpoints of a fit: what is in them, whose they are, and what becomes of them."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    StoreError,
    TripleBasisRegressor,
)
from bagbasis.core.saved import NewerError
from bagbasis.models import Checkpoints
from bagbasis.models.fitting import partials
from bagbasis.models.fitting.checkpoints import FitCheckpointStore, describe_fit
from bagbasis.models.fitting.partials import read_partial, write_partial
from bagbasis.models.outcomes.classes import Classes
from tests.execution.logged import EVERY, N_TASKS, checkpoints, many_tasks
from tests.models.splits import Split
from tests.oracles.labelled import LabelledBags, Targets, labelled, labelled_bags, stored
from tests.oracles.planned import Problem, Reals, chosen_features, plan_of
from tests.passes import pass_limits

N = 96
BAGS, Y = labelled_bags(N, most=12)


@pytest.fixture(autouse=True)
def _many_tasks():
    with many_tasks():
        yield


@pytest.fixture
def store(tmp_path):
    return stored(tmp_path / "s.zarr", BAGS, Y)


def regressor(**params):
    return DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=4),
        RandomFourierFeatures(n_features=32),
        **{"alpha": 0.1, **params},
    )


def task_of(store, **changes):
    bags = labelled(store, left_out=Split(0.2, 1))
    features = chosen_features(regressor(), Problem(bags, Reals(1)))
    return replace(plan_of(bags, features, Split(0.3, 2)), **changes)


def same(a, b):
    """Whether all numbers of two statistics are equal to the bit."""
    parts = [(a.train, b.train), (a.validation, b.validation)]
    for ours, theirs in parts:
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.n == theirs.n
            for name in ("sum_z", "gram", "sum_y", "cross", "sum_yy"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    counts = ("n_unlabelled", "n_held_out", "n_points", "n_outside", "n_responses_outside")
    for name in counts:
        assert getattr(a, name) == getattr(b, name)
    return True


class Stopping:
    """A source's bags until some ranges have been read."""

    def __init__(self, monkeypatch, ranges):
        self.n = 0
        whole = LabelledBags.batches

        def batches(source, *bag_range, **limits):
            self.n += 1
            if self.n > ranges:
                raise KeyboardInterrupt
            return whole(source, *bag_range, **limits)

        monkeypatch.setattr(LabelledBags, "batches", batches)


@pytest.mark.long
def test_every_damage_is_noticed(store, tmp_path):
    """A file with any one byte changed, or cut anywhere, gives the right numbers or an error:
    never others."""
    path = tmp_path / "p.npz"
    value = task_of(store).run()
    write_partial(path, value)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    noticed = 0
    for at in rng.integers(0, len(whole), 150):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            assert same(read_partial(path), value)
        except ValueError:
            noticed += 1
    assert noticed > 100
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"Error|BadZipFile"):
            read_partial(path)


@pytest.mark.long
@pytest.mark.parametrize("cut", [3, 17, 31])
def test_interrupted_fit_goes_on(store, tmp_path, monkeypatch, cut):
    """Interrupted after some tasks, the same fit reads only what is missing; the statistics are
    those of one undisturbed pass, to the bit."""
    task = task_of(store)
    saved = checkpoints(tmp_path / "kept", store, task.features)
    undisturbed = checkpoints(tmp_path / "other", store, task.features)
    expected = task.run(checkpoint_store=undisturbed.store_of(task))
    with monkeypatch.context() as patch:
        Stopping(patch, cut)
        with pytest.raises(KeyboardInterrupt):
            task.run(checkpoint_store=saved.store_of(task))
    with monkeypatch.context() as patch:
        stopping = Stopping(patch, N_TASKS)
        checkpoint_store = saved.store_of(task)
        n_kept = checkpoint_store.n_bags_kept(task.ranges)
        seen = []
        result = task.run(lambda done, total: seen.append(done), checkpoint_store)
        assert same(result, expected)
        assert stopping.n == N_TASKS - cut // EVERY * EVERY
        assert n_kept == cut // EVERY * EVERY * N // N_TASKS
        assert seen[-1] == N
        assert seen == sorted(seen)


@pytest.mark.long
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_checkpoints_change_nothing_but_rounding(store, tmp_path, precision):
    """Statistics merged in groups are those merged task by task, to the rounding of doubles."""
    task = task_of(store, precision=precision)
    checkpoint_store = checkpoints(tmp_path / "kept", store, task.features).store_of(task)
    plain, grouped = task.run(), task.run(checkpoint_store=checkpoint_store)
    assert len(list(Path(checkpoint_store.url).glob("group-*.npz"))) == N_TASKS // EVERY
    for name in ("sum_z", "gram", "sum_y", "cross", "sum_yy"):
        ours, theirs = getattr(grouped.train, name), getattr(plain.train, name)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13 * np.abs(theirs).max())


@pytest.mark.long
def test_damaged_file_is_done_again(store, tmp_path, monkeypatch, caplog):
    """A damaged checkpoint is named in the log, and its tasks, no others, are done again."""
    task = task_of(store)
    saved = checkpoints(tmp_path / "kept", store, task.features)
    checkpoint_store = saved.store_of(task)
    expected = task.run(checkpoint_store=checkpoint_store)
    path = Path(checkpoint_store.url, "group-0005.npz")
    path.write_bytes(path.read_bytes()[:-50])
    stopping = Stopping(monkeypatch, N_TASKS)
    assert same(task.run(checkpoint_store=checkpoint_store), expected)
    assert stopping.n == EVERY
    assert "group-0005.npz: damaged checkpoint" in caplog.text


@pytest.mark.parametrize(
    ("format", "counts", "words"),
    [(2, {}, "sums of format 2"), (1, {"n_strata": 3}, "'n_strata'")],
    ids=["format", "count"],
)
def test_newer_checkpoints_are_named(tmp_path, monkeypatch, format, counts, words):
    """They are whole: the fit does not begin anew, and their file stays."""
    path = tmp_path / "group-0000.npz"
    monkeypatch.setattr(partials, "SUMS_FORMAT", replace(partials.SUMS_FORMAT, version=format))
    partials.write_arrays(path, {"a": np.arange(3.0)}, counts)
    monkeypatch.undo()
    with pytest.raises(StoreError, match=f"{words}.*update bagbasis") as refused:
        FitCheckpointStore(str(tmp_path), 1).load(0)
    assert isinstance(refused.value.__cause__, NewerError)
    assert path.exists()


@pytest.mark.parametrize(("seconds", "tasks"), [(1e-9, 1), (1.0, 1), (2.5, 2), (3.9, 3), (1e9, 4)])
def test_interval(store, tmp_path, seconds, tasks):
    """Seconds become tasks by the cost model: at least one, and at most so many that there are
    groups for all workers."""
    task = task_of(store)
    of_a_task = task.seconds / N_TASKS
    value = seconds * of_a_task * (1 + 1e-9)
    assert Checkpoints(tmp_path / "kept", seconds=value).store_of(task).every == tasks


def test_no_two_fits_share(store, tmp_path, monkeypatch):
    """Whatever changes the sums is another folder: bases, encoding, splits, precision, plan,
    targets, the store's bags, a store made anew, and the code."""
    task = task_of(store)
    saved = Checkpoints(tmp_path / "kept")
    spec, fourier = task.features.embedding, task.features.second
    changed = [
        task,
        replace(task, features=replace(task.features, embedding=replace(spec, max_norm=2.0))),
        replace(task, features=replace(task.features, second=replace(fourier, seed=1))),
        replace(task, features=replace(task.features, second=replace(fourier, scale=0.7))),
        replace(task, outcome=Classes((1.0,))),
        replace(task, outcome=Classes((2.0,))),
        replace(task, bags=replace(task.bags, left_out=None)),
        replace(task, bags=replace(task.bags, left_out=Split(0.2, 3))),
        replace(task, validation=None),
        replace(task, precision="float64"),
        replace(task, bags=replace(task.bags, labels=Targets())),
    ]
    urls = [saved.store_of(item).url for item in changed]
    with pass_limits(small_tasks=16):
        urls.append(saved.store_of(replace(task)).url)
    urls.append(Checkpoints(tmp_path / "kept", seconds=1e-9).store_of(task).url)
    monkeypatch.setattr("bagbasis.models.fitting.checkpoints.digest_of_sources", lambda: "other")
    urls.append(saved.store_of(task).url)
    monkeypatch.setattr(
        "bagbasis.models.fitting.checkpoints.versions_of", lambda names: dict.fromkeys(names, "9")
    )
    urls.append(saved.store_of(task).url)
    again = BagStore.create(store.url, 2, target_names=["y"], overwrite=True)
    again.append(BAGS, targets={"y": Y})
    urls.append(saved.store_of(task_of(again, features=task.features)).url)
    again.append(BAGS[:1], targets={"y": Y[:1]}, ids=[N])
    urls.append(saved.store_of(task_of(again, features=task.features)).url)
    assert len(set(urls)) == len(changed) + 6


@pytest.mark.long
def test_fit_removes_its_checkpoints(store, tmp_path, monkeypatch):
    """At a URL nothing is left after the fit; after an interrupted one everything is."""
    folder = tmp_path / "kept"
    with monkeypatch.context() as patch:
        Stopping(patch, 22)
        with pytest.raises(KeyboardInterrupt):
            regressor().fit(store, checkpoints=folder)
    assert len(list(folder.glob("fit-*/group-*"))) == 5
    model = regressor().fit(store, checkpoints=folder)
    assert model.report_["n_bags_resumed"] == 20 * N // N_TASKS
    assert not folder.exists()
    np.testing.assert_allclose(model.coef_, regressor().fit(store).coef_, rtol=0, atol=1e-12)


@pytest.mark.long
def test_block_keeps_what_failed(store, tmp_path):
    """Used as a block, checkpoints outlive an error after the fit, and not its good end."""
    folder = tmp_path / "kept"
    saved = Checkpoints(folder)
    model = regressor().fit(store, checkpoints=saved)
    with pytest.raises(OSError, match="nowhere"), saved:
        os.stat("/nowhere/model")
    assert model.report_["n_bags_resumed"] == 0
    with Checkpoints(folder) as saved:
        model = regressor().fit(store, checkpoints=saved)
        assert model.report_["n_bags_resumed"] == N
    assert not folder.exists()


@pytest.mark.long
def test_checkpoints_of_others(store, tmp_path):
    """Those of another fit stay, unless nobody has written to them for a day; other files stay."""
    folder = tmp_path / "kept"
    urls = [
        Checkpoints(folder).store_of(task_of(store, precision=precision)).url
        for precision in ("float32", "float64")
    ]
    (folder / "notes.txt").write_text("mine")
    long_ago = time.time() - 100_000
    os.utime(f"{urls[0]}/fit.json", (long_ago, long_ago))
    regressor().fit(store, checkpoints=folder)
    assert sorted(path.name for path in folder.iterdir()) == [Path(urls[1]).name, "notes.txt"]


@pytest.mark.long
def test_other_estimators(tmp_path):
    """Classifier and densities take checkpoints too, and give the same model."""
    codes = (Y > 0).astype(float)
    bases = (ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=32))
    of_classes = stored(tmp_path / "c.zarr", BAGS, codes)
    of_pairs = BagStore.create(tmp_path / "p.zarr", 2, response_dims=1)
    of_pairs.append(BAGS, responses=[bag[:, :1] for bag in BAGS])
    for kind, store in ((DoubleBasisClassifier, of_classes), (TripleBasisRegressor, of_pairs)):
        with Checkpoints(tmp_path / "kept") as saved:
            first = kind(*bases, alpha=0.1).fit(store, checkpoints=saved)
            again = kind(*bases, alpha=0.1).fit(store, checkpoints=saved)
        assert again.report_["n_bags_resumed"] == N
        np.testing.assert_array_equal(again.coef_, first.coef_)
        plain = kind(*bases, alpha=0.1).fit(store)
        np.testing.assert_allclose(first.coef_, plain.coef_, rtol=0, atol=1e-12)


@pytest.mark.long
def test_remote_filesystem(store, monkeypatch):
    """On a filesystem without renames (memory://) as well: kept, resumed, removed."""
    url = "memory://checkpoints-of-a-test"
    task = task_of(store)
    saved = checkpoints(url, store, task.features)
    expected = task.run(checkpoint_store=saved.store_of(task))
    saved.discard()
    with monkeypatch.context() as patch:
        Stopping(patch, 10)
        with pytest.raises(KeyboardInterrupt):
            task.run(checkpoint_store=saved.store_of(task))
    stopping = Stopping(monkeypatch, N_TASKS)
    assert same(task.run(checkpoint_store=saved.store_of(task)), expected)
    assert stopping.n == N_TASKS - 8
    saved.discard()
    assert not any(path for path in fsspec.filesystem("memory").find("/checkpoints-of-a-test"))


def test_bags_in_memory_have_none(tmp_path):
    """Bags in memory cannot be read again by another process."""
    with pytest.raises(ParameterError, match="not for bags in memory"):
        regressor().fit(BAGS, Y, checkpoints=tmp_path)


def test_place_that_can_not_be_written(store):
    """A folder that cannot be made is refused before the pass begins."""
    with pytest.raises(StoreError, match=r"/proc/nowhere/.*cannot be written"):
        regressor().fit(store, checkpoints="/proc/nowhere")


@pytest.mark.long
@pytest.mark.parametrize("changed", ["points", "labels"])
def test_store_made_anew_begins_anew(tmp_path, changed):
    """Sums of the bags before are not added to those of other bags with the same ids and sizes."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    saved = Checkpoints(tmp_path / "kept")
    regressor().fit(store, target="y", checkpoints=saved)
    bags = [1 - bag for bag in BAGS] if changed == "points" else BAGS
    y = Y + np.arange(N) if changed == "labels" else Y
    shutil.rmtree(tmp_path / "s.zarr")
    other = stored(tmp_path / "s.zarr", bags, y)
    model = regressor().fit(other, target="y", checkpoints=saved)
    assert model.report_["n_bags_resumed"] == 0
    fresh = regressor().fit(other, target="y")
    np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=1e-9)
    again = regressor().fit(other, target="y", checkpoints=saved)
    assert again.report_["n_bags_resumed"] == N


def test_another_process_agrees(store, tmp_path):
    """The folder's name holds nothing of a process: objects opened anew name the same one."""
    first = describe_fit(task_of(store))
    assert describe_fit(task_of(BagStore.open(store.url))) == first
