"""Stores declare the Zarr convention `ragged`; another program reads bags by it alone."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import zarr

from bagbasis import BagStore
from bagbasis.data.bags.packed_points import points_dtype
from bagbasis.data.store.exchange import convention
from tests.data.store.test_xarray_datasets import N, make

DOCS = Path(__file__).parents[3] / "docs"
SCHEMA = json.loads((DOCS / "ragged-convention.schema.json").read_text())
OLD = Path(__file__).parents[2] / "kept" / "written-by-0.1.0.zip"


def document(url):
    """The metadata of a store's group, as it is on the disk."""
    return json.loads((Path(url) / "zarr.json").read_text())


def check(actual):
    """Raise ValidationError for what is not of the convention."""
    validator = jsonschema.Draft202012Validator
    validator.check_schema(SCHEMA)
    validator(SCHEMA).validate(actual)


def read_by_convention(url):
    """Bags by name of their array, as a program reads them that knows the page and nothing else."""
    group = zarr.open_group(url, mode="r")
    by_name = {}
    for entry in group.attrs["ragged"]["arrays"]:
        edges = group[entry["offsets"]][: entry["size"] + 1]
        stored = group[entry["values"]][: edges[-1]]
        values = stored
        if "scale_factor" in entry:
            values = np.array(entry["add_offset"]) + np.array(entry["scale_factor"]) * stored
            values[stored == entry["missing"]] = np.nan
        by_name[entry["values"]] = np.split(values, edges[1:-1])
        for name in entry.get("along", ()):
            assert len(group[name][: entry["size"]]) == entry["size"]
    return by_name


@pytest.mark.long
@pytest.mark.parametrize(
    ("dtype", "responses"),
    [
        *((dtype, True) for dtype in ("float32", "float64", "uint16")),
        *((dtype, False) for dtype in ("float32", "float64", "uint16", "uint8")),
    ],
)
def test_bags_by_the_convention(tmp_path, dtype, responses):
    """Each kind of point; after an append, too, which does not touch rows behind the counts."""
    store = make(tmp_path / "s.zarr", dtype, responses=responses)
    for name in ("new", "newer"):
        check(document(store.url))
        result = read_by_convention(store.url)
        assert set(result) == {"points", *(["responses/points"] if responses else [])}
        bags = store.read()
        assert len(result["points"]) == store.n_bags
        for ours, theirs in zip(bags, result["points"], strict=True):
            np.testing.assert_array_equal(ours, theirs.astype(points_dtype(dtype)))
        if responses:
            assert len(result["responses/points"]) == store.n_bags
        missing = [None] if responses else None
        store = store.append([np.ones((2, 3))], ids=[name], responses=missing)


@pytest.mark.long
def test_what_an_interrupted_append_left_is_not_data(tmp_path):
    """Rows behind the counts belong to nobody."""
    store = make(tmp_path / "s.zarr", responses=False)
    before = document(store.url)
    store.append([np.ones((2, 3))], None, ids=["new"])
    (tmp_path / "s.zarr" / "zarr.json").write_text(json.dumps(before))
    assert len(read_by_convention(store.url)["points"]) == store.n_bags - 1


def test_other_conventions_stay(tmp_path):
    """What others declare for the group is theirs, and survives an append."""
    store = make(tmp_path / "s.zarr", responses=False)
    theirs = {"uuid": "f17cb550-5864-4468-aeb7-f3180cfb622f", "name": "proj:"}
    group = zarr.open_group(store.url, mode="r+")
    group.update_attributes(
        {"zarr_conventions": [*group.attrs["zarr_conventions"], theirs], "proj:code": "EPSG:4326"}
    )
    store.append([np.ones((2, 3))], None, ids=["new"])
    check(document(store.url))
    assert theirs in document(store.url)["attributes"]["zarr_conventions"]
    assert len(read_by_convention(store.url)["points"]) == store.n_bags == N + 1


@pytest.mark.long
def test_stores_of_before_stay_as_they_are(tmp_path):
    """They declare nothing, are read and appended to; the attribute that is ours is unchanged."""
    shutil.unpack_archive(OLD, tmp_path)
    url = tmp_path / "numbers.zarr"
    assert set(document(url)["attributes"]) == {"bagbasis"}
    old = BagStore.open(url)
    old.append([np.zeros((1, old.n_dims))], ids=["new"]).verify()
    assert set(document(url)["attributes"]) == {"bagbasis"}
    new = make(tmp_path / "s.zarr")
    assert document(new.url)["attributes"]["bagbasis"] == new.meta.to_attributes()["bagbasis"]


@pytest.mark.long
@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a.pop("zarr_conventions"),
        lambda a: a["zarr_conventions"][0].pop("uuid"),
        lambda a: a["zarr_conventions"][0].update(version="1"),
        lambda a: a.pop("ragged"),
        lambda a: a["ragged"].update(version=2),
        lambda a: a["ragged"].update(arrays=[]),
        lambda a: a["ragged"]["arrays"][0].pop("offsets"),
        lambda a: a["ragged"]["arrays"][0].update(size=-1),
        lambda a: a["ragged"]["arrays"][0].update(values="/points"),
        lambda a: a["ragged"]["arrays"][0].update(add_offset=[1.0]),
    ],
)
def test_the_schema_refuses(tmp_path, spoil):
    """What a reader cannot use."""
    result = document(make(tmp_path / "s.zarr", responses=False).url)
    check(result)
    spoiled = copy.deepcopy(result)
    spoil(spoiled["attributes"])
    with pytest.raises(jsonschema.ValidationError):
        check(spoiled)


def test_the_page_shows_what_is_written():
    """Its identifier, its example, and every property of the schema."""
    page = (DOCS / "ragged-convention.md").read_text()
    assert convention.CONVENTION["uuid"] in page
    example = json.loads(re.search(r"```json\n(.+?)```", page, re.S)[1])
    check({"zarr_format": 3, "node_type": "group", "attributes": example})
    for name in SCHEMA["$defs"]["ragged_array"]["properties"]:
        assert f"`{name}`" in page
