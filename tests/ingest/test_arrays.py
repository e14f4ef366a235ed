"""A store from an iterable of arrays, or from an .npz file."""

from __future__ import annotations

import dask
import dask.array
import numpy as np
import pandas as pd
import pytest

from bagbasis import BagStore, Box, DataError, ParameterError, StoreError
from bagbasis.data.storage.urls import normalize_url
from bagbasis.data.storage.zarr_stores import exists
from bagbasis.execution.dask_data import delayed
from bagbasis.ingest import batches as ingest_batches, ingest_arrays, ingest_npz
from tests.ingest.stored_arrays import assert_holds, assert_holds_responses
from tests.oracles.ragged import random_bags


@pytest.mark.long
def test_a_generator_is_streamed_and_its_box_measured(arrays, url, batches):
    """Any iterable that is consumed once; the box has the documented margin, and is stored."""
    store = ingest_arrays((array for array in arrays), url)
    assert_holds(store, arrays)
    points = np.concatenate(arrays)
    assert store.box == Box.around(points.min(axis=0), points.max(axis=0))
    assert BagStore.open(url).box == store.box
    assert BagStore.open(url).dtype == np.float32


@pytest.mark.long
@pytest.mark.parametrize("lazy", [dask.delayed, dask.array.from_array])
@pytest.mark.parametrize("with_targets", [False, True])
def test_arrays_that_dask_is_to_make(arrays, tmp_path, lazy, with_targets, monkeypatch):
    """They are computed in order, a few at a time."""
    monkeypatch.setattr(delayed, "VALUES_AT_ONCE", 3)
    items = [(lazy(a), i) if with_targets else lazy(a) for i, a in enumerate(arrays)]
    store = ingest_arrays(iter(items), tmp_path / "lazy.zarr")
    items = [(a, i) if with_targets else a for i, a in enumerate(arrays)]
    plain = ingest_arrays(items, tmp_path / "plain.zarr")
    np.testing.assert_array_equal(store.read().points, plain.read().points)
    np.testing.assert_array_equal(store.read().offsets, plain.read().offsets)
    np.testing.assert_array_equal(store.targets(), plain.targets())


def test_a_given_box_and_dtype_are_kept(arrays, place):
    """Nothing is measured then."""
    box = [[-1, 1], [0, 2], [5, 6]]
    store = ingest_arrays(arrays, place, box=box, dtype="float64")
    assert_holds(store, arrays)
    assert store.box.bounds == box
    assert store.dtype == np.float64


def test_targets_come_with_the_arrays(arrays, place, batches):
    """One target, several, and labels whose classes are given."""
    k = np.arange(len(arrays)) * 1.5
    store = ingest_arrays(zip(arrays, k, strict=True), place)
    assert store.target_names == ("target",)
    np.testing.assert_array_equal(store.targets()[:, 0], k)
    labels = [["ant", "bee"][i % 2] for i in range(len(arrays))]
    items = ((array, (label, value)) for array, label, value in zip(arrays, labels, k, strict=True))
    store = ingest_arrays(
        items,
        place,
        target_names=["c", "k"],
        class_names={"c": ["bee", "ant"]},
        overwrite=True,
    )
    assert_holds(store, arrays)
    np.testing.assert_array_equal(store.targets(names=["k"])[:, 0], k)
    assert store.targets(names=["c"])[:, 0].tolist() == [1.0, 0.0] * 4
    assert store.meta.class_names == {"c": ["bee", "ant"]}


@pytest.mark.long
def test_targets_and_ids_come_beside_the_arrays(arrays, place, batches):
    """By name, in an array, in a data frame, or one bag after the other; labels are sorted."""
    k = np.arange(len(arrays)) * 0.5
    k[2] = np.nan
    c = ["b", "a", None, "b", "a", "a", "b", "b"]
    codes = [1.0, 0.0, np.nan, 1.0, 0.0, 0.0, 1.0, 1.0]
    ids = [f"bag {i}" for i in range(len(arrays))][::-1]
    for targets in ({"k": k, "c": c}, pd.DataFrame({"k": k, "c": c})):
        store = ingest_arrays(iter(arrays), place, targets=targets, ids=iter(ids), overwrite=True)
        assert store.target_names == ("k", "c")
        assert store.meta.class_names == {"c": ["a", "b"]}
        np.testing.assert_array_equal(store.targets(), np.column_stack([k, codes]))
        assert_holds(store, arrays, ids)
    matrix = np.column_stack([k, k + 1])
    for targets in (matrix, iter(matrix)):
        store = ingest_arrays(arrays, place, targets=targets, overwrite=True)
        assert store.target_names == ("target_0", "target_1")
        np.testing.assert_array_equal(store.targets(), matrix)


@pytest.mark.long
def test_responses_come_with_or_beside_the_arrays(arrays, responses, place, batches):
    """As third of a tuple, or one after the other; a missing one is None or has no rows."""
    k = np.arange(len(arrays)) * 1.5
    responses[0] = random_bags(np.random.default_rng(2), [1], 2)[0]
    store = ingest_arrays(zip(arrays, k, responses, strict=True), place)
    assert_holds(store, arrays)
    assert_holds_responses(store, responses)
    np.testing.assert_array_equal(store.targets()[:, 0], k)
    rows = (np.empty((0, 2)) if r is None else r for r in responses)
    store = ingest_arrays(iter(arrays), place, responses=rows, ids=list("hgfedcba"), overwrite=True)
    assert_holds(store, arrays, "hgfedcba")
    assert_holds_responses(store, responses)
    items = ((array, (), None) for array in arrays)
    store = ingest_arrays(items, place, response_dims=4, response_box=[(0, 9)] * 4, overwrite=True)
    assert (store.response_dims, store.n_response_points, store.target_names) == (4, 0, ())
    assert store.response_box.bounds == [[0, 9]] * 4


def test_a_first_response_after_many_bags_without(place, batches):
    """With the dimension given, the first batches need not have a response."""
    store = ingest_arrays(
        [[1.0]] * 9, place, responses=[None] * 8 + [[[3.0, 4.0]]], response_dims=2
    )
    assert store.responses().positions.tolist() == [8]
    assert store.response_box == Box.around([3, 4], [3, 4])


@pytest.mark.long
@pytest.mark.parametrize(
    ("items", "options", "words"),
    [
        ([], {}, "no bags"),
        ([[[1.0, 2.0]], [[np.nan, 1.0]]], {}, "id 1, row 0: coordinate 0 is nan"),
        ([[[1.0, 2.0]], [[0.0, 1.0], [np.inf, 1.0]]], {}, "id 1, row 1: coordinate 0 is inf"),
        ([[[1.0, 2.0]], [[1e39, 1.0]]], {"ids": ["a", "b"]}, "'b', row 0: coordinate 0 is inf"),
        ([[[1.0, 2.0]], [[1.0]]], {}, "bag 1 has dimension 1 and 0 targets; expected dimension 2"),
        ([[[1.0, 2.0]], np.empty((0, 2))], {}, "bag 1 is empty"),
        ([[[1.0]], ([[1.0]], 2.0)], {}, "bag 1 has dimension 1 and 1 targets"),
        ([[[1.0]], [[1.0]]], {"ids": [4, 4]}, "duplicate bag id 4"),
        ([[[1.0]], [[1.0]]], {"ids": [4]}, "fewer ids than bags: bag 1"),
        ([[[1.0]]], {"ids": [4, 5]}, "more ids than bags: the bags end after 1"),
        ([[[1.0]], [[1.0]]], {"targets": [1.0]}, "fewer targets than bags: bag 1"),
        ([[[1.0]]], {"targets": [1.0, 2.0]}, "more targets than bags: the bags end after 1"),
        ([[[1.0]]], {"targets": [np.inf]}, "'target' is infinite"),
        ([[[1.0]]], {"targets": np.eye(1), "target_names": ["a", "b"]}, "shape (1, 1)"),
        ([[[1.0]]], {"targets": np.zeros((1, 1, 1))}, "shape (1, 1, 1)"),
        ([[[1.0]]], {"targets": {"a": 3.0}}, "target 'a' is 3.0; expected one per bag"),
        ([[[1.0]]], {"targets": {"a": None}}, "target 'a' is None; expected one per bag"),
        ([[[1.0]]] * 2, {"targets": {"a": [1.0]}}, "fewer targets than bags: bag 1 has none"),
        ([[[1.0]]], {"targets": {"a": [1.0, 2.0]}}, "more targets than bags: the bags end after 1"),
        ([[[1.0]]], {"targets": {"a": [np.inf]}}, "target 'a' is infinite for bag 0"),
        ([[[1.0]]], {"targets": {"a": [{}]}}, "target 'a' has dtype object; expected numbers"),
        ([[[1.0]]], {"targets": {"a": [1j]}}, "target 'a' has dtype complex128; expected numbers"),
        ([[[1.0]]], {"targets": {"a": [[1.0]]}}, "target 'a' has shape (1, 1); expected (1,)"),
        ([[[1.0]]], {"targets": {"a": [1.0], "b": [1.0, 2.0]}}, "target 'a' has shape (1,); expec"),
        ([([[1.0]], "label")], {}, "class_names"),
        ([[[1.0]]], {"box": [(0, 1), (0, 1)]}, "2 dimensions"),
        ([[[1.0]], [[1.0]]], {"responses": [[1.0]]}, "fewer responses than bags: bag 1"),
        ([[[1.0]]], {"responses": [[1.0], None]}, "more responses than bags: the bags end after 1"),
        ([[[1.0]]], {"responses": [None]}, "none of the first 1 bags has a response; pass respon"),
        ([[[1.0]]], {"responses": [[np.nan]]}, "the response of bag with id 0, row 0"),
        ([[[1.0]]] * 2, {"responses": [[1.0], [[1.0, 2.0]]]}, "id 1 has dimension 2, expected 1"),
        ([[[1.0]]], {"responses": [[1.0]], "response_dims": 2}, "id 0 has dimension 1, expected 2"),
        ([([[1.0]], 2.0, [1.0])], {"responses": [[1.0]]}, "a tuple with a response, but"),
        ([([[1.0]], 2.0, [1.0]), ([[1.0]], 2.0)], {}, "bag 1 comes without a response"),
        ([([[1.0]], 2.0), ([[1.0]], 2.0, None)], {}, "bag 1 comes with a response"),
        ([([[1.0]], 2.0, None, None)], {}, "bag 0 is a tuple of 4"),
    ],
)
def test_arrays_that_can_not_be_used(items, options, words, place, batches):
    """One clear error naming the bag, and nothing is left behind."""
    with pytest.raises(DataError) as caught:
        ingest_arrays(iter(items), place, **options)
    assert words in str(caught.value)
    assert not place.exists()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["1", "7", "007", ""], "such as '1'"),
        (["1e3", "-.5", "2", None], "such as '1e3'"),
        (["4,5", "12 %", "1'000", "3"], "such as '4,5'"),
        (["1", "2", "n/a", "4"], "'n/a' for bag 2, but 3 of 4"),
    ],
)
def test_texts_of_numbers_are_not_classes_in_silence(labels, words, tmp_path, place):
    """As in tables: they may be numbers of another program, or names of classes."""
    bags = [np.zeros((2, 1))] * 4
    kinds = {"y": labels}, labels, np.array(labels, dtype=object)
    for targets in kinds:
        with pytest.raises(DataError, match=rf"target '\w+' is .*{words}.*class_names="):
            ingest_arrays(bags, place, targets=targets)
    if None not in labels:  # as an object it would be pickled
        sizes = {"points": np.zeros((8, 1)), "sizes": [2] * 4}
        np.savez(tmp_path / "a.npz", **sizes, targets=np.array(labels))
        with pytest.raises(DataError, match=rf"a\.npz: target 'target' is .*{words}"):
            ingest_npz(tmp_path / "a.npz", place)
    classes = [label for label in labels if label]
    store = ingest_arrays(bags, place, targets={"y": labels}, class_names={"y": classes})
    assert store.targets()[: len(classes), 0].tolist() == [*range(len(classes))]


@pytest.mark.parametrize("options", [{"targets": {"": [1.0]}}, {"target_names": [""]}])
def test_a_target_without_a_name_is_refused(options, place):
    """Nobody could ask for it by name; nothing is left behind."""
    with pytest.raises(ParameterError, match=r"a target name is empty: \[''\]; name each"):
        ingest_arrays([([[1.0]], 1.0) if "target_names" in options else [[1.0]]], place, **options)
    assert not place.exists()


def test_an_iterable_that_fails_leaves_nothing(url, batches):
    """The error is the iterable's own."""

    def broken():
        yield np.ones((3, 2))
        raise RuntimeError("the detector is off")

    with pytest.raises(RuntimeError, match="detector"):
        ingest_arrays(broken(), url)
    assert not exists(normalize_url(url))


def test_a_store_that_is_there_is_kept(arrays, url):
    """Refused before anything is taken from the iterable."""
    ingest_arrays(arrays, url)
    untouched = iter([np.ones((1, 1))])
    with pytest.raises(StoreError, match="exists already"):
        ingest_arrays(untouched, url)
    assert len(list(untouched)) == 1
    assert_holds(BagStore.open(url), arrays)
    with pytest.raises(ParameterError):
        ingest_arrays(arrays, url, dtype="int8", overwrite=True)
    assert_holds(BagStore.open(url), arrays)


def test_a_store_somebody_is_writing_to_is_left_alone(tmp_path):
    """Neither replaced nor removed, although nothing is committed in it yet."""
    url = tmp_path / "s.zarr"
    store = BagStore.create(url, 1)
    with store.appending() as session:
        session.write(next(ingest_batches.batches_of([[1.0, 2.0]], None, (), None)).bags)
        with pytest.raises(StoreError, match="writer"):
            ingest_arrays([[3.0]], url)
    assert_holds(BagStore.open(url), [np.array([[1.0], [2.0]])])


@pytest.mark.long
def test_an_outlier_among_arrays_does_not_stretch_the_box(place):
    """As for tables, though the points come in batches."""
    rng = np.random.default_rng(0)
    bags = [rng.random((50, 2)) for _ in range(3000)]
    bags[7][0] = 1e6, -1e6
    store = ingest_arrays(iter(bags), place)
    assert np.abs(store.box.bounds).max() < 1.3
    whole = ingest_arrays(iter(bags), place, box={"quantile": 0}, overwrite=True)
    assert np.abs(whole.box.bounds).max() > 1e6
