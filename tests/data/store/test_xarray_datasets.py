"""Stores as data sets of xarray and back: every bit of points, targets and ids is kept."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
import zarr

from bagbasis import BagStore, DataError
from bagbasis.data.store.schema import ARRAYS, CHANGES, POINTS, RESPONSE_ARRAYS
from bagbasis.ingest import ingest_frame
from tests.copied import copied

N = 23
SIZES = np.random.default_rng(0).integers(1, 9, N)


@copied
def make(path, dtype="float32", ids="text", responses=True):
    """A store of uneven bags with every kind of column."""
    rng = np.random.default_rng(1)
    lo, hi = (0, 255) if dtype == "uint8" else (-4, 4)
    bags = [rng.uniform(lo, hi, (n, 3)) for n in SIZES]
    bags = [bag.round() if dtype == "uint8" else bag for bag in bags]
    store = BagStore.create(
        path,
        3,
        target_names=["y", "class"],
        box=[(lo, hi)] * 3,
        class_names={"class": ["a", "b"]},
        dtype=dtype,
        chunk_points=7,
        response_dims=2 if responses else None,
    )
    y = rng.normal(size=N)
    y[3] = np.nan
    answers = [rng.random((n % 3, 2)) for n in range(N)] if responses else None
    names = [f"bag {i}" for i in range(N)] if ids == "text" else 7 * np.arange(N)
    classes = np.array(["a", "b"])[np.arange(N) % 2]
    store.append(bags, {"y": y, "class": classes}, ids=names, responses=answers)


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


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint16"])
@pytest.mark.parametrize("ids", ["text", "numbers"])
@pytest.mark.parametrize("responses", [True, False])
def test_there_and_back(dtype, ids, responses, tmp_path):
    """Each kind of point and id, with responses and without."""
    store = make(tmp_path / "a.zarr", dtype, ids, responses)
    result = store.to_xarray()
    assert result["row_size"].attrs["sample_dimension"] == "point"
    assert result.sizes["point"] == SIZES.sum()
    assert_same(BagStore.from_xarray(result, tmp_path / "b.zarr"), store)
    part = store.to_xarray(2, 9)
    np.testing.assert_array_equal(part["points"], store.read(2, 9).points)
    np.testing.assert_array_equal(part["row_size"], SIZES[2:9])


@pytest.mark.long
def test_by_way_of_a_zarr_file_of_xarrays_own(tmp_path):
    """Another program writes it and reads it again."""
    store = make(tmp_path / "a.zarr")
    store.to_xarray().to_zarr(tmp_path / "x.zarr", zarr_format=3, consolidated=False)
    again = xr.open_zarr(tmp_path / "x.zarr", consolidated=False, chunks=None)
    assert_same(BagStore.from_xarray(again, tmp_path / "b.zarr"), store)


@pytest.mark.long
def test_removed_bags_are_left_out(tmp_path):
    """As fits leave them out; relabelled ones have their new label."""
    store = make(tmp_path / "a.zarr", responses=False)
    store.remove(["bag 4"])
    store.relabel("y", {"bag 5": 9.0})
    result = BagStore.from_xarray(store.to_xarray(), tmp_path / "b.zarr")
    assert result.n_bags == N - 1
    assert "bag 4" not in result.ids().tolist()
    assert result.targets(names=["y"])[4, 0] == 9.0


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


@pytest.mark.long
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
    assert old.append([np.zeros((2, 3))], None, ids=["new"], responses=[None]).n_bags == N + 1
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["points"].metadata.dimension_names is None


def drifters(**packed):
    """Two drifters of two observations; positions are coordinates of the data set, as in CF."""
    dataset = xr.Dataset(
        {
            "sst": ("obs", np.array([1000, 1100, 1200, 1300], "i2"), packed),
            "n": ("traj", [2, 2], {"sample_dimension": "obs"}),
            "drifter": ("traj", ["d7", "d8"], {"cf_role": "trajectory_id"}),
        }
    )
    return dataset.assign_coords(lat=("obs", np.arange(4) + 50.0), lon=("obs", np.arange(4) + 5.0))


def test_positions_ids_and_narrow_variables(tmp_path):
    """Positions are coordinates, the variable with a role has the ids, a spectrum has columns."""
    store = BagStore.from_xarray(drifters(), tmp_path / "a.zarr")
    assert store.ids().tolist() == ["d7", "d8"]
    assert store.coordinate_names == ["lat", "lon", "sst"]
    assert store[0].tolist() == [[50, 5, 1000], [51, 6, 1100]]
    dataset = drifters().assign(
        spectrum=(("obs", "band"), np.arange(8.0).reshape(4, 2)),
        turned=(("band", "obs"), np.arange(8.0).reshape(2, 4)),
        when=("obs", np.array([24, 48, 72, 108], "M8[h]").astype("M8[ns]")),
        launched=("traj", np.array(["1970-01-03", "1970-01-04"], "M8[s]")),
    )
    dataset = dataset.assign_coords(depth=("traj", [1.0, 2.0]))
    store = BagStore.from_xarray(dataset, tmp_path / "b.zarr")
    wide = ["spectrum[0]", "spectrum[1]", "turned[0]", "turned[1]"]
    assert store.coordinate_names == ["lat", "lon", "sst", *wide, "when"]
    assert store[1][1].tolist() == [53, 8, 1300, 6, 7, 3, 7, 4.5]
    assert dict(zip(store.target_names, store.targets()[0], strict=True)) == {
        "depth": 1.0, "launched": 2.0,
    }  # fmt: skip


def test_what_is_left_out_is_told(tmp_path, caplog):
    """Texts, and variables of three dimensions; the index of the observations is none."""
    dataset = drifters().assign(
        station=("obs", list("abcd")),
        cube=(("obs", "x", "y"), np.zeros((4, 1, 1))),
        model=("traj", ["A", "B"]),
    )
    BagStore.from_xarray(drifters().assign_coords(obs=range(4)), tmp_path / "a.zarr")
    assert "left out" not in caplog.text
    BagStore.from_xarray(dataset, tmp_path / "b.zarr")
    (line,) = (r.getMessage() for r in caplog.records if "left out" in r.getMessage())
    assert all(name in line for name in ("station (", "cube (float64, obs, x, y)", "model ("))


PACKED = {
    "scaled range": (
        {"scale_factor": 0.1, "valid_max": np.int16(1200), "valid_min": np.int16(1000)},
        [100, 110, 120, np.nan],
    ),
    "times": ({"units": "days since 1970-01-11", "calendar": "standard"}, [1010, 1110, 1210, 1310]),
}


@pytest.mark.long
@pytest.mark.parametrize("case", PACKED)
def test_decoded_and_undecoded_data_sets_are_the_same(case, tmp_path):
    """Points, or the refusal of a missing one; also as tables, a row per observation."""
    attributes, expected = PACKED[case]
    raw = drifters(**attributes)
    for name, dataset in (("raw", raw), ("decoded", xr.decode_cf(raw))):
        if np.isnan(expected).any():
            with pytest.raises(DataError, match=r"bag [01], row [01]: coordinate 'sst' is nan"):
                BagStore.from_xarray(dataset, tmp_path / f"{name}.zarr")
        else:
            store = BagStore.from_xarray(dataset, tmp_path / f"{name}.zarr")
            np.testing.assert_allclose(store.read().points[:, 2], expected, rtol=1e-12)
        table = dataset.drop_vars(["n", "drifter", "lat", "lon"])
        table = table.assign(halo=("obs", [1, 1, 2, 2]))
        call = {"id_column": "halo", "coordinates": ["sst"], "missing": "drop_point"}
        frame = ingest_frame(table, tmp_path / f"{name} table.zarr", dtype="float64", **call)
        numbers = np.array(expected)
        result = frame.read().points.ravel()
        np.testing.assert_allclose(result, numbers[~np.isnan(numbers)], rtol=1e-12)


def test_refused_by_name(tmp_path):
    """Complex numbers, calendars without dates, roles that two variables have."""
    noleap = drifters(units="days since 2000-01-01", calendar="360_day")
    two = drifters().assign(other=("traj", [1, 2], {"cf_role": "profile_id"}))
    characters = drifters().drop_vars("drifter")
    characters["drifter"] = (("traj", "k"), np.array([[b"d"], [b"e"]]), {"cf_role": "profile_id"})
    for dataset, message in (
        (drifters().assign(z=("obs", np.ones(4, complex))), "'z': numbers are complex; choose"),
        (noleap, "'sst': times are of the calendar '360_day'"),
        (two, r"several variables have a cf_role: \['drifter', 'other'\]"),
        (characters, "'drifter' has a cf_role and dimensions"),
        (drifters(_FillValue="x"), "_FillValue is 'x', the values are int16"),
    ):
        with pytest.raises(DataError, match=message):
            BagStore.from_xarray(dataset, tmp_path / "a.zarr")
        assert not (tmp_path / "a.zarr").exists()


def test_attributes_that_cf_asks_for(tmp_path):
    """A feature type, long names, no variable with its dimension's name; older ones read."""
    bags, y = [np.full((2, 1), i / 9) for i in range(5)], np.arange(10.0).reshape(5, 2)
    store = BagStore.create(str(tmp_path / "s"), 1, target_names=["a", "b"], box=[(0, 1)]).append(
        bags, y
    )
    for array in ARRAYS:
        assert zarr.open(store.url, mode="r")[array.name].metadata.dimension_names == (
            array.dimensions
        )
    dataset = store.to_xarray()
    assert dataset.attrs["featureType"] == "profile"
    assert all("long_name" in variable.attrs for variable in dataset.variables.values())
    assert not set(dataset.dims) & set(dataset.variables)
    older = dataset.rename({"target_name": "target"}).drop_attrs()
    older = older.assign_attrs(dataset.attrs)
    older["row_size"].attrs.update(dataset["row_size"].attrs)
    for i, first in enumerate((dataset, older)):
        read = BagStore.from_xarray(first, str(tmp_path / f"{i}"))
        assert list(read.target_names) == ["a", "b"]
        np.testing.assert_array_equal(read.targets(), y)


@pytest.mark.parametrize("counts", [[4.0, np.nan], [2.5, 1.5], ["2", "2"]])
def test_counts_that_are_no_numbers_of_points_are_refused(counts, tmp_path):
    """A missing count was a number of nineteen digits."""
    dataset = xr.Dataset(
        {"v": ("obs", np.arange(4.0)), "n": ("traj", counts, {"sample_dimension": "obs"})}
    )
    with pytest.raises(DataError, match=r"the counts of 'obs' are .*; expected a whole number"):
        BagStore.from_xarray(dataset, tmp_path / "s.zarr")


def test_missing_values_are_named_by_their_variable(tmp_path):
    values = np.array([[1, 2], [3, -9], [5, 6], [7, 8]], "i2")
    counts = ("traj", [1, 3], {"sample_dimension": "obs"})
    variables = {name: ("obs", values[:, j], {"_FillValue": -9}) for j, name in enumerate("uv")}
    with pytest.raises(DataError, match="bag 1, row 0: coordinate 'v' is nan"):
        BagStore.from_xarray(xr.Dataset({**variables, "n": counts}), tmp_path / "s.zarr")
