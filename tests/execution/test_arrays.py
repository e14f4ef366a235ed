"""Lazy arrays of rows: values, chunks, and what travels in their graph."""

from __future__ import annotations

import shutil

import dask
import numpy as np
import pytest

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    MomentsEmbedding,
    NystroemFeatures,
    ProjectionEmbedding,
    RandomFourierFeatures,
    features,
)
from bagbasis.execution.costs import Cost
from bagbasis.execution.passes import lazy_pass, rows_of
from tests.oracles.labelled import LabelledBags

RANGES = [(0, 3), (3, 4), (4, 9)]
BAGS = LabelledBags(Bags(np.arange(9.0)[:, None], np.arange(10)))


def lazy(per_batch, tail, dtype, ranges=RANGES):
    return lazy_pass(BAGS, rows_of("rows", per_batch, Cost()), ranges, tail, dtype)


@pytest.mark.parametrize("tail", [(), (1,), (5,), (2, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, "<U3"])
def test_values_and_chunks(tail, dtype):
    """One block per range, in order; shape and dtype are known before anything is computed."""
    rng = np.random.default_rng(0)
    shape = (9, *tail)
    whole = rng.integers(0, 99, shape).astype(dtype)
    calls = []

    def rows(batch):
        calls.append((int(batch.index[0]), batch.stop))
        return whole[batch.index]

    array = lazy(rows, tail, whole.dtype)
    assert calls == []
    assert array.shape == shape
    assert array.dtype == whole.dtype
    assert array.chunks[0] == (3, 1, 5)
    np.testing.assert_array_equal(array.compute(scheduler="sync"), whole)
    assert sorted(calls) == RANGES
    np.testing.assert_array_equal(array[2:4].compute(scheduler="sync"), whole[2:4])


@pytest.mark.parametrize("tail", [(), (4,), (4, 2)])
def test_no_rows(tail):
    """Without ranges the array is empty, with the right dimensions."""
    array = lazy(None, tail, np.float64, [])
    assert array.shape == (0, *tail)
    assert array.compute().shape == array.shape


def test_rows_travel_once():
    """All blocks share one node for the function; a block itself is two numbers."""
    array = lazy(None, (), float, [(i, i + 1) for i in range(9)])
    keys = [str(key) for key in dict(array.__dask_graph__())]
    assert len(keys) <= 3 * 9 + 1
    assert len({key for key in keys if key.count("-") == 1 and key.startswith("rows-")}) == 1


def test_refusals_come_out_as_they_are():
    """An exception of a block is raised by compute."""

    def rows(batch):
        raise KeyError(int(batch.index[0]))

    with pytest.raises(KeyError, match="4"):
        lazy(rows, (), np.float64)[4:].compute()


SMALL = (ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=16))
LAZY = {
    "features": lambda store, model: features(store, *SMALL),
    "learnt features": lambda store, model: features(
        store, MomentsEmbedding(), NystroemFeatures(n_features=4)
    ),
    "predictions": lambda store, model: model.predict(store),
    "shares": lambda store, model: model.predict_proba(store),
}


@pytest.fixture(scope="module")
def fitted():
    """Some bags, and a classifier of them."""
    rng = np.random.default_rng(0)
    bags = [rng.random((9, 2)) for _ in range(30)]
    return bags, DoubleBasisClassifier(*SMALL).fit(bags, np.arange(30) % 2)


@pytest.mark.long
@pytest.mark.parametrize("name", LAZY)
def test_equal_arrays_have_equal_names(name, fitted, tmp_path):
    """Names are equal if a store is opened twice, also after a computation; Dask computes once."""
    bags, model = fitted
    make, url = LAZY[name], str(tmp_path / "store")
    store = BagStore.create(url, 2).append(bags)
    first, again = make(store, model), make(store, model)
    assert first.name == again.name
    assert set(first.__dask_graph__()) == set(again.__dask_graph__())
    np.testing.assert_array_equal(*dask.compute(first, again, scheduler="sync"))
    assert make(store, model).name == first.name
    assert make(BagStore.open(url), model).name == first.name
    assert len({other(store, model).name for other in LAZY.values()}) == len(LAZY)


@pytest.mark.long
@pytest.mark.parametrize("name", LAZY)
def test_other_states_of_a_store_have_other_names(name, fitted, tmp_path):
    """More bags, or another store of the same sizes at the same place."""
    bags, model = fitted
    make, url = LAZY[name], str(tmp_path / "store")
    first = make(BagStore.create(url, 2).append(bags), model)
    more = make(BagStore.open(url).append(bags[:3], ids=[100, 101, 102]), model)
    shutil.rmtree(url)
    anew = make(BagStore.create(url, 2).append([1 - bag for bag in bags]), model)
    assert len({first.name, more.name, anew.name}) == 3
