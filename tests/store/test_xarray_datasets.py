"""Stores as data sets of xarray and back: every bit of points, targets and ids is kept."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
import zarr

from bagbasis import BagStore
from bagbasis.errors import DataError
from bagbasis.store.schema import ARRAYS, CHANGES, POINTS, RESPONSE_ARRAYS

RNG = np.random.default_rng(0)
N = 23
SIZES = RNG.integers(1, 9, N)


def make(path, dtype="float32", ids="text", responses=True, chunk_points=7):
    """A store of uneven bags with every kind of column."""
    lo, hi = (0, 255) if dtype == "uint8" else (-4, 4)
    bags = [RNG.uniform(lo, hi, (n, 3)) for n in SIZES]
    bags = [bag.round() if dtype == "uint8" else bag for bag in bags]
    store = BagStore.create(
        path,
        3,
        ["y", "class"],
        [(lo, hi)] * 3,
        class_names={"class": ["a", "b"]},
        dtype=dtype,
        chunk_points=chunk_points,
        response_dims=2 if responses else None,
    )
    y = RNG.normal(size=N)
    y[3] = np.nan
    answers = [RNG.random((n % 3, 2)) for n in range(N)] if responses else None
    names = [f"bag {i}" for i in range(N)] if ids == "text" else 7 * np.arange(N)
    classes = np.array(["a", "b"])[np.arange(N) % 2]
    return store.append(bags, {"y": y, "class": classes}, names, responses=answers)


def assert_same(a, b):
    """Two stores hold the same bits."""
    assert (a.box, a.target_names, a.stored_dtype) == (b.box, b.target_names, b.stored_dtype)
    assert a.meta.class_names == b.meta.class_names
    assert a.ids().tolist() == b.ids().tolist()
    assert a.read().points.tobytes() == b.read().points.tobytes()
    np.testing.assert_array_equal(a.offsets(), b.offsets())
    assert a.targets().tobytes() == b.targets().tobytes()
    assert a.response_dims == b.response_dims
    if a.response_dims is not None:
        assert a.responses().points.tobytes() == b.responses().points.tobytes()
        np.testing.assert_array_equal(a.response_offsets(), b.response_offsets())
        assert a.response_box == b.response_box


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint16"])
@pytest.mark.parametrize("ids", ["text", "numbers"])
@pytest.mark.parametrize("responses", [True, False])
def test_there_and_back(dtype, ids, responses, tmp_path):
    """Of each kind of point and id, with responses and without."""
    store = make(tmp_path / "a.zarr", dtype, ids, responses)
    found = store.to_xarray()
    assert found["row_size"].attrs["sample_dimension"] == "point"
    assert found.sizes["point"] == SIZES.sum()
    assert_same(BagStore.from_xarray(found, tmp_path / "b.zarr"), store)
    part = store.to_xarray(2, 9)
    np.testing.assert_array_equal(part["points"], store.read(2, 9).points)
    np.testing.assert_array_equal(part["row_size"], SIZES[2:9])


def test_whole_numbers(tmp_path):
    """Points of uint8 come back as they were stored."""
    store = make(tmp_path / "a.zarr", "uint8", responses=False)
    assert_same(BagStore.from_xarray(store.to_xarray(), tmp_path / "b.zarr"), store)


def test_by_way_of_a_zarr_file_of_xarrays_own(tmp_path):
    """Another program writes it and reads it again."""
    store = make(tmp_path / "a.zarr")
    store.to_xarray().to_zarr(tmp_path / "x.zarr", zarr_format=3, consolidated=False)
    again = xr.open_zarr(tmp_path / "x.zarr", consolidated=False, chunks=None)
    assert_same(BagStore.from_xarray(again, tmp_path / "b.zarr"), store)


def test_removed_bags_are_left_out(tmp_path):
    """As fits leave them out; relabelled ones have their new label."""
    store = make(tmp_path / "a.zarr", responses=False)
    store.remove(["bag 4"])
    store.relabel("y", {"bag 5": 9.0})
    found = BagStore.from_xarray(store.to_xarray(), tmp_path / "b.zarr")
    assert found.n_bags == N - 1
    assert "bag 4" not in found.ids().tolist()
    assert found.targets(names=["y"])[4, 0] == 9.0


def test_data_sets_of_others(tmp_path):
    """Drifters, as CF has them: columns along the observations, numbers per trajectory."""
    sizes = np.array([2, 0, 3])[[0, 2]]
    dataset = xr.Dataset(
        {
            "lon": ("obs", np.arange(5.0)),
            "lat": ("obs", np.arange(5.0) * 2),
            "rowsize": ("traj", sizes, {"sample_dimension": "obs"}),
            "depth": ("traj", [10.0, 20.0]),
        }
    )
    store = BagStore.from_xarray(dataset, tmp_path / "d.zarr")
    assert store.target_names == ("depth",)
    np.testing.assert_array_equal(store.read()[1], [[2, 4], [3, 6], [4, 8]])
    assert store.box.lo[0] < 0 < 4 < store.box.hi[0]
    for change, message in (
        (dataset.drop_vars("rowsize"), "no variable has the attribute 'sample_dimension'"),
        (dataset.drop_vars(["lon", "lat"]), "along 'obs' there are"),
        (dataset.assign(rowsize=("traj", [1, 1], {"sample_dimension": "obs"})), "add up to 2"),
        (dataset.assign_attrs(bagbasis="no JSON"), "expected JSON"),
        ({"a": 1}, r"expected an xarray\.Dataset"),
    ):
        with pytest.raises(DataError, match=message):
            BagStore.from_xarray(change, tmp_path / "e.zarr")
    assert not (tmp_path / "e.zarr").exists()


def test_arrays_name_their_dimensions(tmp_path):
    """So that xarray opens a store as it is; stores without such names are read."""
    store = make(tmp_path / "a.zarr")
    store.relabel("y", {"bag 5": 9.0})
    store.remove(["bag 1"])
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    for array in (*ARRAYS, *RESPONSE_ARRAYS, CHANGES):
        assert group[array.name].metadata.dimension_names == array.dimensions
        assert len(array.dimensions) == group[array.name].ndim
    opened = xr.open_zarr(tmp_path / "a.zarr", consolidated=False, chunks=None)
    stored = store.array(POINTS)[: store.meta.n_points]
    np.testing.assert_array_equal(opened["points"][: store.meta.n_points], stored)
    for file in (tmp_path / "a.zarr").rglob("zarr.json"):
        text = file.read_text()
        if "dimension_names" in text:
            start = text.index('"dimension_names"')
            end = text.index("]", start) + 1
            file.write_text(text[:start] + '"dimension_names": null' + text[end:])
    old = BagStore.open(tmp_path / "a.zarr")
    old.verify()
    assert old.append([np.zeros((2, 3))], None, ["new"], responses=[None]).n_bags == N + 1
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["points"].metadata.dimension_names is None
