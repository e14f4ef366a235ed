"""A missing cell of a frame is named by its column and bag, with what can be done about it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bagbasis import Bags, BagStore, DataError, DoubleBasisRegressor

FRAME = pd.DataFrame(
    {
        "id": np.repeat(["p1", "p2", "p3"], 4),
        "pulse": np.arange(12.0),
        "chol": [*np.arange(6.0), np.nan, *np.arange(5.0)],
    }
)
CHOL = "'chol' is nan; remove the point or the bag, or fill the column"


def test_a_groupby_names_column_and_id():
    message = f"bag with id 'p2', row 2: coordinate {CHOL}"
    for call in (
        lambda: DoubleBasisRegressor().fit(FRAME.groupby("id"), [1.0, 2.0, 3.0]),
        lambda: Bags.from_frame(FRAME, "id"),
        lambda: Bags.from_frame(FRAME.convert_dtypes(), "id"),
    ):
        with pytest.raises(DataError, match=message):
            call()


def test_several_ids_are_named_together():
    frame = FRAME.assign(day=[0, 0, 1, 1] * 3)
    with pytest.raises(DataError, match=r"bag with id \('p2', 1\), row 0: coordinate 'chol'"):
        Bags.from_frame(frame, ["id", "day"])


def test_lists_of_frames_and_arrow_name_the_column():
    frames = [frame.drop(columns="id") for _, frame in FRAME.groupby("id")]
    with pytest.raises(DataError, match=f"bag 1, row 2: coordinate {CHOL}"):
        Bags.from_list(frames)
    points = [[{"pulse": 1.0, "chol": 2.0}], [{"pulse": 1.0, "chol": float("nan")}]]
    with pytest.raises(DataError, match="bag 1, row 0: coordinate 'chol' is nan"):
        Bags.from_arrow(pa.table({"points": points}))


def test_a_store_names_the_column(tmp_path):
    store = BagStore.create(tmp_path / "s.zarr", 2)
    bad = Bags.trusted(np.array([[0.0, np.nan]]), np.array([0, 1]), names=["pulse", "chol"])
    with pytest.raises(DataError, match="coordinate 'chol' is nan"):
        store.append(bad)


def test_infinite_cells_are_not_missing():
    frame = FRAME.fillna(np.inf)
    with pytest.raises(DataError, match=r"'chol' is inf; remove the point or the bag$"):
        Bags.from_frame(frame, "id")
