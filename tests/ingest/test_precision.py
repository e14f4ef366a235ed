"""float32 must not merge points: Julian dates, Unix times, at every entrance to a store."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import pytest

from bagbasis import BagStore, DataError
from bagbasis.ingest import (
    ingest_arrays,
    ingest_catalogue,
    ingest_frame,
    ingest_npz,
    ingest_patches,
    ingest_tables,
)

NIGHT = 2459000.5 + np.arange(8) / 96  # every quarter of an hour
CASES = {
    "julian dates": NIGHT,
    "unix seconds": 1.7e9 + 15.0 * np.arange(8),
    "milliseconds": 1.7e12 + 1e4 * np.arange(8),
    "far degrees": 179.000001 + 1e-6 * np.arange(8),
}


def frame(values):
    return pd.DataFrame({"id": [1] * 8, "mag": np.arange(8.0), "t": values})


def by_append(values, path, **options):
    points = np.column_stack([np.arange(8.0), values])
    return BagStore.create(path / "s.zarr", 2, **options).append([points])


def by_reopened(values, path, **options):
    BagStore.create(path / "s.zarr", 2, **options)
    points = np.column_stack([np.arange(8.0), values])
    return BagStore.open(path / "s.zarr").append([points])


def by_arrays(values, path, **options):
    points = np.column_stack([np.arange(8.0), values])
    return ingest_arrays([points], path / "s.zarr", **options)


def by_npz(values, path, **options):
    points = np.column_stack([np.arange(8.0), values])
    np.savez(path / "a.npz", points=points, offsets=[0, 8])
    return ingest_npz(path / "a.npz", path / "s.zarr", **options)


def by_frame(values, path, **options):
    call = {"id_column": "id", "coordinates": ["mag", "t"]}
    return ingest_frame(frame(values), path / "s.zarr", **call, **options)


def by_parquet(values, path, **options):
    frame(values).to_parquet(path / "a.parquet")
    call = {"id_column": "id", "coordinates": ["mag", "t"], "box": [[0, 9], [0, 1e13]]}
    return ingest_tables(path / "a.parquet", path / "s.zarr", **call, **options)


def by_csv(values, path, **options):
    frame(values).to_csv(path / "a.csv", index=False)
    call = {"id_column": "id", "coordinates": ["mag", "t"]}
    return ingest_tables(path / "a.csv", path / "s.zarr", **call, **options)


def by_catalogue(values, path, **options):
    with h5py.File(path / "a.h5", "w") as file:
        for name, column in frame(values).items():
            file[name] = column.to_numpy()
    call = {"id_column": "id", "coordinates": ["mag", "t"]}
    return ingest_catalogue(path / "a.h5", path / "s.zarr", **call, **options)


def by_patches(values, path, **options):
    with h5py.File(path / "a.h5", "w") as file:
        file["features"] = np.column_stack([np.arange(8.0), values])
    return ingest_patches(path / "a.h5", path / "s.zarr", **options)


ENTRANCES = [
    by_append, by_reopened, by_arrays, by_npz, by_frame, by_parquet, by_csv, by_catalogue,
    by_patches,
]  # fmt: skip


def in_turn(cases):
    """Each entrance with two of the cases: the next ones of the list, over and over."""
    names = [*cases] * len(ENTRANCES)
    pairs = [(enter, names[2 * i + j]) for i, enter in enumerate(ENTRANCES) for j in range(2)]
    return pytest.mark.parametrize(("enter", "case"), pairs)


@pytest.mark.long
@in_turn(CASES)
def test_all_points_stay_apart(enter, case, tmp_path):
    """The dtype that nobody chose is float64 where the points need it."""
    store = enter(CASES[case], tmp_path)
    assert store.stored_dtype == np.float64
    np.testing.assert_array_equal(store[0][:, 1], CASES[case])
    store.verify()
    assert BagStore.open(store.url).meta == store.meta


@pytest.mark.long
@pytest.mark.parametrize("enter", ENTRANCES)
def test_a_chosen_dtype_stays(enter, tmp_path):
    """float32 is refused where it merges points; float64 and rounded numbers are taken."""
    with pytest.raises(
        DataError, match=r'coordinate .* ranges over .*dtype="float64", or subtract'
    ):
        enter(NIGHT, tmp_path, dtype="float32")
    if enter in (by_append, by_reopened):
        return
    assert enter(NIGHT - 2459000, tmp_path).stored_dtype == np.float32
    assert enter(NIGHT, tmp_path, dtype="float64", overwrite=True).stored_dtype == np.float64


HARMLESS = {
    "normal": np.random.default_rng(0).normal(size=8),
    "constant": np.full(8, 0.1),
    "years": 2000.0 + np.arange(8),
    "large integers": 2.0**23 + np.arange(8),
    "halves": 2.0**22 + np.arange(8) / 2,
    "wide": np.array([0.1, 1e9, 3, 4, 5, 6, 7, 8]),
}


@pytest.mark.long
@in_turn(HARMLESS)
def test_others_are_float32_as_before(enter, case, tmp_path):
    """Whatever float32 tells apart."""
    store = enter(HARMLESS[case], tmp_path)
    assert store.stored_dtype == np.float32
    assert not store.meta.is_dtype_open


@pytest.mark.long
@pytest.mark.parametrize("mode", ["append", "arrays", "frame"])
def test_a_later_append_that_needs_more(mode, tmp_path):
    """It is refused, and changes nothing; one that is narrow within a wide store is taken."""
    first = np.column_stack([np.arange(8.0), 1e7 * np.arange(8.0)])
    store = by_frame(first[:, 1], tmp_path)
    assert store.stored_dtype == np.float32

    def append(values):
        points = np.column_stack([np.arange(8.0), values])
        if mode == "append":
            store.append([points], ids=[9])
        elif mode == "arrays":
            ingest_arrays([points], store.url, ids=[9], mode="append")
        else:
            table = frame(values).assign(id=9)
            call = {"id_column": "id", "coordinates": ["mag", "t"], "mode": "append"}
            ingest_frame(table, store.url, **call)

    with pytest.raises(DataError, match='dtype="float64"'):
        append(1.7e12 + np.arange(8.0))
    assert store.refresh().n_bags == 1
    append(5e6 + 0.3 + 0.01 * np.arange(8))
    assert store.refresh().n_bags == 2


@pytest.mark.long
def test_one_point_at_a_time(tmp_path):
    """A first append of one date, then others of the same night."""
    store = BagStore.create(tmp_path / "s.zarr", 1, response_dims=1, chunk_points=7)
    for date in NIGHT[1:]:
        store.append([[[date]]], responses=[[[date + 1]]])
    np.testing.assert_array_equal(store.read().points[:, 0], NIGHT[1:])
    np.testing.assert_array_equal(store.responses().points[:, 0], NIGHT[1:] + 1)
    assert store.stored_dtype == np.float64
    only = BagStore.create(tmp_path / "t.zarr", 1, response_dims=1)
    only.append([[[0.5]]], responses=[NIGHT[:, None]])
    np.testing.assert_array_equal(only.responses().points[:, 0], NIGHT)


def test_refused_bags_change_nothing(tmp_path):
    """A store whose first append is refused is open as before."""
    store = BagStore.create(tmp_path / "s.zarr", 1)
    with pytest.raises(DataError):
        store.append([NIGHT[:, None]], ids=[1, 2])
    store.append([[[0.25], [0.5]]])
    assert store.stored_dtype == np.float32
