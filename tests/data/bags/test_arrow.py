"""Bags and predictions as Arrow's tables, which share their points, and bags of tables."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from bagbasis import Bags, BagStore, DataError, DoubleBasisClassifier, MomentsEmbedding, Responses
from bagbasis.models import iter_predictions

RNG = np.random.default_rng(0)


def make(dtype, n_dims=3):
    """Bags of uneven sizes, with numbers that only bits tell from others."""
    bags = [RNG.normal(size=(n, n_dims)).astype(dtype) for n in (4, 1, 7, 2)]
    bags[0][0, 0] = np.nextafter(dtype(1), dtype(2))
    bags[1][0, 0] = dtype(-0.0)
    return Bags.from_list(bags)


def assert_same(a, b):
    assert a.points.dtype == b.points.dtype
    assert a.points.tobytes() == b.points.tobytes()
    np.testing.assert_array_equal(a.offsets, b.offsets)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("part", [slice(None), slice(1, 3), [2, 0]])
def test_there_and_back(dtype, part):
    """Whole bags and parts of them; by pyarrow, polars and Bags themselves."""
    bags = make(dtype)[part]
    table = pa.table(bags)
    assert table.column_names == ["points"]
    assert table.num_rows == len(bags)
    for data in (bags, table, pl.DataFrame(table)):
        assert_same(Bags.from_arrow(data), bags)
    assert_same(Bags.from_arrow(table.slice(1)), bags[1:])


def test_points_are_shared():
    """Arrow's values begin where ours do."""
    bags = make(np.float32)
    chunk = pa.table(bags)["points"].chunk(0)
    assert chunk.values.values.buffers()[1].address == bags.points.ctypes.data


def test_responses_of_which_some_are_empty():
    """A list without points."""
    answers = Responses(np.arange(6.0).reshape(3, 2), [0, 2, 2, 3])
    assert pa.table(answers)["points"].to_pylist() == [[[0, 1], [2, 3]], [], [[4, 5]]]


def test_tables_of_others():
    """Lists of numbers, of lists and of records; the column is named where there are several."""
    numbers = pa.table({"id": [1, 2], "x": [[1.0, 2.0], [3.0]]})
    np.testing.assert_array_equal(Bags.from_arrow(numbers)[0], [[1], [2]])
    records = pa.table({"x": [[{"a": 1, "b": 2.5}], [{"a": 3, "b": 4.0}] * 2]})
    np.testing.assert_array_equal(Bags.from_arrow(records)[1], [[3, 4], [3, 4]])
    two = pa.table({"x": [[[1.0, 2.0]]], "y": [[[3.0]]]})
    np.testing.assert_array_equal(Bags.from_arrow(two, column="y")[0], [[3]])
    parts = pa.concat_tables([two, two])
    assert len(Bags.from_arrow(parts, "x")) == 2


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"x": [[1.0]], "y": [[1.0]]}), r"columns of lists are \['x', 'y'\]"),
        (pa.table({"x": [1.0]}), "columns of lists are"),
        (pa.table({"x": [[1.0], None]}), "x: a bag or a point is missing"),
        (pa.table({"x": [[[1.0], None]]}), "x: a bag or a point is missing"),
        (pa.table({"x": [[[1.0, None]]]}), "a coordinate is missing"),
        (pa.table({"x": [[[1.0], [1.0, 2.0]]]}), r"points have \[1, 2\] coordinates"),
        (pa.table({"x": [["a"]]}), "coordinates are string"),
        (pa.table({"x": [[1.0], []]}), "bag 1 is empty"),
        (pa.table({"x": [[np.inf]]}), "bag 0"),
        (pa.table({"x": pa.array([], pa.list_(pa.float32()))}), "there are no bags"),
        ([[1.0]], "expected a table with Arrow"),
    ],
)
def test_refused(table, message):
    """One line that names the column and what is wrong."""
    with pytest.raises(DataError, match=message):
        Bags.from_arrow(table)


def test_predictions(tmp_path):
    """A block of them is a table, with its classes' probabilities as lists."""
    bags = [RNG.normal(i % 2, 1, (20, 2)) for i in range(40)]
    store = BagStore.create(
        tmp_path / "s.zarr", 2, target_names=["c"], class_names={"c": ["a", "b"]}
    )
    store.append(bags, {"c": ["a", "b"] * 20})
    model = DoubleBasisClassifier(MomentsEmbedding()).fit(store, target="c")
    for block in iter_predictions(model, store):
        table = pa.table(block)
        assert table["row"].to_pylist() == block.rows.tolist()
        assert table["prediction"].to_pylist() == list(block.prediction)
        values = np.array(table["probabilities"].to_pylist())
        assert values.tobytes() == block.probabilities.tobytes()
