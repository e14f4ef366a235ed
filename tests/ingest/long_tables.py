"""Long tables for the tests of ingest, what they hold by pandas, and a killed ingest."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd

from bagbasis import BagStore

COLUMNS = {"id_column": "bag", "coordinates": ["u", "v"]}
RESPONSES = {"response_coordinates": ["s", "t", "w"], "response_id_column": "name"}


def long_table(
    rng: np.random.Generator, sizes: Sequence[int], ids: Sequence[object]
) -> pd.DataFrame:
    """One row a point in random order; the targets ``size`` and ``kind`` belong to the bag."""
    bag = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return pd.DataFrame(
        {
            "v": rng.normal(size=len(bag)),
            "bag": np.array(ids, dtype=object)[bag],
            "other": "x",
            "u": rng.random(len(bag)) * 1e-3,
            "size": np.array(sizes, dtype=float)[bag],
            "kind": np.array(["cat", "ant", "bee"], dtype=object)[bag % 3],
        }
    ).infer_objects()


def write(frame: pd.DataFrame, path: Path, **options: object) -> Path:
    """The frame in a file of the kind its name says."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False, **options)
    else:
        frame.to_csv(path, index=False, **options)
    return path


def scatter(
    frame: pd.DataFrame, folder: Path, endings: Sequence[str], group: int = 100
) -> list[Path]:
    """The rows in order over one file an ending; Parquet files have row groups of so many rows."""
    bounds = np.linspace(0, len(frame), len(endings) + 1).astype(int)
    paths = []
    for i, ending in enumerate(endings):
        options = {"row_group_size": group} if ending == ".parquet" else {}
        part = frame.iloc[bounds[i] : bounds[i + 1]]
        paths.append(write(part, folder / f"part{i}{ending}", **options))
    return paths


def assert_holds(store: BagStore, frame: pd.DataFrame, ids: Sequence[object]) -> None:
    """The store's ids, offsets and points are those of a pandas groupby of all rows in order."""
    groups = dict(iter(frame.groupby("bag", sort=False)))
    bags = store.read()
    assert store.ids().tolist() == list(ids)
    assert sorted(groups) == list(ids)
    assert store.n_points == len(frame)
    for bag, of_id in zip(bags, ids, strict=True):
        expected = groups[of_id][["u", "v"]].to_numpy().astype(store.dtype)
        np.testing.assert_array_equal(bag, expected)
    store.verify()


def response_table(rng: np.random.Generator, ids: Sequence[object]) -> pd.DataFrame:
    """One row a response point in random order, for about two thirds of the ids."""
    sizes = rng.choice([0, 1, 2, 30], len(ids))
    bag = rng.permutation(np.repeat(np.arange(len(ids)), sizes))
    return pd.DataFrame(
        {
            "w": rng.normal(size=len(bag)) * 100,
            "name": np.array(ids, dtype=object)[bag],
            "s": rng.random(len(bag)),
            "t": rng.random(len(bag)),
        }
    ).infer_objects()


def assert_holds_responses(store: BagStore, frame: pd.DataFrame) -> None:
    """The responses are those of a pandas groupby of all rows in order; other bags have none."""
    groups = dict(iter(frame.groupby("name", sort=False)))
    ids = store.ids().tolist()
    responses = store.responses()
    assert [ids[i] for i in responses.positions] == [i for i in ids if i in groups]
    assert store.n_response_points == len(frame)
    for i, response in zip(responses.positions, responses.present, strict=True):
        expected = groups[ids[i]][["s", "t", "w"]].to_numpy().astype(store.dtype)
        np.testing.assert_array_equal(response, expected)


def ingest_and_be_killed(
    _: object, points: Path, responses: Path, url: Path, on_cluster: bool
) -> None:
    """Ingest in this process alone and die, without any cleaning up, when half is written."""
    from distributed import Client

    from bagbasis.ingest import ingest_tables

    def kill(done: int, total: int) -> None:
        if done > 5 / 6 * total:
            os.kill(os.getpid(), signal.SIGKILL)

    client = Client(processes=False, dashboard_address=None) if on_cluster else nullcontext()
    with client:
        ingest_tables(points, url, responses=responses, progress=kill, **COLUMNS, **RESPONSES)
