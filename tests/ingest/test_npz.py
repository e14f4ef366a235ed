"""A store from an .npz file."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from bagbasis import BagbasisError, BagStore, Box, DataError
from bagbasis.ingest import ingest_npz
from tests.ingest.stored_arrays import SIZES, assert_holds, assert_holds_responses


@pytest.fixture
def npz(tmp_path):
    """Writes an .npz and gives its path."""

    def write(**arrays):
        np.savez(tmp_path / "bags.npz", **arrays)
        return tmp_path / "bags.npz"

    return write


@pytest.mark.long
def test_npz_with_responses(arrays, responses, npz, place, batches):
    """Points with offsets or sizes, of which 0 is no response; they count in the progress."""
    points = {"points": np.concatenate(arrays), "sizes": np.array(SIZES)}
    sizes = np.array([0 if r is None else len(r) for r in responses])
    points["response_points"] = np.concatenate([r for r in responses if r is not None])
    calls = []
    for extent in ({"response_sizes": sizes}, {"response_offsets": np.append(0, np.cumsum(sizes))}):
        store = ingest_npz(
            npz(**points, **extent),
            place,
            overwrite=True,
            progress=lambda *call: calls.append(call),
        )
        assert_holds(store, arrays)
        assert_holds_responses(store, responses)
        assert calls[-1] == (sum(SIZES) + sizes.sum(),) * 2
    store = ingest_npz(npz(**points, **extent), place, overwrite=True, response_box=[(0, 1)] * 2)
    assert store.response_box == Box.unit(2)


@pytest.mark.long
def test_npz_with_offsets_or_sizes(arrays, npz, place, batches):
    """Points, ids, numbers and labels; progress in points."""
    points = np.concatenate(arrays)
    sizes = np.array(SIZES)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    c = np.array(list("abbabcab"))
    calls = []
    store = ingest_npz(
        npz(points=points, sizes=sizes, targets=c),
        place,
        progress=lambda *call: calls.append(call),
    )
    assert_holds(store, arrays)
    assert store.target_names == ("target",)
    assert store.meta.class_names == {"target": ["a", "b", "c"]}
    assert store.targets()[:, 0].tolist() == [0, 1, 1, 0, 1, 2, 0, 1]
    assert store.box == Box.around(points.min(axis=0), points.max(axis=0))
    assert calls[-1] == (len(points), len(points))
    targets = np.random.default_rng(1).normal(size=(len(SIZES), 2))
    path = npz(points=points, offsets=offsets, targets=targets, ids=np.arange(8) + 50)
    store = ingest_npz(path, place, target_names=["m", "s"], overwrite=True, box=[(0, 1)] * 3)
    assert_holds(store, arrays, range(50, 58))
    assert store.target_names == ("m", "s")
    np.testing.assert_array_equal(store.targets(), targets)
    assert store.box.bounds == [[0.0, 1.0]] * 3


GOOD = {"points": np.ones((3, 2)), "sizes": np.array([1, 2])}


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"points": None}, {}, "no array 'points'; there are ['sizes']"),
        ({"sizes": None}, {}, "no array 'offsets'"),
        ({"offsets": np.array([0, 1, 3])}, {}, "leave one out"),
        ({"sizes": np.array([1, 1])}, {}, "offsets must run from 0 to n_points = 3"),
        ({"sizes": np.array([3, 0])}, {}, "bag 1 is empty"),
        ({"sizes": np.array([1.0, 2.0])}, {}, "'sizes' is float64"),
        ({"points": np.array([[1, 2], [3, np.nan], [5, 6]])}, {}, "bag 1, row 0"),
        ({"points": np.ones(3)}, {}, "points have shape (3,)"),
        ({"points": np.array([["a"]] * 3)}, {}, "expected real numbers"),
        ({"points": np.array([[None]] * 3)}, {}, "array 'points' holds pickled Python objects"),
        ({"ids": np.array([1, 2, 3])}, {}, "array 'ids' has shape (3,)"),
        ({"ids": np.array([1, 1])}, {}, "duplicate bag id 1"),
        ({"targets": np.ones(3)}, {}, "expected (2,)"),
        ({"targets": np.ones((2, 2))}, {"target_names": ["a"]}, "['a']"),
        ({"target": np.ones(2)}, {}, "unknown array 'target'"),
        ({"response_points": np.ones((2, 1))}, {}, "no array 'response_offsets'"),
        ({"response_sizes": np.array([1, 1])}, {}, "no array 'response_points'"),
        (
            {"response_points": np.ones((2, 1)), "response_sizes": np.array([2])},
            {},
            "array 'response_points': 1 responses for 2 bags",
        ),
        (
            {"response_points": np.ones((2, 1)), "response_sizes": np.array([2, 1])},
            {},
            "array 'response_points': offsets must run from 0 to n_points = 2",
        ),
        (
            {"response_points": np.ones((2, 1)), "response_offsets": np.array([0, 3, 2])},
            {},
            "the response of bag 1 ends before it begins",
        ),
        (
            {"response_points": np.array([[1], [np.inf]]), "response_offsets": np.array([0, 0, 2])},
            {},
            "the response of bag 1, row 1: coordinate 0 is inf",
        ),
        ({"response_points": np.ones(2), "response_sizes": np.array([1, 1])}, {}, "shape (2,)"),
    ],
)
def test_npz_that_can_not_be_used(changes, options, words, npz, place):
    """One clear error naming the file and the array, and nothing is left behind."""
    path = npz(**{k: v for k, v in (GOOD | changes).items() if v is not None})
    with pytest.raises(DataError) as caught:
        ingest_npz(path, place, **options)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert not place.exists()


def test_files_that_are_no_npz(tmp_path, npz, place):
    """Missing, cut off, damaged, a single array, text."""
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "text.npz").write_text("hello")
    whole = npz(**GOOD).read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:-30])
    (tmp_path / "bits.npz").write_bytes(whole.replace(np.ones(2).tobytes(), np.zeros(2).tobytes()))
    for name in ("none.npz", "one.npy", "text.npz", "cut.npz", "bits.npz"):
        with pytest.raises(DataError, match=name):
            ingest_npz(tmp_path / name, place)
        assert not place.exists()


def lying(path, shape):
    """An .npz whose points have a header that says a shape, over a hundred bytes."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"shape": shape, "fortran_order": False, "descr": "<f8"}
    )
    np.savez(path, sizes=GOOD["sizes"])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("points.npy", header.getvalue() + bytes(100))
    return path


def test_npz_that_says_more_than_memory_holds(tmp_path, place, monkeypatch):
    """Refused by the header alone, before any memory is asked for."""
    path = lying(tmp_path / "lies.npz", (10**10, 2))
    with pytest.raises(DataError, match=r"lies.npz: array 'points' is of shape .* 149\.01 GiB"):
        ingest_npz(path, place)
    # nor one that memory would have had room for, but for other processes
    path = lying(tmp_path / "large.npz", (10**6, 2))
    monkeypatch.setattr("bagbasis.ingest.npz.available_memory", lambda: 10**7)
    with pytest.raises(DataError, match=r"large.npz: array 'points' is of shape .*`bags merge`"):
        ingest_npz(path, place)
    assert not place.exists()


def test_npz_that_memory_has_no_room_for(npz, place, monkeypatch):
    """The header was no warning: the error still names file and array."""

    def full(self, name):
        raise MemoryError("Unable to allocate 8.00 GiB")

    path = npz(**GOOD)
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", full)
    with pytest.raises(DataError, match=r"bags.npz: array '\w+' does not fit in memory .*8.00 GiB"):
        ingest_npz(path, place)


def test_npz_is_appended(arrays, responses, npz, place):
    """To the store of another file, whose box and classes stay; ids go on, all bags or none."""
    by_name = {"points": np.concatenate(arrays), "sizes": np.array(SIZES)}
    labels = np.array([f"c{i % 2}" for i in range(len(SIZES))])
    ingest_npz(npz(**by_name, targets=labels), place)
    more = by_name | {"points": by_name["points"] * 9, "targets": labels[::-1].copy()}
    store = ingest_npz(npz(**more), place, mode="append")
    assert store.n_bags == 2 * len(SIZES) == store.ids()[-1] + 1
    assert store.box == Box.around(by_name["points"].min(axis=0), by_name["points"].max(axis=0))
    codes = [float(label[1]) for label in (*labels, *labels[::-1])]
    assert store.targets()[:, 0].tolist() == codes
    for wrong, options, words in (
        (
            more | {"targets": np.array(["c7"] * len(SIZES))},
            {},
            "unknown class 'c7' .*; the classes are",
        ),
        (more, {"box": [(0, 1)] * 2}, "the store keeps its own"),
        (more, {"overwrite": True}, "overwrite is given"),
    ):
        with pytest.raises(BagbasisError, match=words):
            ingest_npz(npz(**wrong), place, mode="append", **options)
    assert BagStore.open(place).n_bags == store.n_bags
