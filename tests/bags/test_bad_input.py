"""Refused input and damaged stores: one clear error each, and nothing half-written."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

from bagbasis.bags import Bags, BagStore, Responses
from bagbasis.bags.schema import ATTRIBUTE
from bagbasis.errors import DataError, StoreError
from tests.oracles.ragged import StoreModel, random_bags

SIZES = (5, 30, 1, 40, 16, 8)  # 100 points: an object is 32 rows, a chunk 2
RESPONSES = (40, 0, 1, 0, 0, 9)  # 50 points
ARRAYS = ("points", "offsets", "ids", "targets", "responses/points", "responses/offsets")


def six_bags():
    rng = np.random.default_rng(0)
    bags = random_bags(rng, SIZES, 2, np.float32)
    responses = [rng.random((m, 3), np.float32) if m else None for m in RESPONSES]
    return StoreModel(bags, [[float(i), np.nan] for i in range(6)], list(range(10, 16)), responses)


def make(url, model, ids=None):
    store = BagStore.create(
        url,
        2,
        ["y", "c"],
        response_dims=3,
        chunk_points=2,
        class_names={"c": ["red", "blue"]},
    )
    return store.append(model.bags, model.targets, ids or model.ids, responses=model.responses)


@pytest.fixture
def model():
    """What the store of these tests holds."""
    return six_bags()


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A local store of six bags over four objects of points."""
    return make(tmp_path_factory.mktemp("template") / "s.zarr", six_bags())


@pytest.fixture
def store(tmp_path, template):
    """A copy of the template, to be maltreated."""
    shutil.copytree(template.url, tmp_path / "s.zarr")
    return BagStore.open(tmp_path / "s.zarr")


# ---------------------------------------------------------------------- refused input


def two_bags(*, point=(0, 0, 0.0), n_dims=2):
    arrays = [np.zeros((1, n_dims)), np.zeros((3, n_dims))]
    bag, row, value = point
    arrays[bag][row, 0] = value
    return Bags.trusted(np.concatenate(arrays), np.array([0, 1, 4]))


GOOD = [[1.0, 0.0], [2.0, 1.0]]
REFUSED = {
    "nan": (two_bags(point=(1, 2, np.nan)), GOOD, None, "bag 1, row 2: coordinate 0 is nan"),
    "inf": (two_bags(point=(1, 0, np.inf)), GOOD, [1, 2], "bag with id 2, row 0: .* is inf"),
    "text id": (two_bags(point=(0, 0, -np.inf)), GOOD, [7, 8], "bag with id 7, row 0: .* -inf"),
    "overflow": (two_bags(point=(1, 1, 1e39)), GOOD, None, "bag 1, row 1: coordinate 0 is inf"),
    "nan list": ([[[0.0, np.nan]]], GOOD[:1], None, "bag 0, row 0: coordinate 1 is nan"),
    "nan and too few ids": (two_bags(point=(1, 0, np.nan)), GOOD, [1], "ids have shape"),
    "empty bag": ([np.zeros((1, 2)), np.zeros((0, 2))], GOOD, None, "bag 1 is empty"),
    "dimension": (two_bags(n_dims=3), GOOD, None, "dimension 3, .*s.zarr holds dimension 2"),
    "one array": (np.zeros((3, 2)), GOOD, None, "pass a list"),
    "no bags": ([], None, None, "no bags"),
    "repeated id": (two_bags(), GOOD, [3, 3], "duplicate bag id 3"),
    "committed id": (two_bags(), GOOD, [99, 12], "duplicate bag id 12"),
    "other ids": (two_bags(), GOOD, ["a", "b"], "has int64 ids, got str"),
    "float ids": (two_bags(), GOOD, [1.0, 2.0], "ids have dtype float64"),
    "mixed ids": (two_bags(), GOOD, np.array([1, "a"], object), "ids have dtype object"),
    "large id": (two_bags(), GOOD, np.array([1, 2**63], np.uint64), "id 9223372036854775808 is"),
    "few ids": (two_bags(), GOOD, [3], r"ids have shape \(1,\); expected .* \(2,\)"),
    "short targets": (two_bags(), GOOD[:1], None, r"target 'y' has shape \(1,\); expected \(2,\)"),
    "narrow targets": (two_bags(), [[1.0], [2.0]], None, r"shape \(2, 1\); expected \(2, 2\)"),
    "flat targets": (two_bags(), [1.0, 2.0], None, r"shape \(2,\); expected \(2, 2\)"),
    "missing target": (two_bags(), {"y": [1, 2]}, None, "missing target 'c'"),
    "unknown target": (two_bags(), {"y": [1, 2], "c": [0, 0], "z": [0, 0]}, None, "target 'z'"),
    "column shape": (two_bags(), {"y": [[1], [2]], "c": [0, 0]}, None, r"'y' has shape \(2, 1\)"),
    "infinite": (two_bags(), [[1, 0], [np.inf, 0]], None, "target 'y' is infinite for bag 1"),
    "text": (two_bags(), {"y": ["1", "2"], "c": [0, 0]}, None, "'y' has dtype <U1; expected num"),
    "complex": (two_bags(), {"y": [1j, 2j], "c": [0, 0]}, None, "'y' has dtype complex128"),
    "class": (two_bags(), {"y": [1, 2], "c": ["red", "pink"]}, None, "class 'pink' for bag 1"),
    "code": (two_bags(), [[1, 0], [2, 2]], None, "'c' is 2 for bag 1; classes are 0 to 1"),
    "fraction": (two_bags(), [[1, 0.5], [2, 1]], None, "'c' is 0.5 for bag 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_input_leaves_the_store_as_it_was(store, model, case):
    """Each wrong append is a DataError that names what is wrong; nothing of it is kept."""
    bags, targets, ids, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        store.append(bags, targets, ids)
    model.check(store)
    BagStore.open(store.url).verify()
    store.append(two_bags(), GOOD)
    assert store.n_bags == 8


THREE = np.zeros((2, 3))


def unchecked(offsets):
    """Responses that nothing has checked."""
    return Responses.trusted(THREE, np.array(offsets))


REFUSED_RESPONSES = {
    "nan": ([None, [[0, 0, 0], [0, np.nan, 0]]], None, "response of bag 1, row 1: .* 1 is nan"),
    "inf": ([None, [[0, 0, np.inf]]], [7, 8], "response of bag with id 8, row 0: .* 2 is inf"),
    "overflow": ([[[1e39, 0, 0]], None], None, "response of bag 0, row 0: .* 0 is inf"),
    "dimension": ([THREE, THREE[:, :2]], None, "response of bag 1 has dimension 2, expected 3"),
    "of an id": ([THREE[:, :1], None], [7, 8], "response of bag with id 7 has dimension 1"),
    "too few": ([THREE], None, "1 responses for 2 bags"),
    "too many": ([None] * 3, None, "3 responses for 2 bags"),
    "one array": (THREE, None, "expected responses, got one array of shape"),
    "bags": (Bags.from_list([THREE[:, :2]] * 2), None, "responses have dimension 2, expected 3"),
    "text": ([None, [["a", "b", "c"]]], None, "response of bag 1 has dtype <U1"),
    "number": ([3.0, None], None, r"response of bag 0 has shape \(\)"),
    "falling": (
        unchecked([0, 3, 2]),
        None,
        "response of bag 1 ends before",
    ),
    "ends": (
        unchecked([0, 1, 1]),
        None,
        "must run from 0 to n_points = 2",
    ),
}


@pytest.mark.parametrize("case", REFUSED_RESPONSES)
def test_refused_responses_leave_the_store_as_it_was(store, model, case):
    """Each wrong response is a DataError that names bag and row; its bag is not kept either."""
    responses, ids, message = REFUSED_RESPONSES[case]
    with pytest.raises(DataError, match=message):
        store.append(two_bags(), GOOD, ids, responses=responses)
    model.check(store)
    BagStore.open(store.url).verify()
    store.append(two_bags(), GOOD, ids, responses=[None, THREE])
    assert (store.n_bags, store.n_response_points) == (8, 52)


def test_responses_for_a_store_without_are_refused(tmp_path):
    """They are not dropped in silence, not even when all are None."""
    store = BagStore.create(tmp_path / "s.zarr", 2, ["y", "c"])
    for responses in ([None, THREE], [None, None]):
        with pytest.raises(DataError, match="holds no responses; make it with response_dims"):
            store.append(two_bags(), GOOD, responses=responses)
    assert BagStore.open(store.url).n_bags == 0
    for read in (store.responses, store.response_offsets):
        with pytest.raises(DataError, match="holds no responses"):
            read()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["x", "x"], "duplicate bag id 'x'"),
        (["x", "e"], "duplicate bag id 'e'"),
        ([1, 2], "has str ids, got int64"),
        (None, "has string ids; pass ids"),
        (["x", "\ud800"], "not valid Unicode"),
    ],
)
def test_refused_text_ids(tmp_path, model, ids, message):
    """Stores with text ids refuse duplicates, numbers and missing ids, by name."""
    model.ids = ["a", "b", "c", "d", "e", "f"]
    store = make(tmp_path / "s.zarr", model)
    with pytest.raises(DataError, match=message):
        BagStore.open(store.url).append(two_bags(), GOOD, ids)
    model.check(BagStore.open(store.url))
    store.verify()


def test_a_nan_among_text_ids_names_the_id(tmp_path, model):
    """The bag of a wrong point is named by the caller's own id."""
    model.ids = list("abcdef")
    with pytest.raises(DataError, match="bag with id 'y', row 1"):
        make(tmp_path / "s.zarr", model).append(
            two_bags(point=(1, 1, np.nan)), GOOD, np.array(["x", "y"])
        )


# ---------------------------------------------------------------------- not a store


def test_what_is_not_a_store_is_named(tmp_path, store):
    """A folder, a file, a Zarr group or array of others, Zarr format 2: one line each."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    zarr.create_group(tmp_path / "group")
    zarr.create_array(tmp_path / "array", data=np.arange(3))
    zarr.create_group(tmp_path / "old", zarr_format=2)
    for name, message in (
        ("folder", "not a bag store"),
        ("file", "not a bag store"),
        ("group", "a Zarr group, but not a bag store"),
        ("array", "not a bag store"),
        ("old", "not a bag store"),
        ("nothing", "not found"),
        ("s.zarr/points", "not a bag store"),
    ):
        with pytest.raises(StoreError, match=f"{name}: {message}"):
            BagStore.open(tmp_path / name)


def edit_attributes(store, change):
    path = Path(store.url) / "zarr.json"
    document = json.loads(path.read_text())
    change(document["attributes"][ATTRIBUTE])
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(format_version=3), "format 3; this version reads 1 and 2"),
        (lambda a: a.pop("format_version"), "format None; this version reads 1 and 2"),
        (lambda a: a.update(format_version=1), "damaged .*responses in format 1"),
        (lambda a: a.pop("response_dims"), "damaged bag store attributes .*response_dims"),
        (lambda a: a.update(response_dims=2), "damaged .*response_box has 3 dimensions"),
        (lambda a: a.update(n_response_points=1.5), "damaged .*n_response_points is 1.5"),
        (lambda a: a.pop("n_bags"), "damaged bag store attributes"),
        (lambda a: a.update(n_points=-1), "damaged bag store attributes .*n_points is -1"),
        (lambda a: a.update(n_bags="6"), "damaged bag store attributes .*n_bags is '6'"),
        (lambda a: a.update(box=[[0, 0]]), "damaged bag store attributes"),
        (lambda a: a.update(colour="red"), "damaged bag store attributes .*colour"),
        (lambda a: a.clear(), "interrupted; make it again"),
    ],
)
def test_attributes_of_another_format_or_damaged(store, change, message):
    """A store of a future format, or with attributes that make no sense, is not guessed at."""
    edit_attributes(store, change)
    with pytest.raises(StoreError, match=message):
        BagStore.open(store.url)
    with pytest.raises(StoreError, match=message):
        store.append(two_bags(), GOOD)


# ---------------------------------------------------------------------- damage


def object_of(store, name, i=0):
    """The file of object i of an array."""
    folder = Path(store.url) / name / "c" / str(i)
    return folder / "0" if name.endswith(("points", "targets")) else folder


def readers(store):
    """How each array is read."""
    return {
        "points": store.read,
        "offsets": store.offsets,
        "ids": store.ids,
        "targets": store.targets,
        "responses/points": store.responses,
        "responses/offsets": store.response_offsets,
    }


def test_a_truncated_object_is_named(store):
    """However much is missing at its end, reading names array, chunk, object and bag."""
    path = object_of(store, "points", 1)  # rows 32 to 63, of bags 1 (5:35), 2 (35:36), 3 (36:76)
    whole = path.read_bytes()
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        fresh = BagStore.open(store.url)
        assert len(fresh.read(0, 1)) == 1
        named = r"array 'points', chunk 16 \(object points/c/1/0\) is damaged.* first bag is 1"
        for read in (fresh.read, fresh.verify, lambda f=fresh: f.read(1, 2)):
            with pytest.raises(StoreError, match=named):
                read()
        with pytest.raises(StoreError, match=r"array 'points', chunk 18 .* first bag is 3"):
            fresh.read(3, 4)
    path.write_bytes(whole)
    fresh.verify()


@pytest.mark.parametrize("name", ARRAYS)
def test_a_flipped_bit_is_an_error_and_not_a_number(store, model, name):
    """Every bit of an object is under a checksum: a flip anywhere is noticed by its reader."""
    path = object_of(store, name)
    whole = path.read_bytes()
    for at in np.random.default_rng(0).integers(0, len(whole), 12):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(at) % 8
        path.write_bytes(damaged)
        fresh = BagStore.open(store.url)
        with pytest.raises(
            StoreError, match=f"array {name!r}, chunk .*object {name}/c/0.* damaged"
        ):
            readers(fresh)[name]()
        with pytest.raises(StoreError, match=f"array {name!r}, chunk"):
            fresh.verify()
    path.write_bytes(whole)
    model.check(BagStore.open(store.url))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("kind", ["int", "str"])
def test_a_missing_object_is_named(tmp_path, model, name, kind):
    """A lost object is never read as fill values: not as NaN labels, not as id -1 or ''."""
    model.ids = list("abcdef") if kind == "str" else model.ids
    store = make(tmp_path / "s.zarr", model)
    object_of(store, name).unlink()
    fresh = BagStore.open(store.url)
    for read in (readers(fresh)[name], fresh.verify):
        with pytest.raises(StoreError, match=f"array {name!r}, chunk 0 .*{name}/c/0.* is missing"):
            read()


@pytest.mark.parametrize("name", ARRAYS)
def test_an_append_does_not_write_over_damage(store, name):
    """Were the last object written again without its rows, the loss could not be seen any more."""
    last = object_of(store, name, {"points": 3, "responses/points": 1}.get(name, 0))
    whole = last.read_bytes()
    for damage in (last.unlink, lambda: last.write_bytes(whole[: len(whole) // 2])):
        damage()
        with pytest.raises(StoreError, match=f"array {name!r}, chunk .*{name}/c/"):
            BagStore.open(store.url).append(two_bags(), GOOD)
        last.write_bytes(whole)
        BagStore.open(store.url).verify()


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array_is_named(store, name):
    """An array without metadata is one clear error, for readers, verify and writers."""
    (Path(store.url) / name / "zarr.json").unlink()
    fresh = BagStore.open(store.url)
    for use in (readers(fresh)[name], fresh.verify, lambda: fresh.append(two_bags(), GOOD)):
        with pytest.raises(StoreError, match=f"array {name!r} can not be opened"):
            use()


def plant(store, name, row, value):
    """Write one row of an array, past all checks."""
    zarr.open_array(store.url, path=name, mode="r+")[row] = value


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_planted_nan_is_found(store, value):
    """verify names array, chunk, bag and row; reading the bag refuses it, others can be read."""
    plant(store, "points", 40, [0.0, value])
    with pytest.raises(StoreError, match=r"'points', chunk 20, bag 3, row 4: .*not finite"):
        store.verify()
    with pytest.raises(StoreError, match=r"'points', chunk 20, bag 3: .*not finite"):
        store.read()
    assert len(store.read(0, 3)) == 3


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (0, 1, "chunk 0: bag 0 is empty or out of order"),
        (3, 35, "chunk 0: bag 2 is empty or out of order"),
        (3, 34, "chunk 0: bag 2 is empty or out of order"),
        (2, -1, "chunk 0: bag 1 is empty or out of order"),
        (6, 99, "ends at 99, 100 points are committed"),
        (6, 101, "ends at 101, 100 points are committed"),
    ],
)
def test_damaged_offsets_are_found(store, row, value, message):
    """Offsets start at 0, grow, and end at the committed number of points."""
    plant(store, "offsets", row, value)
    with pytest.raises(StoreError, match=f"array 'offsets'.*{message}"):
        store.verify()


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_nan_planted_in_a_response_is_found(store, value):
    """As among the points of a bag, with the bag whose response it is."""
    plant(store, "responses/points", 44, [0.0, value, 0.0])  # of bag 5, rows 41:50
    with pytest.raises(StoreError, match=r"'responses/points', chunk 22, bag 5, row 3: .*not fin"):
        store.verify()
    with pytest.raises(StoreError, match=r"'responses/points', chunk 22, bag 5: .*not finite"):
        store.responses()
    assert len(store.responses(0, 5)) == 5
    plant(store, "responses/points", 40, [value, 0.0, 0.0])
    with pytest.raises(StoreError, match=r"'responses/points', chunk 20, bag 2, row 0"):
        store.verify()


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (0, 1, "chunk 0: bag 0 has a response that is out of order"),
        (0, -1, "chunk 0: bag 0 has a response that is out of order"),
        (2, 39, "chunk 0: bag 1 has a response that is out of order"),
        (4, 50, "chunk 0: bag 4 has a response that is out of order"),
        (6, 49, "ends at 49, 50 points are committed"),
        (6, 51, "ends at 51, 50 points are committed"),
    ],
)
def test_damaged_response_offsets_are_found(store, row, value, message):
    """Offsets of responses start at 0, never fall, and end at their committed number of points."""
    plant(store, "responses/offsets", row, value)
    with pytest.raises(StoreError, match=f"array 'responses/offsets'.*{message}"):
        store.verify()
    if row in (2, 4):
        with pytest.raises(StoreError, match="'responses/offsets' is damaged between bags 0 and 6"):
            store.responses()
        assert len(store.read()) == 6


@pytest.mark.parametrize("value", [200, 35, 34])  # beyond the end, bag 2 empty, before its start
def test_reading_over_damaged_offsets_is_refused(store, value):
    """Offsets that can not be are an error before any point is read with them."""
    plant(store, "offsets", 3, value)
    with pytest.raises(StoreError, match="array 'offsets' is damaged between bags 0 and 6"):
        store.read()
    assert len(store.read(0, 2)) == 2


@pytest.mark.parametrize(("ids", "twice"), [(None, 11), (list("abcdef"), "b")])
def test_planted_duplicate_ids_are_found(tmp_path, model, ids, twice):
    """Two bags with one id are named, both of them."""
    store = make(tmp_path / "s.zarr", model, ids)
    plant(store, "ids", 4, twice)
    with pytest.raises(StoreError, match=f"'ids', chunk 0, bag 4: id {twice!r} is that of bag 1"):
        store.verify()


def test_a_wrong_largest_id_is_found(store):
    """The committed largest id, by which new ids are told from old ones, is checked."""
    edit_attributes(store, lambda a: a.update(max_id=3))
    with pytest.raises(StoreError, match="'ids': the largest id is 15, 3 is committed"):
        BagStore.open(store.url).verify()


def test_a_planted_infinite_target_is_found(store):
    """verify names the bag of an infinite target."""
    plant(store, "targets", 2, [np.inf, 0.0])
    with pytest.raises(StoreError, match="'targets', chunk 0, bag 2: a target is infinite"):
        store.verify()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_shorter_than_committed_are_found(store, name):
    """An array that lost rows is found by its shape."""
    path = Path(store.url) / name / "zarr.json"
    document = json.loads(path.read_text())
    document["shape"][0] = 2
    path.write_text(json.dumps(document))
    fresh = BagStore.open(store.url)
    with pytest.raises(StoreError, match=f"array {name!r} has 2 rows, "):
        fresh.verify()
    for use in (readers(fresh)[name], lambda: fresh.append(two_bags(), GOOD)):
        with pytest.raises(StoreError, match=f"array {name!r}, chunk .* is beyond the 2 rows"):
            use()


@pytest.mark.parametrize(
    ("name", "said", "shapes"),
    [
        ("points", {"n_dims": 3, "box": [[0, 1]] * 3}, "(2,), not (3,)"),
        ("targets", {"target_names": ["y"], "class_names": {}}, "(2,), not (1,)"),
        ("responses/points", {"response_dims": 1, "response_box": [[0, 1]]}, "(3,), not (1,)"),
    ],
)
def test_arrays_of_another_width_are_found(store, name, said, shapes):
    """Rows of another shape than the attributes say are found, in any array."""
    edit_attributes(store, lambda attributes: attributes.update(said))
    message = re.escape(f"array {name!r} has rows of shape {shapes}")
    with pytest.raises(StoreError, match=message):
        BagStore.open(store.url).verify()


def test_verify_reports_its_progress(store):
    """The progress of verify goes up to the number of points, of bags and of responses."""
    seen = []
    store.verify(lambda done, total: seen.append((done, total)))
    points = [(32, 150), (64, 150), (96, 150), (100, 150)]
    assert seen == [*points, (132, 150), (150, 150)]
