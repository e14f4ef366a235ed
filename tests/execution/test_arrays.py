"""Lazy arrays of rows: values, chunks, and what travels in their graph."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.execution import lazy_rows

RANGES = [(0, 3), (3, 4), (4, 9)]


@pytest.mark.parametrize("n_columns", [None, 1, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, "<U3"])
def test_values_and_chunks(n_columns, dtype):
    """One block a range, in order; shape and dtype are known before anything is computed."""
    rng = np.random.default_rng(0)
    shape = (9,) if n_columns is None else (9, n_columns)
    whole = rng.integers(0, 99, shape).astype(dtype)
    calls = []

    def rows(start, stop):
        calls.append((start, stop))
        return whole[start:stop]

    array = lazy_rows(rows, RANGES, n_columns, whole.dtype)
    assert calls == []
    assert array.shape == shape
    assert array.dtype == whole.dtype
    assert array.chunks[0] == (3, 1, 5)
    np.testing.assert_array_equal(array.compute(scheduler="sync"), whole)
    assert sorted(calls) == RANGES
    np.testing.assert_array_equal(array[2:4].compute(scheduler="sync"), whole[2:4])


@pytest.mark.parametrize("n_columns", [None, 4])
def test_no_rows(n_columns):
    """Of no ranges the array is empty, with the right dimensions."""
    array = lazy_rows(lambda a, b: None, [], n_columns, np.float64)
    assert array.shape == ((0,) if n_columns is None else (0, 4))
    assert array.compute().shape == array.shape


def test_rows_travel_once():
    """All blocks share one node for the function; a block itself is two numbers."""
    array = lazy_rows(lambda a, b: np.zeros(b - a), [(i, i + 1) for i in range(50)], None, float)
    assert len([key for key in dict(array.__dask_graph__()) if "rows-" in str(key)]) == 1
    assert len(dict(array.__dask_graph__())) <= 3 * 50 + 1


def test_refusals_come_out_as_they_are():
    """An exception of a block is raised by compute."""

    def rows(start, stop):
        raise KeyError(start)

    with pytest.raises(KeyError, match="4"):
        lazy_rows(rows, RANGES, None, np.float64)[4:].compute()
