"""Stores of 16-bit fractions of the box, and of whole numbers of 8 bits: read, refused, changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given, strategies as st

from bagbasis import (
    Bags,
    BagStore,
    Box,
    DataError,
    HDDEmbedding,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
    StoreError,
    features,
    merge_stores,
)
from bagbasis.data.bags.packed_points import FRACTIONS, decode, encode
from bagbasis.ingest import ingest_arrays, ingest_tables
from tests.copied import copied
from tests.jobs.running import done

BOX = [(-10.0, 10.0), (0.0, 1e-3)]
STEP = np.diff(BOX)[:, 0] / 65534
RNG = np.random.default_rng(0)
BAGS = [RNG.uniform(*np.transpose(BOX), (n, 2)) for n in (3, 1, 500, 40)]
ANSWERS = [RNG.uniform(2, 5, (n, 1)) for n in (4, 0, 7, 2)]


@copied
def make(url, n=4):
    store = BagStore.create(url, 2, target_names=["y"], box=BOX, dtype="uint16")
    store.append(BAGS[:n], np.arange(n), ids=np.arange(n))


@given(
    lo=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    d=st.integers(1, 3),
)
def test_nearest_fraction(lo, width, shares, d):
    """Each coordinate is off by no more than half a step, and by what float32 cannot hold."""
    box = Box.of([(lo, lo + width * (j + 1)) for j in range(d)], d)
    points = box.from_unit(np.repeat(np.array(shares)[:, None], d, axis=1))
    result = decode(encode(points, FRACTIONS, box, np.array([0, len(points)]), None), box)
    assert result.dtype == np.float32
    half = np.array([hi - lo for lo, hi in box.bounds]) / (2 * 65534)
    rounding = 1.3e-7 * np.abs(points).max() + 1e-9 * half
    assert (np.abs(result - points) <= half + rounding).all()


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


@pytest.mark.long
def test_merge_compact_and_responses(tmp_path):
    """What moves is coded anew in the larger box; what is deleted reads as an error, not as 0."""
    options = {"response_dims": 1, "response_box": [(2, 5)], "dtype": "uint16"}
    pairs = BagStore.create(tmp_path / "p.zarr", 2, target_names=(), box=BOX, **options)
    pairs.append(BAGS, ids=np.arange(4), responses=ANSWERS)
    result = pairs.responses().points
    assert np.abs(result - np.concatenate(ANSWERS)).max() <= 0.501 * 3 / 65534
    with pytest.raises(DataError, match=r"response of bag with id 9, row 0: \[6.0\] is outside"):
        pairs.append(BAGS[:1], ids=[9], responses=[[[6.0]]])

    other = BagStore.create(
        tmp_path / "o.zarr", 2, target_names=["y"], box=[(0, 20), (0, 1)], dtype="uint16"
    )
    other.append([np.full((2, 2), 0.5)], [5], ids=[50])
    merged = merge_stores([make(tmp_path / "s.zarr"), other], tmp_path / "m.zarr")
    assert merged.stored_dtype == np.uint16
    assert merged.box.bounds == [[-10, 20], [0, 1]]
    np.testing.assert_allclose(merged.read(4)[0], 0.5, atol=3e-4)
    plain = BagStore.create(tmp_path / "f.zarr", 2, target_names=["y"], box=BOX)
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


@pytest.mark.parametrize(("dtype", "key"), [("uint16", "fractions"), ("uint8", "whole_numbers")])
def test_versions_that_know_no_packed_points_refuse_the_store(tmp_path, dtype, key):
    """By a key that is in no other store's attributes."""
    box = [(0, 255)] * 2
    stores = [
        BagStore.create(tmp_path / str(i), 2, dtype=d, box=box) for i, d in enumerate([dtype, "f4"])
    ]
    keys = [dict(zarr.open_group(s.url, mode="r").attrs)["bagbasis"].keys() for s in stores]
    assert keys[0] - keys[1] == {key}


PIXELS = [RNG.integers(0, 256, (n, 3), dtype=np.uint8) for n in (40, 1, 300)]
ANY_PIXELS = [(0, 255)] * 3


def whole(url, **options):
    options = {"dtype": "uint8", **options}
    return BagStore.create(url, 3, target_names=["y"], **options).append(
        PIXELS, [0, 1, 2], ids=[0, 1, 2]
    )


@pytest.mark.parametrize(
    "embedding",
    [ProjectionEmbedding(n_per_dim=3), HDDEmbedding("js", n_per_dim=3), MomentsEmbedding()],
)
def test_whole_numbers_are_exact(tmp_path, embedding):
    """A byte per coordinate, a box of [0, 255], and the bits of a float32 store's features."""
    store = whole(tmp_path / "s.zarr")
    store.verify()
    assert (store.dtype, store.stored_dtype) == (np.float32, np.uint8)
    assert store.box.bounds == [[0.0, 255.0]] * 3
    assert zarr.open_array(store.url, path="points", mode="r").dtype.itemsize == 1
    np.testing.assert_array_equal(store.read().points, np.concatenate(PIXELS))
    same = whole(tmp_path / "f.zarr", dtype="float32", box=ANY_PIXELS)
    result, expected = (np.asarray(features(s, embedding)) for s in (store, same))
    np.testing.assert_array_equal(result, expected)
    narrow = whole(tmp_path / "n.zarr", box=[(0, 9)] * 3)  # a box is no limit to whole numbers
    np.testing.assert_array_equal(narrow.read().points, store.read().points)


@pytest.mark.long
def test_what_is_no_whole_number_is_refused(tmp_path):
    """Bag and row are named, in responses too, and nothing is committed."""
    message = r"bag with id 8, row 1: .* no point of whole numbers from 0 to 255, which dtype uint8"
    store = whole(tmp_path / "s.zarr")
    pairs = BagStore.create(tmp_path / "p.zarr", 3, dtype="uint8", response_dims=1)
    assert pairs.response_box.bounds == [[0, 255]]
    pairs.append(PIXELS[:2], responses=[[[7]], [[0], [255]]])
    np.testing.assert_array_equal(pairs.responses().points, [[7], [0], [255]])
    for value in (0.5, -1, 256, 300, 1e30, -0.25, 255.5):
        bad = [PIXELS[0], np.array([[0, 1, 2], [0, value, 2]], float)]
        with pytest.raises(DataError, match=f"^{message}"):
            store.append(bad, [0, 0], ids=[7, 8])
        with pytest.raises(DataError, match=f"^response of {message}"):
            pairs.append(PIXELS[:1], ids=[8], responses=[[[1], [value]]])
    assert [BagStore.open(s.url).n_bags for s in (store, pairs)] == [3, 2]


def test_whole_numbers_merge_and_are_deleted(tmp_path):
    """Who opened the store before gets an error after `compact`: 0 to 255 are all numbers."""
    first = whole(tmp_path / "a.zarr")
    other = BagStore.create(
        tmp_path / "b.zarr", 3, target_names=["y"], box=[(0, 300)] * 3, dtype="uint8"
    )
    merged = merge_stores(
        [first, other.append(PIXELS[:1], [5], ids=[50])], tmp_path / "merged.zarr"
    )
    assert (merged.stored_dtype, merged.box.bounds) == (np.uint8, [[0, 300]] * 3)
    np.testing.assert_array_equal(merged.read(3)[0], PIXELS[0])
    before = BagStore.open(merged.url)
    merged.remove([2])
    np.testing.assert_array_equal(before.read(2, 3)[0], PIXELS[2])
    merged.compact()
    with pytest.raises(StoreError, match="was compacted meanwhile; open it again"):
        before.read(2, 3)
    again = BagStore.open(merged.url)
    again.verify()
    assert list(again.read().sizes) == [40, 1, 0, 40]
    stored = zarr.open_array(merged.url, path="points", mode="r")[41:341]
    assert (stored == 255).all()


@pytest.mark.long
def test_whole_numbers_from_tables_and_arrays(tmp_path):
    """Ingest measures their box, as of other points; a table's other numbers are refused."""
    y = {"y": np.arange(3.0)}
    store = ingest_arrays(PIXELS, tmp_path / "a.zarr", targets=y, dtype="uint8")
    float32 = ingest_arrays(PIXELS, tmp_path / "f.zarr", targets=y)
    assert (store.stored_dtype, store.box) == (np.uint8, float32.box)
    frame = pd.DataFrame(np.concatenate(PIXELS), columns=["r", "g", "b"])
    frame["bag"] = np.repeat(np.arange(3), [len(bag) for bag in PIXELS])
    frame.to_csv(tmp_path / "t.csv", index=False)
    arguments = {"id_column": "bag", "coordinates": ["r", "g", "b"], "dtype": "uint8"}
    table = ingest_tables(tmp_path / "t.csv", tmp_path / "t.zarr", **arguments)
    np.testing.assert_array_equal(table.read().points, store.read().points)
    assert table.stored_dtype == np.uint8
    frame.assign(g=frame.g / 2).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="no point of whole numbers from 0 to 255"):
        ingest_tables(tmp_path / "t.csv", tmp_path / "half.zarr", **arguments)
    assert not (tmp_path / "half.zarr").exists()


@pytest.mark.long
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
    arguments = {"id_column": "bag", "coordinates": ["u", "v"], "dtype": "uint16"}
    table = ingest_tables(tmp_path / "t.csv", tmp_path / "t.zarr", **arguments)
    np.testing.assert_allclose(table.read().points, frame[["u", "v"]], atol=2e-4)
    assert table.n_points == 544
    again = {**arguments, "mode": "append", "known_ids": "skip"}
    del again["dtype"]
    frame["bag"] += 2
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert ingest_tables(tmp_path / "t.csv", tmp_path / "t.zarr", **again).n_bags == 6
    assert isinstance(store.read(), Bags)
