"""Lazy arrays of rows: values, chunks, and what travels in their graph."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags
from bagbasis.execution.costs import Cost
from bagbasis.execution.passes import lazy_pass, rows_of
from bagbasis.labelled.labelled import LabelledBags

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
    """Of no ranges the array is empty, with the right dimensions."""
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
