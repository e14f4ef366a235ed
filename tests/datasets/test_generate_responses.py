"""Datasets with responses streamed into stores: each block made once, the same bytes every time."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from bagbasis.bags import Bags, BagStore, concatenate
from bagbasis.bags.append import AppendSession
from bagbasis.bags.responses import concatenate_responses
from bagbasis.clusters import connect
from bagbasis.datasets import generate, generate_blocks
from bagbasis.errors import DataError, StoreError, WriterBusyError
from tests.datasets.generating_responses import DATASET, Shifted

ROOT = Path(__file__).parents[2]


def assert_holds(store: BagStore, n_bags: int) -> None:
    """The committed bags and responses are the dataset's first ones, and the store is sound."""
    store = BagStore.open(store.url)
    blocks = [DATASET.response_block(i) for i in range(-(-n_bags // DATASET.block_bags))]
    bags = concatenate([block.bags for block in blocks])[:n_bags]
    responses = concatenate_responses([block.responses for block in blocks])[:n_bags]
    assert store.read().points.tobytes() == bags.points.tobytes()
    np.testing.assert_array_equal(store.offsets(), bags.offsets)
    assert store.responses().points.tobytes() == responses.points.tobytes()
    np.testing.assert_array_equal(store.response_offsets(), responses.offsets)
    np.testing.assert_array_equal(store.targets()[:, 0], bags.sizes)
    np.testing.assert_array_equal(store.ids(), np.arange(n_bags))
    assert 0 < len(responses.positions) < n_bags
    store.verify()


@pytest.mark.parametrize("n_bags", [50, 130, 330])
@pytest.mark.parametrize(("chunk_points", "commit_seconds"), [(3, 0), (None, 30)])
def test_blocks_commits_and_chunks_do_not_show(
    n_bags: int,
    chunk_points: int | None,
    commit_seconds: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often blocks are committed, and whatever their shards, the bags are the dataset's."""
    monkeypatch.setattr(generate_blocks, "COMMIT_SECONDS", commit_seconds)
    done: list[int] = []
    store = generate(
        DATASET,
        tmp_path / "x.zarr",
        n_bags,
        chunk_points=chunk_points,
        progress=lambda *at: done.append(at[0]),
    )
    assert_holds(store, n_bags)
    assert store.response_box is not None
    assert store.response_box.bounds == [[0, 2]] * 3
    assert done == sorted(done)
    assert done[-1] == n_bags


def test_each_block_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may be a simulation of minutes: none is made for its sizes, or made twice."""
    made = []
    original = Shifted.response_block
    monkeypatch.setattr(
        Shifted, "response_block", lambda self, index: made.append(index) or original(self, index)
    )
    generate(DATASET, tmp_path / "x.zarr", 430, chunk_points=3)
    assert made == list(range(9))


def test_two_processes_write_what_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks come back from a cluster in any order and are stored in that of the dataset."""
    monkeypatch.setattr(generate_blocks, "COMMIT_SECONDS", 0)
    with connect("local", n_workers=2, cores_per_worker=1):
        store = generate(DATASET, tmp_path / "x.zarr", 630, chunk_points=20)
        again = generate(DATASET, tmp_path / "x.zarr", 630)
    assert_holds(store, 630)
    assert again.n_bags == 630


def test_killed_twice_and_run_again(tmp_path: Path) -> None:
    """After kill -9 the next run goes on behind the last committed block."""
    url, n_bags = tmp_path / "x.zarr", 430
    committed = [0]
    for kill_at in (150, 300):
        module = "tests.datasets.generating_responses"
        command = [sys.executable, "-m", module, url, n_bags, kill_at]
        run = subprocess.run(list(map(str, command)), capture_output=True, check=False, cwd=ROOT)
        assert run.returncode == -signal.SIGKILL, run.stderr.decode()
        store = BagStore.open(url)
        store.verify()
        committed.append(store.n_bags)
        assert committed[-2] < committed[-1] < kill_at
    seen: list[int] = []
    store = generate(DATASET, url, n_bags, progress=lambda done, total: seen.append(done))
    assert seen[0] == committed[-1]
    assert_holds(store, n_bags)


def test_a_short_block_is_refused(tmp_path: Path) -> None:
    """A block of fewer bags than the dataset says would shift all that follow."""
    with pytest.raises(DataError, match="shifted: block 2 holds 49 bags, expected 50"):
        generate(Shifted(short=True), tmp_path / "x.zarr", 200)


def test_a_rival_between_two_commits_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are never written behind bags that another run of the same dataset appended."""
    monkeypatch.setattr(generate_blocks, "COMMIT_SECONDS", 0)
    store = generate(DATASET, tmp_path / "x.zarr", 50)

    @contextmanager
    def session() -> Iterator[AppendSession]:
        if store.n_bags == 100:
            bags, targets, responses = DATASET.response_block(2)
            BagStore.open(store.url).append(bags, targets, responses=responses)
        with store.appending() as writer:
            yield writer

    with pytest.raises(WriterBusyError, match="somebody else appended"):
        generate_blocks.append_blocks(DATASET, store, 300, session, None)
    assert_holds(store, 150)


def test_other_bags_are_not_taken_for_ours(tmp_path: Path) -> None:
    """Bags that were appended by hand, or of another seed, stop the run."""
    generate(DATASET, tmp_path / "x.zarr", 100)
    with pytest.raises(StoreError, match="holds other bags"):
        generate(Shifted(seed=6), tmp_path / "x.zarr", 100)
    BagStore.open(tmp_path / "x.zarr").append(Bags.from_list([[[0.5, 0.5]]]), [1.0])
    with pytest.raises(StoreError, match="did not make"):
        generate(DATASET, tmp_path / "x.zarr", 100)
