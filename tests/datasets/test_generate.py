"""Datasets streamed into stores: the same bytes from any tasks, commits, processes and kills."""

from __future__ import annotations

import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bagbasis import Bags, BagStore, DataError, ParameterError, StoreError, WriterBusyError
from bagbasis.data.bags.bags import concatenate
from bagbasis.data.store.schema import StoreArray
from bagbasis.datasets import (
    BLOCK,
    Dataset,
    Digits,
    Dirichlet,
    GMMComponents,
    SyntheticMapping,
    generate,
)
from bagbasis.datasets.base import LabelledBlock, ResponseDataset
from tests.data.store.processes import running
from tests.datasets.generating import KILLED, RAGGED, SHIFTED, Shifted, generate_and_die
from tests.workers import two_workers


def assert_holds(store: BagStore, dataset: Dataset, n_bags: int) -> None:
    """Compare the committed bags and responses with the dataset's first ones, and verify."""
    store = BagStore.open(store.url)
    indices = range(-(-n_bags // dataset.block_bags))
    blocks = [dataset.block(i) for i in indices]
    bags = concatenate([block[0] for block in blocks])[:n_bags]
    targets = np.concatenate([block[1] for block in blocks])[:n_bags]
    read = store.read()
    assert read.points.tobytes() == bags.points.tobytes()
    np.testing.assert_array_equal(read.offsets, bags.offsets)
    np.testing.assert_array_equal(store.targets(), targets)
    np.testing.assert_array_equal(store.ids(), np.arange(n_bags))
    if isinstance(dataset, ResponseDataset):
        parts = [dataset.response_block(i).responses for i in indices]
        responses = concatenate(parts)[:n_bags]
        assert store.responses().points.tobytes() == responses.points.tobytes()
        np.testing.assert_array_equal(store.response_offsets(), responses.offsets)
        assert 0 < len(responses.positions) < n_bags
    store.verify()


@pytest.mark.parametrize(
    ("dataset", "n_bags"),
    [
        pytest.param(RAGGED, 9 * BLOCK + 300, marks=pytest.mark.long),  # two tasks
        (GMMComponents(n_points=5), BLOCK),
        (Dirichlet(n_points=(2, 6), n_categories=4), 1500),
        (SyntheticMapping(n_points=3), 1),
        pytest.param(Digits(split="test"), 540, marks=pytest.mark.long),
        (SHIFTED, 50),
        (SHIFTED, 330),  # two waves
    ],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.parametrize(("chunk_points", "commit_seconds"), [(90, 0), (1000, 30)])
def test_chunks_tasks_and_commits_do_not_show(
    dataset: Dataset, n_bags: int, chunk_points: int, commit_seconds: float, tmp_path: Path
) -> None:
    """However often blocks are committed, and whatever their shards, the bags are the dataset's.

    Progress runs from 0 to ``n_bags`` and never back.
    """
    seen: list[tuple[int, int]] = []
    store = generate(
        dataset,
        tmp_path / "x.zarr",
        n_bags=n_bags,
        chunk_points=chunk_points,
        commit_seconds=commit_seconds,
        progress=lambda *at: seen.append(at),
    )
    assert_holds(store, dataset, n_bags)
    done = [at for at, _ in seen]
    assert (done[0], done[-1]) == (0, n_bags)
    assert {total for _, total in seen} == {n_bags}
    assert done == sorted(done)
    assert len(set(done)) > n_bags // dataset.block_bags


def test_store_describes_the_dataset(tmp_path: Path) -> None:
    """Names, boxes, classes and source reach the store; a finite dataset needs no n_bags."""
    digits = generate(Digits(split="train", seed=2), tmp_path / "digits.zarr")
    assert_holds(digits, Digits(split="train", seed=2), 1257)
    assert digits.target_names == ("digit",)
    assert digits.meta.class_names == {"digit": list("0123456789")}
    assert digits.box.bounds == [[0, 1]] * 3
    mixtures = BagStore.open(generate(RAGGED, tmp_path / "gmm.zarr", n_bags=10).url)
    assert mixtures.box.bounds == [[-10, 10]] * 2
    assert mixtures.meta.source == {
        "dataset": "gmm_components",
        "params": {"seed": 5, "n_points": [1, 9], "variant": "001"},
        "n_bags": 10,
    }
    shifted = generate(SHIFTED, tmp_path / "shifted.zarr", n_bags=10)
    assert shifted.response_box is not None
    assert shifted.response_box.bounds == [[0, 2]] * 3


@pytest.mark.long
def test_each_block_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may be a simulation of minutes: none is made for its sizes, or made twice."""
    made = []
    original = Shifted.response_block
    monkeypatch.setattr(
        Shifted, "response_block", lambda self, index: made.append(index) or original(self, index)
    )
    generate(SHIFTED, tmp_path / "x.zarr", n_bags=430, chunk_points=3)
    assert made == list(range(9))


@pytest.mark.long
def test_two_processes_write_what_one_does(tmp_path: Path) -> None:
    """Blocks come back from a cluster in any order and are stored in that of the dataset."""
    with two_workers():
        for dataset, n_bags in ((RAGGED, 20 * BLOCK), (SHIFTED, 630)):
            url = tmp_path / dataset.name
            store = generate(dataset, url, n_bags=n_bags, chunk_points=1000, commit_seconds=0)
            assert_holds(store, dataset, n_bags)
            assert generate(dataset, url, n_bags=n_bags).n_bags == n_bags


@pytest.mark.long
@pytest.mark.parametrize(
    ("prefix", "name", "kills"),
    [
        ("", "bags", (25_000, 50_000)),
        ("icechunk+file://", "bags", (25_000, 50_000)),
        ("", "responses", (150, 300)),
    ],
)
def test_killed_twice_and_run_again(
    prefix: str, name: str, kills: tuple[int, ...], tmp_path: Path
) -> None:
    """After kill -9 in two different waves, the third run only adds what was missing.

    So it is in a store kept by Icechunk.
    """
    url = f"{prefix}{tmp_path}/x.zarr"
    dataset, n_bags = KILLED[name]
    committed = [0]
    for kill_at in kills:
        with running(generate_and_die, name, url, kill_at) as (process, _):
            process.join()
        assert process.exitcode == -signal.SIGKILL
        store = BagStore.open(url)
        store.verify()
        committed.append(store.n_bags)
        assert committed[-2] < committed[-1] < kill_at
    seen: list[int] = []
    store = generate(dataset, url, n_bags=n_bags, progress=lambda done, total: seen.append(done))
    assert seen[0] == committed[-1]
    assert_holds(store, dataset, n_bags)


def test_killed_while_the_store_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill before the first commit leaves does not stand in the way of the next run."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StoreArray, "create", killed)
        with pytest.raises(KeyboardInterrupt):
            generate(RAGGED, tmp_path / "x.zarr", n_bags=100)
    assert_holds(generate(RAGGED, tmp_path / "x.zarr", n_bags=100), RAGGED, 100)


@dataclass(frozen=True, kw_only=True)
class FailsInBlockTen(GMMComponents):
    """Raises in block 10 while the file is there."""

    flag: str = ""

    def block(self, index: int) -> LabelledBlock:
        """Make a block, or fail."""
        if index == 10 and os.path.exists(self.flag):
            raise OSError("out of luck")
        return super().block(index)


@pytest.mark.long
def test_a_failed_task_loses_no_commit(tmp_path: Path) -> None:
    """An error in a task reaches the caller; what was committed stays and the next run goes on."""
    flag = tmp_path / "flag"
    flag.touch()
    dataset = FailsInBlockTen(n_points=(1, 9), flag=str(flag))
    with pytest.raises(OSError, match="out of luck"):
        generate(dataset, tmp_path / "x.zarr", n_bags=12 * BLOCK, commit_seconds=0)
    store = BagStore.open(tmp_path / "x.zarr")
    assert store.n_bags == 8 * BLOCK
    store.verify()
    flag.unlink()
    assert_holds(generate(dataset, store.url, n_bags=12 * BLOCK), dataset, 12 * BLOCK)


def test_complete_store_is_left_as_it_is(tmp_path: Path) -> None:
    """Asked again for the same bags, `generate` writes nothing."""
    url = tmp_path / "x.zarr"

    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in url.rglob("*") if path.is_file()}

    generate(RAGGED, url, n_bags=100)
    before = files()
    assert generate(RAGGED, url, n_bags=100).n_bags == 100
    assert files() == before


def test_other_bags_are_not_touched(tmp_path: Path) -> None:
    """Another seed, another number of bags or a store of one's own is refused, unless told."""
    url = tmp_path / "x.zarr"
    generate(RAGGED, url, n_bags=100)
    for dataset, n_bags in ((RAGGED, 101), (GMMComponents(n_points=(1, 9), seed=6), 100)):
        with pytest.raises(StoreError, match=r"x\.zarr: holds other bags .*overwrite=True"):
            generate(dataset, url, n_bags=n_bags)
    with pytest.raises(StoreError, match=r"chunks of \d+ points, not 50"):
        generate(RAGGED, url, n_bags=100, chunk_points=50)
    assert_holds(BagStore.open(url), RAGGED, 100)
    assert_holds(
        generate(Dirichlet(n_points=4), url, n_bags=30, overwrite=True), Dirichlet(n_points=4), 30
    )

    own = BagStore.create(tmp_path / "own.zarr", 2, target_names=["n_components"])
    own.append([np.zeros((3, 2))], targets={"n_components": [1]})
    with pytest.raises(StoreError, match="of unknown source"):
        generate(RAGGED, own.url, n_bags=100)
    (tmp_path / "file").write_text("not a store")
    with pytest.raises(StoreError, match="not a bag store"):
        generate(RAGGED, tmp_path / "file", n_bags=100)


@pytest.mark.long
def test_bags_appended_by_others_are_noticed(tmp_path: Path) -> None:
    """An unfinished store that somebody appended to is not continued at the wrong bag."""
    url = tmp_path / "x.zarr"

    def stop(done: int, total: int) -> None:
        if done >= 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(SHIFTED, url, n_bags=400, progress=stop, commit_seconds=0)
    store = BagStore.open(url)
    assert 0 < store.n_bags < 300
    store.append(Bags.from_list([[[0.5, 0.5]]]), [1.0])
    with pytest.raises(StoreError, match="appended that `generate` did not make"):
        generate(SHIFTED, url, n_bags=400)


@pytest.mark.long
def test_a_rival_between_two_commits_is_noticed(tmp_path: Path) -> None:
    """Blocks are never written behind bags that another run of the same dataset appended."""

    class Rival(logging.Handler):
        """Appends block 2 once block 1 is committed."""

        def emit(self, record: logging.LogRecord) -> None:
            if "100 of 300" in record.getMessage():
                bags, targets, responses = SHIFTED.response_block(2)
                BagStore.open(store.url).append(bags, targets, responses=responses)

    store = BagStore.create(tmp_path / "y.zarr", 2, target_names=["size"], response_dims=3)
    logger, rival = logging.getLogger("bagbasis.datasets.generation"), Rival(logging.INFO)
    logger.addHandler(rival)
    logger.setLevel(logging.INFO)
    try:
        with pytest.raises(WriterBusyError, match="somebody else appended"):
            generate(SHIFTED, store.url, n_bags=300, commit_seconds=0)
    finally:
        logger.removeHandler(rival)
        logger.setLevel(logging.NOTSET)
    assert_holds(store, SHIFTED, 150)


@pytest.mark.parametrize(
    ("dataset", "n_bags", "error", "message"),
    [
        (RAGGED, None, ParameterError, "n_bags is missing: gmm_components has no end"),
        (RAGGED, 0, ParameterError, "n_bags is 0"),
        (Digits(split="test"), 541, ParameterError, "n_bags is 541; .*from 1 to 540"),
        (Shifted(short=True), 200, DataError, "shifted: block 2 holds 49 bags, expected 50"),
    ],
)
def test_impossible_numbers_of_bags(
    dataset: Dataset, n_bags: int | None, error: type[Exception], message: str, tmp_path: Path
) -> None:
    """A number of bags that cannot be made, and a block that is too short, commit nothing."""
    with pytest.raises(error, match=message):
        generate(dataset, tmp_path / "x.zarr", n_bags=n_bags)
    assert error is DataError or not (tmp_path / "x.zarr").exists()
