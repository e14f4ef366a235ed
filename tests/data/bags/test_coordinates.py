"""Names of coordinates: what has them, what keeps them, and how two sets are compared."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

from bagbasis import (
    Bags,
    BagStore,
    DataError,
    DoubleBasisRegressor,
    ModelError,
    MomentsEmbedding,
    as_bags,
    as_responses,
    merge_stores,
)
from bagbasis.data.bags.bags import concatenate
from bagbasis.data.bags.coordinates import order_of

XY, YX = ["x", "y"], ["y", "x"]
POINTS = np.arange(8.0).reshape(4, 2)
TABLE = pd.DataFrame({"id": [1, 1, 2, 2], "x": POINTS[:, 0], "y": POINTS[:, 1]})
RECORDS = pa.table(
    {"points": [[{"x": 0.0, "y": 1.0}, {"x": 2.0, "y": 3.0}], [{"x": 4.0, "y": 5.0}]]}
)


def frame(columns, rows=slice(None)):
    return TABLE[columns].iloc[rows]


@pytest.mark.parametrize(
    "bags",
    [
        as_bags([frame(XY, [0, 1]), frame(XY, [2])]),
        as_bags([frame(XY, [0, 1]), frame(YX, [2])]),
        as_bags([pl.from_pandas(frame(XY, [0, 1])), pl.from_pandas(frame(YX, [2]))]),
        as_bags([frame(XY, [0, 1]), POINTS[[2]]]),
        as_bags(TABLE.iloc[:3].groupby("id")),
        as_bags(pl.from_pandas(TABLE.iloc[:3]).group_by("id", maintain_order=True)),
        Bags.from_frame(TABLE.iloc[:3][["y", "id", "x"]], "id", coordinates=XY),
        Bags.from_arrow(RECORDS),
    ],
)
def test_names_come_with_the_points(bags):
    assert bags.coordinate_names == XY
    np.testing.assert_array_equal(bags.points, POINTS[:3])


@pytest.mark.parametrize(
    "bags",
    [as_bags([POINTS]), as_bags([pd.DataFrame(POINTS)]), Bags(POINTS, [0, 4]), as_bags([[1.0]])],
)
def test_arrays_and_numbered_columns_have_no_names(bags):
    assert bags.coordinate_names is None
    assert list(bags.to_pandas())[1:] == [f"x{j}" for j in range(bags.n_dims)]


@pytest.mark.parametrize(
    "keep",
    [
        lambda b: b[:1],
        lambda b: b[[1, 0]],
        lambda b: b + b,
        lambda b: concatenate([b[:1], b[1:]]),
        lambda b: pickle.loads(pickle.dumps(b)),
        lambda b: as_responses(b, 2),
        lambda b: as_responses(b, 2).present,
        lambda b: Bags.from_frame(b.to_pandas(), "bag"),
    ],
)
def test_names_are_kept(keep):
    assert keep(as_bags(TABLE.groupby("id"))).coordinate_names == XY


def test_bags_pickled_without_names_are_read():
    bags = object.__new__(Bags)
    bags.points, bags.offsets = POINTS, np.array([0, 4])
    assert bags.coordinate_names is None
    assert bags[:1].coordinate_names is None


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["pressure", "puls"], r"'pulse' is missing \(did you mean 'puls'\?\), 'puls' is extra"),
        (["pressure"], "'pulse' is missing"),
        (["pulse", "pressure", "age"], "'age' is extra"),
        (["pressure", "pressure"], "'pulse' is missing"),
        (["pressure", "pulse", "pulse"], "a name occurs twice"),
    ],
)
def test_other_names_are_refused_with_both_lists(names, message):
    with pytest.raises(ModelError, match=message) as caught:
        order_of(names, ["pulse", "pressure"], "these", "the model was fitted on", ModelError)
    assert str(names) in str(caught.value)
    assert "['pulse', 'pressure']" in str(caught.value)


def test_frames_of_other_columns_in_one_list_are_refused():
    other = frame(XY).rename(columns={"y": "z"})
    with pytest.raises(DataError, match=r"bag 1: .*\['x', 'z'\].* bag 0 are \['x', 'y'\]"):
        as_bags([frame(XY), other])
    with pytest.raises(DataError, match=r"the response of bag 2: .*'z' is extra"):
        as_responses([frame(XY), None, other], 3)
    with pytest.raises(DataError, match="'z' is extra"):
        as_bags([frame(XY)]) + as_bags([other])


# ---------------------------------------------------------------------- stores


def store_of(url, columns, ids, **options):
    made = BagStore.create(url, 2, target_names=["t"], box=[(-1, 9), (-2, 10)], **options)
    if columns == YX:
        made = BagStore.create(
            url, 2, target_names=["t"], box=[(-2, 10), (-1, 9)], overwrite=True, **options
        )
    bags = [frame(columns, [0, 1]), frame(columns, [2, 3])] if columns else [POINTS[:2], POINTS[2:]]
    return made.append(bags, {"t": [1.0, 2.0]}, ids=ids)


def test_a_store_takes_the_names_of_its_first_bags(tmp_path):
    store = store_of(tmp_path / "s", XY, [0, 1])
    assert BagStore.open(store.url).coordinate_names == XY
    assert store.read(0, 1).coordinate_names == XY
    store.append([frame(YX, [0, 1])])
    np.testing.assert_array_equal(store[2], store[0])
    store.append([POINTS[:2]])
    np.testing.assert_array_equal(store[3], store[0])
    with pytest.raises(DataError, match="'z' is extra"):
        store.append([frame(XY).rename(columns={"x": "z"})])
    assert BagStore.open(store.url).n_bags == 4
    assert list(store.to_pandas())[-2:] == XY


def test_a_store_of_unnamed_bags_stays_so(tmp_path):
    store = store_of(tmp_path / "s", None, [0, 1])
    store.append([frame(YX)])
    assert store.coordinate_names is None
    np.testing.assert_array_equal(store[2], frame(YX))


def test_names_of_a_refused_append_are_not_taken(tmp_path):
    store = BagStore.create(tmp_path / "s", 2)
    with pytest.raises(DataError):
        store.append([frame(XY)], ids=["a", "b"])
    assert store.append([frame(YX)]).coordinate_names == YX


def test_names_of_responses_are_kept_and_compared(tmp_path):
    store = BagStore.create(tmp_path / "s", 1, response_dims=2)
    store.append([[1.0]], responses=[frame(XY)])
    store.append([[1.0]], responses=[frame(YX)])
    assert store.responses().coordinate_names == XY
    np.testing.assert_array_equal(store.responses()[0], store.responses()[1])
    with pytest.raises(DataError, match=r"responses: .*'z' is extra"):
        store.append([[1.0]], responses=[frame(XY).rename(columns={"x": "z"})])


@pytest.mark.parametrize("dtype", ["float32", "uint16", "uint8"])
def test_merged_stores_have_one_order(tmp_path, dtype):
    single = store_of(tmp_path / "a", XY, [0, 1], dtype=dtype)
    two = store_of(tmp_path / "b", YX, [2, 3], dtype=dtype)
    merged = merge_stores([single, two], tmp_path / "c")
    assert merged.coordinate_names == XY
    assert merged.box == single.box
    np.testing.assert_array_equal(merged[2], merged[0])


@pytest.mark.parametrize(("times", "is_told"), [(1000.0, True), (0.001, True), (9.0, False)])
def test_merged_stores_of_other_units_are_warned_of(times, is_told, tmp_path, warned):
    bags = [np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([[1.0, -2 * times], [3.0, 4 * times]])]
    stores = [
        BagStore.create(tmp_path / name, 2).append([bag], ids=[name])
        for name, bag in zip("ab", bags, strict=True)
    ]
    merge_stores(stores, tmp_path / "c")
    assert ("coordinate 1 reaches from" in warned.text) == is_told


@pytest.mark.parametrize("first", [None, XY])
def test_stores_without_names_are_merged_by_position(tmp_path, first):
    second = XY if first is None else None
    stores = [store_of(tmp_path / "a", first, [0, 1]), store_of(tmp_path / "b", second, [2, 3])]
    merged = merge_stores(stores, tmp_path / "c")
    assert merged.coordinate_names == XY
    np.testing.assert_array_equal(merged[2], merged[0])


NUMBERED = pd.DataFrame({"id": np.repeat(np.arange(6), 4), 7: np.arange(24.0), 3: -np.arange(24.0)})


@pytest.mark.parametrize("make", [np.int64, int])
def test_columns_that_are_numbers_have_names(make):
    """In a groupby and in lists of frames; of both, they are put in order."""
    table = NUMBERED.rename(columns={7: make(7), 3: make(3)})
    bags = as_bags(table.groupby("id"))
    assert bags.coordinate_names == ["7", "3"]
    parts = [frame for _, frame in table.groupby("id")]
    listed = as_bags([parts[0][[7, 3]], *(part[[3, 7]] for part in parts[1:])])
    np.testing.assert_array_equal(listed.points, bags.points)
    with pytest.raises(DataError, match=r"'7' is missing.* '5' is extra"):
        as_bags([parts[0][[7, 3]], parts[1][[7, 3]].rename(columns={7: 5})])


def test_numbers_that_nobody_gave_are_no_names():
    """0, 1, … are places: they go with any names, and are refused in another order."""
    plain = NUMBERED[[7, 3]].set_axis([0, 1], axis=1)
    bags = as_bags([plain, NUMBERED[[7, 3]].set_axis(["a", "b"], axis=1), plain.to_numpy()])
    np.testing.assert_array_equal(bags.points, np.tile(plain.to_numpy(), (3, 1)))
    assert as_bags(plain.assign(id=NUMBERED.id).groupby("id")).coordinate_names is None
    with pytest.raises(DataError, match=r"numbers 0 to 1 in another order, \[1, 0\]; sort them"):
        as_bags([plain, plain[[1, 0]]])
    assert as_bags([plain.set_axis([True, False], axis=1)]).coordinate_names is None


def test_categories_that_no_row_has():
    keys = pd.Categorical(NUMBERED.id, categories=range(8))
    with pytest.raises(DataError, match=r"bag with id 6 has no rows.* group with observed=True"):
        as_bags(NUMBERED.groupby(keys, observed=False)[[7, 3]])
    assert len(as_bags(NUMBERED.groupby(keys, observed=True)[[7, 3]])) == 6


def test_the_column_that_rows_are_grouped_by_is_no_coordinate():
    """However it is named: it was a coordinate where it has numbers or times."""
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(6), "D")
    frame = pd.DataFrame({"id": [0, 0, 1, 1, 2, 2], "x": np.arange(6.0), "day": days})
    expected = as_bags(frame[["id", "x"]].groupby("id"))
    for keys in (frame["id"], [frame["id"]], pd.Grouper(key="id")):
        bags = as_bags(frame[["id", "x"]].groupby(keys))
        assert bags.coordinate_names == ["x"]
        np.testing.assert_array_equal(bags.points, expected.points)
    weeks = as_bags(frame[["x", "day"]].groupby(pd.Grouper(key="day", freq="3D")))
    assert weeks.coordinate_names == ["x"]
    assert weeks.sizes.tolist() == [3, 3]
    columns = pl.DataFrame(frame[["id", "x"]]).group_by(pl.col("id"), maintain_order=True)
    assert as_bags(columns).coordinate_names == ["x"]
    model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0)
    table = pd.DataFrame({"id": np.arange(90) // 3, "x": np.arange(90.0), "y": np.arange(90) // 3})
    model.fit(table.groupby(table["id"]), target="y")
    assert model.feature_names_in_.tolist() == ["x"]


def test_arrays_of_xarray_with_their_dimensions_in_two_orders():
    """The dimensions of the first array say what is a point and what a coordinate."""
    square = [xr.DataArray(POINTS[:2], dims=("n", "c")), xr.DataArray(POINTS[2:], dims=("n", "c"))]
    bags = Bags.from_list([square[0], square[1].transpose()])
    np.testing.assert_array_equal(bags.points, POINTS)
