"""Stores with very many targets, and with long texts."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore, DataError, ParameterError
from bagbasis.data.store.schema import CHUNK_BYTES, IDS, OFFSETS, TARGETS


@pytest.mark.long
@pytest.mark.parametrize("n_targets", [0, 1, 4, 5, 1_000, 5_000, 20_000])
def test_chunks_have_as_many_rows_as_fit(tmp_path, n_targets):
    """Chunks of every array take 2 MiB at most, unless one row is larger."""
    names = [f"gene{i}" for i in range(n_targets)]
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=names)
    row = 8 * max(1, n_targets)
    assert store.array(TARGETS).chunks[0] == min(2**16, CHUNK_BYTES // row)
    assert store.array(OFFSETS).chunks == store.array(IDS).chunks == (2**16,)
    rng = np.random.default_rng(0)
    labels = rng.normal(size=(40, n_targets))
    store.append(list(rng.random((40, 3, 2))), labels if n_targets else None)
    np.testing.assert_array_equal(BagStore.open(store.url).targets(), labels)
    if n_targets:
        chosen = BagStore.open(store.url).targets(3, 9, names=[names[-1], names[0]])
        np.testing.assert_array_equal(chosen, labels[3:9][:, [-1, 0]])
    store.verify()


@pytest.mark.long
def test_a_hundred_thousand_targets_take_four_times_their_bytes(tmp_path, resident_peak):
    """Append and read of 60 bags with 100,000 targets."""
    labels = np.random.default_rng(0).normal(size=(60, 100_000))
    bags = [np.zeros((1, 2))] * 60
    small = BagStore.create(tmp_path / "small.zarr", 2, target_names=["y"])
    small.append(bags, labels[:, :1]).targets()  # what is imported and made once
    store = BagStore.create(
        tmp_path / "s.zarr", 2, target_names=[f"gene{i}" for i in range(100_000)]
    )
    with resident_peak(4 * labels.nbytes):
        store.append(bags, labels)
    with resident_peak(4 * labels.nbytes):
        read = store.targets()
    np.testing.assert_array_equal(read, labels)


def test_more_targets_than_a_chunk_holds_are_refused(tmp_path):
    """A row that no codec takes is refused before anything is written."""

    class Names(list):
        def __len__(self):
            return 2**28

    from bagbasis.data.store.creation import check_creation

    with pytest.raises(ParameterError, match="268435456 target names: a bag has at most"):
        check_creation.__wrapped__(2, Names(), {}, "float32", None)


def test_infinite_labels_of_wide_tables_are_named(tmp_path):
    """A table of labels is refused as a whole, with the name and the bag."""
    store = BagStore.create(tmp_path / "s.zarr", 1, target_names=["a", "b", "c"])
    labels = np.zeros((4, 3))
    labels[2, 1] = -np.inf
    with pytest.raises(DataError, match="target 'b' is infinite for bag 2"):
        store.append([[[0.0]]] * 4, labels)
    with pytest.raises(DataError, match="has shape"):
        store.append([[[0.0]]] * 3, labels)
    labels[2, 1] = np.nan
    np.testing.assert_array_equal(store.append([[[0.0]]] * 4, labels).targets(), labels)
    labels[:] = 7  # the caller's array is not the store's
    assert np.isnan(store.targets()[2, 1])


@pytest.mark.parametrize("letter", ["x", "ä", "\U0001f600"])
def test_long_ids(tmp_path, letter):
    """A text id has at most 32,760 bytes, whatever its characters."""
    store = BagStore.create(tmp_path / "s.zarr", 1)
    width = len(letter.encode())
    longest = letter * (32_760 // width)
    store.append([[[0.0]]] * 2, ids=["a", longest])
    with pytest.raises(DataError, match=r"of bag 1 has 327\d\d bytes; an id has at most 32760"):
        store.append([[[0.0]]] * 2, ids=["b", longest + letter])
    assert BagStore.open(store.url).ids().tolist() == ["a", longest]
    store.verify()
