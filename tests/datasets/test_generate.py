"""Datasets streamed into stores: the same bytes from any number of tasks, waves and kills."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bagbasis.bags import Bags, BagStore, concatenate
from bagbasis.clusters import connect
from bagbasis.datasets import (
    BLOCK,
    Dataset,
    Digits,
    Dirichlet,
    GMMComponents,
    SyntheticMapping,
    generate,
)
from bagbasis.errors import DataError, ParameterError, StoreError
from tests.datasets import generating

module = importlib.import_module("bagbasis.datasets.generate")  # the function hides its module
ROOT = Path(__file__).parents[2]
RAGGED = GMMComponents(n_points=(1, 9), seed=5)


def first_bags(dataset: Dataset, n_bags: int) -> tuple[Bags, np.ndarray]:
    """The bags a store should hold, block after block."""
    parts = [dataset.block(i) for i in range(-(-n_bags // dataset.block_bags))]
    return concatenate([b for b, _ in parts])[:n_bags], np.concatenate([t for _, t in parts])[
        :n_bags
    ]


def assert_holds(store: BagStore, dataset: Dataset, n_bags: int) -> None:
    """The committed bags are the dataset's first ones, and the store is sound."""
    store = BagStore.open(store.url)
    bags, targets = first_bags(dataset, n_bags)
    read = store.read()
    assert read.points.tobytes() == bags.points.tobytes()
    np.testing.assert_array_equal(read.offsets, bags.offsets)
    np.testing.assert_array_equal(store.targets(), targets)
    np.testing.assert_array_equal(store.ids(), np.arange(n_bags))
    store.verify()


@pytest.mark.parametrize(
    ("dataset", "n_bags"),
    [
        (RAGGED, 2 * BLOCK + 300),
        (GMMComponents(n_points=5), BLOCK),
        (Dirichlet(n_points=(2, 6), n_categories=4), 1500),
        (SyntheticMapping(n_points=3), 1),
        (Digits(split="test"), 540),
    ],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.parametrize(("chunk_points", "wave_tasks"), [(30, 7), (100, 1), (1000, 2)])
def test_shards_tasks_and_waves_do_not_show(
    dataset: Dataset,
    n_bags: int,
    chunk_points: int,
    wave_tasks: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shards smaller and larger than a block, one of them a task, give the dataset's bags."""
    monkeypatch.setattr(module, "TASK_VALUES", 1)
    monkeypatch.setattr(module, "WAVE_TASKS", wave_tasks)
    store = generate(dataset, tmp_path / "x.zarr", n_bags, chunk_points=chunk_points)
    assert_holds(store, dataset, n_bags)


def test_store_describes_the_dataset(tmp_path: Path) -> None:
    """Names, box, classes and source reach the store; a finite dataset needs no n_bags."""
    digits = generate(Digits(split="train", seed=2), tmp_path / "digits.zarr")
    assert_holds(digits, Digits(split="train", seed=2), 1257)
    assert digits.target_names == ("digit",)
    assert digits.meta.class_names == {"digit": list("0123456789")}
    assert digits.box.bounds == [[0, 1]] * 3
    mixtures = BagStore.open(generate(RAGGED, tmp_path / "gmm.zarr", 10).url)
    assert mixtures.box.bounds == [[-10, 10]] * 2
    assert mixtures.meta.source == {
        "dataset": "gmm_components",
        "params": {"seed": 5, "n_points": [1, 9], "variant": "001"},
        "n_bags": 10,
    }


def test_progress_counts_bags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress runs from 0 to n_bags over all waves, and never back."""
    monkeypatch.setattr(module, "TASK_VALUES", 1)
    monkeypatch.setattr(module, "WAVE_TASKS", 2)
    seen: list[tuple[int, int]] = []
    generate(
        RAGGED, tmp_path / "x.zarr", 3000, chunk_points=100, progress=lambda *at: seen.append(at)
    )
    done = [d for d, _ in seen]
    assert (done[0], done[-1]) == (0, 3000)
    assert {total for _, total in seen} == {3000}
    assert done == sorted(done)
    assert len(set(done)) > 10


def test_two_processes_write_what_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of two worker processes makes the same store as this process."""
    monkeypatch.setattr(module, "TASK_VALUES", 1)
    with connect("local", n_workers=2, cores_per_worker=1):
        store = generate(RAGGED, tmp_path / "x.zarr", 2500, chunk_points=100)
        again = generate(RAGGED, tmp_path / "x.zarr", 2500)
    assert_holds(store, RAGGED, 2500)
    assert again.n_bags == 2500


@pytest.mark.parametrize("prefix", ["", "icechunk+file://"])
def test_killed_twice_and_run_again(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After kill -9 in two different waves, the third run only adds what was missing; in a store
    kept by Icechunk as well."""
    url, n_bags = f"{prefix}{tmp_path}/x.zarr", 9 * BLOCK + 100
    committed = [0]
    for kill_at in (3500, 7000):
        command = [sys.executable, "-m", "tests.datasets.generating", url, n_bags, kill_at]
        run = subprocess.run(list(map(str, command)), capture_output=True, check=False, cwd=ROOT)
        assert run.returncode == -signal.SIGKILL, run.stderr.decode()
        store = BagStore.open(url)
        store.verify()
        committed.append(store.n_bags)
        assert committed[-2] < committed[-1] < kill_at
    monkeypatch.setattr(module, "TASK_VALUES", 1)
    seen: list[int] = []
    store = generate(
        generating.DATASET, url, n_bags, progress=lambda done, total: seen.append(done)
    )
    assert seen[0] == committed[-1]
    assert_holds(store, generating.DATASET, n_bags)


def test_killed_while_the_store_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill before the first commit leaves does not stand in the way of the next run."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bagbasis.bags.creation.create_arrays", killed)
        with pytest.raises(KeyboardInterrupt):
            generate(RAGGED, tmp_path / "x.zarr", 100)
    assert_holds(generate(RAGGED, tmp_path / "x.zarr", 100), RAGGED, 100)


@dataclass(frozen=True, kw_only=True)
class FailsInBlockFour(GMMComponents):
    """Raises in block 4 while the file is there."""

    flag: str = ""

    def block(self, index: int) -> Any:
        if index == 4 and os.path.exists(self.flag):
            raise OSError("out of luck")
        return super().block(index)


def test_failed_task_commits_nothing_of_its_wave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in a task reaches the caller; earlier waves stay and the next run goes on."""
    monkeypatch.setattr(module, "TASK_VALUES", 1)
    monkeypatch.setattr(module, "WAVE_TASKS", 4)
    flag = tmp_path / "flag"
    flag.touch()
    dataset = FailsInBlockFour(n_points=(1, 9), flag=str(flag))
    with pytest.raises(OSError, match="out of luck"):
        generate(dataset, tmp_path / "x.zarr", 6 * BLOCK, chunk_points=100)
    store = BagStore.open(tmp_path / "x.zarr")
    assert 0 < store.n_bags <= 4 * BLOCK
    store.verify()
    flag.unlink()
    assert_holds(generate(dataset, store.url, 6 * BLOCK), dataset, 6 * BLOCK)


def test_complete_store_is_left_as_it_is(tmp_path: Path) -> None:
    """Asked again for the same bags, `generate` writes nothing."""
    url = tmp_path / "x.zarr"

    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in url.rglob("*") if path.is_file()}

    generate(RAGGED, url, 100)
    before = files()
    assert generate(RAGGED, url, 100).n_bags == 100
    assert files() == before


def test_other_bags_are_not_touched(tmp_path: Path) -> None:
    """Another seed, another number of bags or a store of one's own is refused, unless told."""
    url = tmp_path / "x.zarr"
    generate(RAGGED, url, 100)
    for dataset, n_bags in ((RAGGED, 101), (GMMComponents(n_points=(1, 9), seed=6), 100)):
        with pytest.raises(StoreError, match=r"x\.zarr: holds other bags .*overwrite=True"):
            generate(dataset, url, n_bags)
    with pytest.raises(StoreError, match=r"chunks of \d+ points, not 50"):
        generate(RAGGED, url, 100, chunk_points=50)
    assert_holds(BagStore.open(url), RAGGED, 100)
    assert_holds(
        generate(Dirichlet(n_points=4), url, 30, overwrite=True), Dirichlet(n_points=4), 30
    )

    own = BagStore.create(tmp_path / "own.zarr", 2, ["n_components"])
    own.append([np.zeros((3, 2))], targets={"n_components": [1]})
    with pytest.raises(StoreError, match="of unknown source"):
        generate(RAGGED, own.url, 100)
    (tmp_path / "file").write_text("not a store")
    with pytest.raises(StoreError, match="not a bag store"):
        generate(RAGGED, tmp_path / "file", 100)


def test_bags_appended_by_others_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unfinished store that somebody appended to is not continued at the wrong bag."""
    monkeypatch.setattr(module, "WAVE_BAGS", 1)
    url = tmp_path / "x.zarr"

    def stop(done: int, total: int) -> None:
        if done > BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(RAGGED, url, 3 * BLOCK, progress=stop)
    store = BagStore.open(url)
    assert store.n_bags == BLOCK
    store.append([np.zeros((3, 2))])
    with pytest.raises(StoreError, match="appended that `generate` did not make"):
        generate(RAGGED, url, 3 * BLOCK)


@pytest.mark.parametrize(
    ("dataset", "n_bags", "message"),
    [
        (RAGGED, None, "n_bags is missing: gmm_components has no end"),
        (RAGGED, 0, "n_bags is 0"),
        (Digits(split="test"), 541, "n_bags is 541; .*at most the 540 of digits"),
    ],
)
def test_impossible_numbers_of_bags(
    dataset: Dataset, n_bags: int | None, message: str, tmp_path: Path
) -> None:
    """A number of bags that can not be made is refused before anything is written."""
    with pytest.raises(ParameterError, match=message):
        generate(dataset, tmp_path / "x.zarr", n_bags)
    assert not (tmp_path / "x.zarr").exists()


def test_reserved_points_and_registered_bags_must_agree(tmp_path: Path) -> None:
    """Bags registered for more or fewer points than were reserved are refused."""
    store = BagStore.create(tmp_path / "x.zarr", 2, ["k"])
    with store.appending() as session:
        assert session.reserve_points(6) == 0
        with pytest.raises(DataError, match="bags of 5 points for 6 reserved"):
            session.register(np.array([2, 3]), {"k": [1, 2]})
        session.register(np.array([2, 4]), {"k": [1, 2]})
        store.write_points(0, np.ones((6, 2)))
        assert session.reserve_points(1) == 6
        with pytest.raises(DataError, match="bags of 2 points for 1 reserved"):
            session.register(np.array([2]), {"k": [1]})
        session.register(np.array([1]), {"k": [3]})
        store.write_points(6, np.zeros((1, 2)))
    store.verify()
    np.testing.assert_array_equal(store.offsets(), [0, 2, 6, 7])


@given(
    n_bags=st.integers(1, 3000),
    before=st.integers(0, 2),
    row=st.integers(0, 10_000),
    span=st.integers(1, 3000),
    max_points=st.integers(1, 30_000),
)
@settings(max_examples=60)
def test_plan_gives_every_row_to_one_task(
    n_bags: int, before: int, row: int, span: int, max_points: int
) -> None:
    """Tasks are consecutive, meet at multiples of the span, and know the blocks they overlap."""
    first = before * BLOCK
    wave = module.plan_wave(RAGGED, first, first + n_bags, row, max_points)
    stop = row + int(wave.sizes.sum())
    assert 0 < len(wave.sizes) <= n_bags
    assert len(wave.sizes) == n_bags or len(wave.sizes) % BLOCK == 0
    tasks = module.plan_tasks(RAGGED, None, wave.blocks, stop, span)
    assert tasks[0].start == row
    assert tasks[-1].stop == stop
    ends = {index: at + int(RAGGED.block_sizes(index).sum()) for index, at in wave.blocks}
    for task, following in zip(tasks, [*tasks[1:], None], strict=True):
        assert task.start < task.stop
        assert task.start // span == (task.stop - 1) // span
        assert following is None or (task.stop == following.start and task.stop % span == 0)
        overlapping = [(i, at) for i, at in wave.blocks if at < task.stop and ends[i] > task.start]
        assert list(task.blocks) == overlapping
