"""Targets in every form that callers have them, as a store keeps them."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bagbasis import BagStore, DataError
from bagbasis.data.labelled.inputs import with_targets
from bagbasis.ingest import ingest_arrays, ingest_frame

ONE = [np.zeros((1, 2))]


@pytest.mark.parametrize(
    "targets",
    [
        {"y": [1, 2], "c": ["red", "blue"]},
        {"c": np.array(["red", "blue"]), "y": np.array([1.0, 2.0])},
        {"c": pd.Categorical(["red", "blue"]), "y": pd.Series([1, 2], index=[5, 6])},
        pd.DataFrame({"c": pd.array(["red", "blue"], "string"), "y": [1.0, 2.0], "i": 0})[
            ["c", "y"]
        ],
        np.array([[1.0, 0.0], [2.0, 1.0]]),
        np.array([[1.0, "red"], [2.0, "blue"]], dtype=object),
        [[1, 0], [2, 1]],
    ],
    ids=["lists", "arrays", "series", "frame", "matrix", "objects", "nested"],
)
def test_targets_in_every_form(tmp_path, targets):
    """Mappings, data frames and matrices give one float64 matrix; text is a class number."""
    store = BagStore.create(
        tmp_path / "s.zarr", 2, target_names=["y", "c"], class_names={"c": ["red", "blue", "green"]}
    )
    store.append(ONE * 2, targets)
    np.testing.assert_array_equal(store.targets(), [[1, 0], [2, 1]])
    np.testing.assert_array_equal(store.targets(1, 2, names=["c"]), [[1]])
    np.testing.assert_array_equal(store.targets(names=["c", "y"]), [[0, 1], [1, 2]])
    assert store.meta.class_names == {"c": ["red", "blue", "green"]}


@pytest.mark.parametrize(
    "targets", [[1.0, 2.0], np.array([1, 2]), pd.Series([1.0, 2.0], index=["a", "b"])]
)
def test_one_target_may_be_a_vector(tmp_path, targets):
    """With one target, values without a name are enough."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append(ONE * 2, targets)
    np.testing.assert_array_equal(store.targets(), [[1], [2]])


def test_missing_labels_are_nan(tmp_path):
    """None, NaN, pandas' NA and empty text are bags without a label; so is no target at all."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["c"], class_names={"c": ["red"]})
    labels = np.array([None, np.nan, pd.NA, "", "red", pd.NaT], dtype=object)
    store.append(ONE * 6, {"c": labels}).append(ONE)
    np.testing.assert_array_equal(np.isnan(store.targets()[:, 0]), [1, 1, 1, 1, 0, 1, 1])
    store.verify()


@pytest.mark.parametrize(
    "labels",
    [
        [None, 1.0],
        np.array([pd.NA, 1], object),
        pd.array([None, 1], "Int64"),
        pd.array([None, 1.0], "Float64"),
        pd.array([None, True], "boolean"),
        pd.Series([None, True], dtype="boolean"),
        pd.Series([None, 1.0], dtype="double[pyarrow]"),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_missing_numbers_are_nan(tmp_path, labels):
    """So are those of numbers, in stores and in memory: a nullable column needs no care."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append(ONE * 2, labels)
    source, _ = with_targets(ONE * 2, labels)
    np.testing.assert_array_equal(store.targets(), [[np.nan], [1]])
    np.testing.assert_array_equal(source.labels.values, [[np.nan], [1]])


MERGING = [1, 2**60, 2**60 + 1]
WRITES = {
    "append": lambda store, url: store.append(ONE * 3, {"y": MERGING}),
    "objects": lambda store, url: store.append(ONE * 3, {"y": np.array(MERGING, object)}),
    "unsigned": lambda store, url: store.append(ONE * 3, {"y": np.array(MERGING, np.uint64)}),
    "relabel": lambda store, url: store.append(ONE, [1]).relabel("y", {0: MERGING[2]}),
    "ingest_arrays": lambda store, url: ingest_arrays(ONE * 3, url, targets=MERGING),
    "ingest_frame": lambda store, url: ingest_frame(
        pd.DataFrame({"bag": MERGING, "u": 0.5, "y": MERGING}),
        url,
        coordinates=["u"],
        id_column="bag",
        targets=["y"],
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_integers_that_would_merge_are_refused(tmp_path, write):
    """float64, which targets are, does not tell them from their neighbours."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"])
    with pytest.raises(DataError, match=r"'\w+': \d{19} is an integer beyond ±2\^53"):
        write(store, tmp_path / "t.zarr")
    assert not (tmp_path / "t.zarr").exists()


def test_a_table_of_arrow_is_a_frame_of_targets(tmp_path):
    """By the names of its columns; nulls are bags without a label."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"])
    store.append(ONE * 2, pa.table({"y": [1, None]}))
    np.testing.assert_array_equal(store.targets().ravel(), [1.0, np.nan])
    for table, message in (
        (pa.table({"z": [1.0, 2.0]}), "unknown target 'z'"),
        (pa.table([[1.0, 2.0]] * 2, names=["y", "y"]), "two targets are called 'y'"),
        (pa.table({"y": [{"a": 1}, None]}), "target 'y'"),
    ):
        with pytest.raises(DataError, match=message):
            store.append(ONE * 2, table, ids=[7, 8])


@pytest.mark.parametrize(
    "responses",
    [date(1600, 2, 29), pd.NA, {1, 2}, [[[1.0], [1.0, 2.0]]] * 2, [date(2000, 1, 1)] * 2],
)
def test_responses_that_are_no_points_are_refused(responses, tmp_path):
    """By a message of ours, in a store that measures its points."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"], response_dims=1)
    with pytest.raises(DataError, match="response"):
        store.append(ONE * 2, [1.0, 2.0], responses=responses)
