"""`Bags`: what it accepts, what it refuses, and how it is indexed."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pandas as pd
import polars as pl
import pytest
from dask import delayed
from hypothesis import given, strategies as st

from bagbasis import Bags, BagStore, DataError, Responses, as_bags
from bagbasis.data.bags.bags import concatenate
from bagbasis.data.labelled.inputs import with_targets
from tests.oracles.ragged import SIZES, assert_same_bags, random_bags


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_dims", [1, 2, 3, 4])
def test_from_list_keeps_bags(dtype, n_dims):
    """Bags of all sizes come back as they went in, in their own precision."""
    arrays = random_bags(np.random.default_rng(0), SIZES, n_dims, dtype)
    bags = Bags.from_list(arrays)
    assert bags.points.dtype == dtype
    assert (len(bags), bags.n_dims, bags.n_points) == (len(SIZES), n_dims, sum(SIZES))
    assert bags.sizes.tolist() == list(SIZES)
    assert_same_bags(bags, arrays)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.bool_, np.float16])
def test_other_real_dtypes_become_float64(dtype):
    """Integers, booleans and half floats are stored as doubles, nothing else changes."""
    points = np.array([[0, 1], [1, 0]], dtype=dtype)
    bags = Bags(points, [0, 2])
    assert bags.points.dtype == np.float64
    np.testing.assert_array_equal(bags[0], points.astype(np.float64))
    assert Bags.from_list([points]).points.dtype == np.float64


def test_mixed_precision_becomes_the_wider():
    """No bag loses digits because another one is float32."""
    narrow, wide = np.ones((1, 1), np.float32), np.array([[1 + 1e-12]])
    assert Bags.from_list([narrow, wide])[1][0, 0] == 1 + 1e-12
    assert Bags.from_list([narrow, wide], dtype=np.float32).points.dtype == np.float32


def test_non_contiguous_points_are_accepted():
    """A transposed or strided array is copied, not misread."""
    table = np.arange(12.0).reshape(2, 6).T
    np.testing.assert_array_equal(Bags(table, [0, 4, 6])[1], [[4.0, 10.0], [5.0, 11.0]])


KEYS = st.one_of(
    st.slices(7),
    st.lists(st.integers(-7, 6)),
    st.lists(st.booleans(), min_size=7, max_size=7).map(np.array),
)


@given(KEYS)
def test_indexing_is_that_of_a_list(key):
    """Slices of any step, masks and index lists select the bags a list of arrays would."""
    arrays = random_bags(np.random.default_rng(1), [3, 1, 2, 5, 1, 1, 4], 2)
    bags = Bags.from_list(arrays)
    chosen = [arrays[i] for i in np.arange(7)[key]]
    part = bags[key]
    assert_same_bags(part, chosen)
    assert part.offsets[0] == 0
    assert part.offsets[-1] == len(part.points)
    assert part.n_dims == 2


@given(st.integers(-10, 10))
def test_integer_indexing_is_that_of_a_list(i):
    """An integer gives the bag as an array; out of range is an IndexError, as for a list."""
    arrays = random_bags(np.random.default_rng(2), [3, 1, 2, 5], 2)
    bags = Bags.from_list(arrays)
    for key in (i, np.int32(i)):
        if -4 <= i < 4:
            np.testing.assert_array_equal(bags[key], arrays[i])
        else:
            with pytest.raises(IndexError):
                bags[key]


def test_no_bags_at_all_is_possible_when_the_dimension_is_known():
    """An empty collection has a dimension and can be sliced and joined."""
    none = Bags(np.empty((0, 3)), [0])
    assert (len(none), none.n_dims, none.n_points) == (0, 3, 0)
    assert len(none[:]) == len(none[[]]) == 0
    assert list(none) == []
    assert len(concatenate([none, Bags.from_list([np.zeros((2, 3))])])) == 1


def test_bags_are_shown(tmp_path):
    """As text their counts; in a notebook sizes and ranges, with texts of others escaped."""
    bags = Bags.from_list([[[1.0, 2.0]], [[3.0, -4.0], [0.0, 0.5]]])
    assert repr(bags) == "Bags(n_bags=2, n_points=3, n_dims=2, dtype=float64)"
    shown = bags._repr_html_()
    for text in ("<b>Bags</b>", "1 to 2, mean 1.5", "0 to 3, -4 to 2", "float64"):
        assert text in shown
    assert "float64" in Responses(np.empty((0, 2)), [0, 0])._repr_html_()
    store = BagStore.create(tmp_path / "s.zarr", 1, target_names=["<i>"], response_dims=1)
    assert "mean -" in store._repr_html_()
    store = store.append(
        [[[0.5]], [[0.1], [0.2]]], targets={"<i>": [1, 2]}, responses=[[[0.5]], None]
    )
    for text in ("s.zarr", "mean 1.5", "0 to 1", "&lt;i&gt;", "response points"):
        assert text in store._repr_html_()


def test_as_bags_takes_bags_and_lists():
    """Bags pass through uncopied; a list or a stack of equal bags is converted."""
    bags = Bags.from_list([[1.0], [2.0]])
    assert as_bags(bags) is bags
    assert len(as_bags([[1.0], [2.0]])) == 2
    assert as_bags(np.zeros((4, 5, 2))).sizes.tolist() == [5, 5, 5, 5]


@pytest.mark.parametrize(
    ("value", "dtype"), [(np.nan, None), (np.inf, None), (-np.inf, None), (1e39, np.float32)]
)
def test_a_coordinate_that_is_not_finite_names_bag_and_row(value, dtype):
    """The error says which bag, which of its rows, and which coordinate; what overflows is inf."""
    arrays = [np.zeros((2, 2)), np.zeros((3, 2))]
    arrays[1][2, 1] = value
    with pytest.raises(DataError, match=r"bag 1, row 2: coordinate 1 is -?(nan|inf)"):
        Bags.from_list(arrays, dtype=dtype)


class Sliced:
    """What has a length and parts, as estimates of densities have, but no points."""

    def __len__(self):
        return 1

    def __getitem__(self, i):
        if i:
            raise IndexError(i)
        return self

    def __repr__(self):
        return "a slice of something"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "no bags"),
        ("s.zarr", r"one array per bag, got 's.zarr'; BagStore.open\(url\) opens a store"),
        ([[1.0], []], "bag 1 is empty"),
        ([np.zeros((1, 2)), np.empty((0, 2))], "bag 1 is empty"),
        ([np.zeros((1, 2)), np.zeros((1, 3))], "bag 1 has dimension 3, bag 0 has 2"),
        ([np.zeros((1, 2)), np.zeros((1, 2, 1))], r"bag 1 has shape \(1, 2, 1\)"),
        ([np.zeros((1, 0))], r"bag 0 has shape \(1, 0\)"),
        ([1.0], r"bag 0 has shape \(\)"),
        ([[["a", "b"]]], "bag 0 has dtype <U1; expected real numbers"),
        ([[[0, 1], [2, None]]], r"bag 0 has dtype object; .* \(row 1, coordinate 1: None\)"),
        (
            [[{"x": 1}]],
            r"real numbers \(row 0: \{'x': 1\}\); give pandas.DataFrame\(bag\)",
        ),
        ([{"x": [1, 2]}], r"bag 0 has shape \(\); .*; give pandas.DataFrame\(bag\)"),
        ([np.zeros((1, 2), complex)], "bag 0 has dtype complex128"),
        ([np.zeros(3, [("u", float), ("v", float)])], r"fields \['u', 'v'\]; give pandas.DataF"),
        ([np.array([[1.0], [1.0, 2.0]], object)], "bag 0 is not an array"),
        ([np.zeros((1, 1)), [[1.0, 2.0], [3.0]]], "bag 1 is not an"),
        ([Sliced()], "bag 0 is a slice of something, not an array"),
    ],
)
def test_arrays_that_are_no_bags_are_named(arrays, message):
    """Every wrong bag is a DataError that says which one and why."""
    with pytest.raises(DataError, match=message):
        Bags.from_list(arrays)


def test_a_bag_is_an_array_of_its_rows():
    """A column of lists of lists, as pandas reads it from Parquet."""
    rows = np.empty(2, dtype=object)
    rows[:] = [np.array([1.0, 2.0]), [3, 4]]
    np.testing.assert_array_equal(Bags.from_list([rows])[0], [[1.0, 2.0], [3.0, 4.0]])
    lists = pl.Series([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]])
    assert [bag.tolist() for bag in as_bags(lists)] == lists.to_list()


@pytest.mark.parametrize(
    ("points", "offsets", "message"),
    [
        ([[[1.0]]], None, r"Bags\(points, offsets\) .*; as_bags takes one array per bag"),
        (np.zeros((3, 2)), [0, 2], "n_points = 3"),
        (np.zeros((3, 2)), [1, 3], "n_points = 3"),
        (np.zeros((3, 2)), [], "dtype float64"),
        (np.zeros((3, 2)), [[0, 3]], "n_points = 3"),
        (np.zeros((3, 2)), [0, 1.5, 3], "dtype float64; expected integers"),
        (np.zeros((3, 2)), [0, 2, 2, 3], "bag 1 is empty"),
        (np.zeros((3, 2)), [0, 2, 1, 3], "bag 1 is empty"),
        (np.zeros(3), [0, 3], r"points have shape \(3,\)"),
        (np.zeros((3, 0)), [0, 3], r"points have shape \(3, 0\)"),
        (np.zeros((3, 2), object), [0, 3], "points has dtype object"),
    ],
)
def test_points_and_offsets_that_do_not_fit_are_refused(points, offsets, message):
    """Offsets run from 0 to n_points in steps of at least one; fractions are not rounded."""
    with pytest.raises(DataError, match=message):
        Bags(points, offsets)


@pytest.mark.parametrize("data", [np.zeros(3), np.zeros((3, 2))])
def test_one_array_is_not_taken_for_many_bags(data):
    """A single (n, d) array is ambiguous, and refused."""
    with pytest.raises(DataError, match="pass a list"):
        as_bags(data)


def test_awkward_arrays():
    """There and back without a copy; points are records, arrays or numbers; others are refused."""
    import awkward as ak

    bags = Bags.from_list([np.ones((2, 3)), np.zeros((1, 3)), np.full((4, 3), 7.0)])
    there = bags.to_awkward()
    assert str(ak.type(there)) == "3 * var * 3 * float64"
    back = Bags.from_awkward(there)
    assert np.shares_memory(back.points, bags.points)
    assert (back.offsets == bags.offsets).all()
    records = ak.zip({"x": [[1, 2], [3]], "y": [[0.5, 1], [2]]})
    for array in (records, ak.Array([[[1, 0.5], [2, 1]], [[3, 2]]])):
        assert [bag.tolist() for bag in Bags.from_awkward(array)] == [[[1, 0.5], [2, 1]], [[3, 2]]]
    assert Bags.from_awkward(records["x"])[0].tolist() == [[1], [2]]
    assert Bags.from_awkward(records[[1, 0]])[0].tolist() == [[3, 2]]
    for wrong, message in (
        ([[1.0], []], "bag 1 is empty"),
        ([[1.0], None], "expected one list of points per bag"),
        ([[1.0, None]], "none missing"),
        ([[[1.0], [1.0, 2.0]]], "each a list or a record of numbers"),
        ([1.0], "expected one list of points per bag"),
        ([["a"]], "expected real numbers"),
    ):
        with pytest.raises(DataError, match=message):
            Bags.from_awkward(ak.Array(wrong))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        ([b"a", b"b"], ["a", "b"]),
        (range(3, 5), [3, 4]),
        (np.array([7, 2], "uint8"), [7, 2]),
        (pd.Series(["a", "b"], index=[5, 6]), ["a", "b"]),
        (pd.Index([2**60, 1]), [2**60, 1]),
        (None, None),
    ],
)
def test_bags_take_ids_as_lists(ids, expected):
    """A list ended in an AttributeError; labels with an index are put in the order of these ids."""
    bags = Bags(np.arange(4.0)[:, None], [0, 2, 4]).named(["u"]).with_ids(ids)
    assert (None if bags.ids is None else bags.ids.tolist()) == expected
    assert bags.coordinate_names == ["u"]
    if expected is not None:
        assert bags[[1]].ids.tolist() == expected[1:]


@pytest.mark.parametrize("ids", [["a"], "ab", [1.5, 2], [None, "a"], [[1], [2]], 3])
def test_ids_of_another_kind_are_refused(ids):
    with pytest.raises(DataError, match=r"ids? "):
        Bags(np.ones((2, 1)), [0, 1, 2]).with_ids(ids)


@pytest.mark.parametrize(
    "key", [(0, 2), [0, 2], range(0, 3, 2), pd.Series([0, 2]), np.array([0, 2])]
)
def test_indices_of_several_bags(key):
    bags = Bags(np.arange(3.0)[:, None], [0, 1, 2, 3])[key]
    assert bags.points.ravel().tolist() == [0, 2]


@pytest.mark.parametrize("key", ["a", 1.0, None, [True, False], [0.5], ["a"], [[0, 1]], [9]])
def test_indices_of_nothing(key):
    """What loops and scikit-learn expect of a sequence, with the index in words."""
    with pytest.raises(IndexError, match="is not an index"):
        Bags(np.arange(3.0)[:, None], [0, 1, 2, 3])[key]


def test_series_are_bags_in_one_dimension():
    """A Series has dtypes, too, which is no list there."""
    bags = as_bags([pd.Series([1.0, 2.0]), pd.Series([3, 4], dtype="Int64")])
    assert bags.points.ravel().tolist() == [1, 2, 3, 4]


class Quantity(np.ndarray):
    """As of astropy: an array with a unit, which numpy drops."""

    unit = "km"

    def to_value(self, unit):
        return np.asarray(self)


def test_groups_with_their_keys_are_told_apart_from_bags():
    """What a groupby yields, of frames and of one column: the message says what to pass."""
    groups = pd.DataFrame({"id": [0, 0, 1], "a": [1.0, 2.0, 3.0]}).groupby("id")
    for pairs in (list(groups), list(groups["a"])):
        with pytest.raises(DataError, match=r"bag 0 is a key with its group.* pass the groupby"):
            as_bags(pairs)


def test_units_are_refused():
    """Bags in km and in m were one list of numbers."""
    points = np.ones((2, 1)).view(Quantity)
    with pytest.raises(DataError, match="bag 1 has the unit km, which is not kept; give numbers"):
        as_bags([np.ones((2, 1)), points])
    with pytest.raises(DataError, match="y has the unit km"):
        with_targets([np.ones((2, 1))], np.ones(1).view(Quantity))
    points.unit = ""  # without a dimension
    assert as_bags([points]).n_points == 2


def test_values_that_are_not_computed_yet_are_refused():
    """A delayed value of Dask was said to have a unit."""
    promises = {"is delayed .* dask.compute": delayed(np.ones)((2, 1)), "is a Future": Future()}
    for message, promise in promises.items():
        with pytest.raises(DataError, match=f"bag 1 {message}"):
            as_bags([np.ones((2, 1)), promise])
        with pytest.raises(DataError, match=f"y {message}"):
            with_targets([np.ones((2, 1))], promise)


def test_bags_as_arrays():
    """Bags of one size become a three-dimensional array, bags of several sizes one of objects."""
    points = np.arange(12.0).reshape(2, 3, 2)
    np.testing.assert_array_equal(np.asarray(Bags.from_list([*points])), points)
    sizes = Bags.from_list([points[0], points[1, :2]])
    with pytest.raises(DataError, match="sizes"):
        np.asarray(sizes)
    objects = np.asarray(sizes, dtype=object)
    assert objects.shape == (2,)
    for actual, expected in zip(objects, sizes, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_an_iterator_of_bags_is_read_once():
    arrays = [np.full((n, 2), float(n)) for n in (1, 3)]
    for made in (iter(arrays), map(np.asarray, arrays)):
        assert [bag.tolist() for bag in as_bags(made)] == [bag.tolist() for bag in arrays]
    with pytest.raises(DataError, match="the list is empty"):
        as_bags(iter(()))
