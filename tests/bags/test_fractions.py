"""Stores of 16-bit fractions of the box: what is read, what is refused, and every job on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from bagbasis import Bags, BagStore, ProjectionEmbedding
from bagbasis.bags import merge_stores
from bagbasis.bags.box import Box
from bagbasis.bags.fractions import decode, encode
from bagbasis.errors import DataError, ParameterError, StoreError
from bagbasis.ingest import ingest_arrays, ingest_tables
from tests.jobs.running import done

BOX = [(-10.0, 10.0), (0.0, 1e-3)]
STEP = np.diff(BOX)[:, 0] / 65534
RNG = np.random.default_rng(0)
BAGS = [RNG.uniform(*np.transpose(BOX), (n, 2)) for n in (3, 1, 500, 40)]
ANSWERS = [RNG.uniform(2, 5, (n, 1)) for n in (4, 0, 7, 2)]


def make(url, n=4, **options):
    store = BagStore.create(url, 2, ["y"], BOX, dtype="uint16", **options)
    return store.append(BAGS[:n], np.arange(n), ids=np.arange(n))


@given(
    lo=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    d=st.integers(1, 3),
)
def test_nearest_fraction(lo, width, shares, d):
    """Each coordinate is off by no more than half a step, and by what float32 can not hold."""
    box = Box.of([(lo, lo + width * (j + 1)) for j in range(d)], d)
    points = box.from_unit(np.repeat(np.array(shares)[:, None], d, axis=1))
    found = decode(encode(points, box, np.array([0, len(points)]), None), box)
    assert found.dtype == np.float32
    half = np.array([hi - lo for lo, hi in box.bounds]) / (2 * 65534)
    rounding = 1.3e-7 * np.abs(points).max() + 1e-9 * half
    assert (np.abs(found - points) <= half + rounding).all()


def test_read_append_and_describe(tmp_path):
    """They read as float32 near the points, whatever the appends; info and repr say uint16."""
    store = make(tmp_path / "s.zarr", 2)
    BagStore.open(store.url).append(BAGS[2:], [2, 3], ids=[2, 3])
    store.refresh().verify()
    assert (store.dtype, store.stored_dtype) == (np.float32, np.uint16)
    bags = store.read()
    assert (bags.points.dtype, list(bags.sizes)) == (np.float32, [3, 1, 500, 40])
    assert (np.abs(bags.points - np.concatenate(BAGS)) <= 0.501 * STEP).all()
    assert "uint16" in done("info", store.url)
    embedding = ProjectionEmbedding(n_per_dim=5, box=BOX)
    errors = embedding.fit_transform(bags) - embedding.fit_transform(BAGS)
    assert np.abs(errors[2]).max() < 2e-5  # of 500 points


def test_outside_the_box_is_refused(tmp_path):
    """No fraction stands for it: the bag and the row are named, and nothing is committed."""
    store = make(tmp_path / "s.zarr")
    bad = [BAGS[0], np.array([[0.0, 5e-4], [10.01, 5e-4]])]
    with pytest.raises(DataError, match=r"bag with id 8, row 1: \[10.01, 0.0005\] is outside"):
        store.append(bad, [0, 0], ids=[7, 8])
    with pytest.raises(DataError, match="coordinate 0 is nan"):
        store.append([np.array([[np.nan, 0]])], [0], ids=[9])
    assert BagStore.open(store.url).n_bags == 4
    edge = np.array(BOX, np.float32).T  # may be a rounding beyond
    np.testing.assert_allclose(store.append([edge], [0], ids=[10]).read(4)[0], edge)


def test_merge_compact_and_responses(tmp_path):
    """What moves is coded anew in the larger box; what is deleted reads as an error, not as 0."""
    options = {"response_dims": 1, "response_box": [(2, 5)], "dtype": "uint16"}
    pairs = BagStore.create(tmp_path / "p.zarr", 2, (), BOX, **options)
    pairs.append(BAGS, ids=np.arange(4), responses=ANSWERS)
    found = pairs.responses().points
    assert np.abs(found - np.concatenate(ANSWERS)).max() <= 0.501 * 3 / 65534
    with pytest.raises(DataError, match=r"response of bag with id 9, row 0: \[6.0\] is outside"):
        pairs.append(BAGS[:1], ids=[9], responses=[[[6.0]]])

    other = BagStore.create(tmp_path / "o.zarr", 2, ["y"], [(0, 20), (0, 1)], dtype="uint16")
    other.append([np.full((2, 2), 0.5)], [5], ids=[50])
    merged = merge_stores([make(tmp_path / "s.zarr"), other], tmp_path / "m.zarr")
    assert merged.stored_dtype == np.uint16
    assert merged.box.bounds == [[-10, 20], [0, 1]]
    np.testing.assert_allclose(merged.read(4)[0], 0.5, atol=3e-4)
    plain = BagStore.create(tmp_path / "f.zarr", 2, ["y"], BOX)
    with pytest.raises(DataError, match="its stored_dtype is uint16"):
        merge_stores([plain, other], tmp_path / "n.zarr")

    merged.remove([2])
    merged.compact()
    again = BagStore.open(merged.url)
    again.verify()
    assert list(again.read().sizes) == [3, 1, 0, 40, 2]
    codes = zarr.open_array(merged.url, path="points", mode="r")[:]
    assert (codes[4:504] == 65535).all()
    assert (codes[:4] < 65535).all()


def test_missing_and_damaged(tmp_path):
    """A lost object is named; a fraction that stands for nothing is no coordinate."""
    store = make(tmp_path / "s.zarr")
    array = zarr.open_array(store.url, path="points", mode="r+")
    array[5, 1] = 65535
    for call in (store.read, store.verify):
        with pytest.raises(StoreError, match=r"bag 2.*a coordinate is not finite"):
            call()
    next(
        path for path in (tmp_path / "s.zarr" / "points" / "c").rglob("*") if path.is_file()
    ).unlink()
    with pytest.raises(StoreError, match=r"'points', chunk 0 .* is missing"):
        store.read()


def test_versions_that_know_no_fractions_refuse_the_store(tmp_path):
    """By a key that is in no other store's attributes."""
    urls = make(tmp_path / "s.zarr").url, BagStore.create(tmp_path / "f.zarr", 2).url
    keys = [dict(zarr.open_group(url, mode="r").attrs)["bagbasis"].keys() for url in urls]
    assert keys[0] - keys[1] == {"fractions"}


def test_ingest(tmp_path):
    """Arrays need a given box, tables measure theirs before they are written."""
    y = {"y": np.arange(4.0)}
    with pytest.raises(ParameterError, match="uint16 holds fractions of a box: give the box"):
        ingest_arrays(BAGS, tmp_path / "a.zarr", targets=y, dtype="uint16")
    store = ingest_arrays(BAGS, tmp_path / "a.zarr", targets=y, dtype="uint16", box=BOX)
    assert store.stored_dtype == np.uint16
    frame = pd.DataFrame(np.concatenate(BAGS), columns=["u", "v"])
    frame["bag"] = np.repeat(np.arange(4), [len(bag) for bag in BAGS])
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = {"id_column": "bag", "coordinates": ["u", "v"], "dtype": "uint16"}
    table = ingest_tables(tmp_path / "t.csv", tmp_path / "t.zarr", **given)
    np.testing.assert_allclose(table.read().points, frame[["u", "v"]], atol=2e-4)
    assert table.n_points == 544
    again = {**given, "mode": "append", "known_ids": "skip"}
    del again["dtype"]
    frame["bag"] += 2
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert ingest_tables(tmp_path / "t.csv", tmp_path / "t.zarr", **again).n_bags == 6
    with pytest.raises(
        ParameterError, match="dtype is 'int16'; expected float32, float64 or uint16"
    ):
        BagStore.create(tmp_path / "b.zarr", 2, dtype="int16")
    assert isinstance(store.read(), Bags)
