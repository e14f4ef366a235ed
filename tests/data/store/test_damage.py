"""Damaged stores: one clear error each, that names array, chunk, object and bag."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import zarr

from bagbasis import BagStore, StoreError
from tests.data.store.six_bags import GOOD, contents, edit_attributes, two_bags

ARRAYS = ("points", "offsets", "ids", "targets", "responses/points", "responses/offsets")
LARGE = ("points", "responses/points")


def object_of(store, name, i=0):
    """Return the file of object i of an array."""
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


@pytest.mark.long
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


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LARGE)) for name in ARRAYS]
)
def test_a_flipped_bit_is_an_error_and_not_a_number(store, model, name):
    """Every bit of an object is under a checksum: a flip anywhere is noticed by its reader."""
    path = object_of(store, name)
    whole = path.read_bytes()
    for at in (0, *np.random.default_rng(0).integers(1, len(whole) - 1, 2), len(whole) - 1):
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


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "int") for name in ARRAYS), ("ids", "str"), ("targets", "str")]
)
def test_a_missing_object_is_named(request, name, kind):
    """A lost object is never read as fill values: not as NaN labels, not as id -1 or ''."""
    store = request.getfixturevalue("store" if kind == "int" else "named_store")
    object_of(store, name).unlink()
    fresh = BagStore.open(store.url)
    for read in (readers(fresh)[name], fresh.verify):
        with pytest.raises(StoreError, match=f"array {name!r}, chunk 0 .*{name}/c/0.* is missing"):
            read()


@pytest.mark.parametrize("name", ARRAYS)
def test_an_append_does_not_write_over_damage(store, name):
    """Were the last object written again without its rows, the loss could not be seen any more."""
    last = object_of(store, name, {"points": 3, "responses/points": 1}.get(name, 0))
    whole, before = last.read_bytes(), contents(store)
    for damage in (last.unlink, lambda: last.write_bytes(whole[: len(whole) // 2])):
        damage()
        with pytest.raises(StoreError, match=f"array {name!r}, chunk .*{name}/c/"):
            BagStore.open(store.url).append(two_bags(), GOOD)
        last.write_bytes(whole)
        assert contents(store) == before


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_an_append_reads_damage_before_the_last_chunk(tmp_path, name, share):
    """Rows that are read for the span of the coordinates, or written again, are named, too."""
    store = BagStore.create(tmp_path / "s.zarr", 2, chunk_points=8, response_dims=1)
    bags = [np.random.default_rng(i).random((9, 2)) for i in range(3)]
    more = {"responses": [bag[:, :1] for bag in bags]}
    store.append(bags, **more)
    path = object_of(store, name)
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 8
    path.write_bytes(content)
    message = rf"array '{name}', chunk \d \(object {name}/c/0/0\) is damaged"
    with pytest.raises(StoreError, match=message):
        BagStore.open(store.url).append(bags, **more)
    assert BagStore.open(store.url).n_bags == len(bags)


def test_a_chunk_that_a_network_damaged_is_read_again(store, monkeypatch):
    """An append reads the rest of an object anew, once; another failure is raised as it is."""
    whole, n_flips = zarr.Array.__setitem__, iter([True, False])

    def fail_once(array, where, rows):
        if next(n_flips, False):
            raise ValueError("Stored and computed checksum do not match")
        whole(array, where, rows)

    n_bags = store.n_bags
    monkeypatch.setattr(zarr.Array, "__setitem__", fail_once)
    store.append(two_bags(), GOOD)
    assert store.n_bags == n_bags + 2
    store.verify()


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array_is_named(store, name):
    """An array without metadata is one clear error, for readers, verify and writers."""
    (Path(store.url) / name / "zarr.json").unlink()
    fresh = BagStore.open(store.url)
    for use in (readers(fresh)[name], fresh.verify, lambda: fresh.append(two_bags(), GOOD)):
        with pytest.raises(StoreError, match=f"array {name!r} cannot be opened"):
            use()


def plant(store, name, row, value):
    """Write one row of an array, past all checks."""
    zarr.open_array(store.url, path=name, mode="r+")[row] = value


OFFSETS, RESPONSE_OFFSETS = "offsets", "responses/offsets"
PLANTED = [
    ("points", 40, [0.0, np.nan], "chunk 20, bag 3, row 4: a coordinate is not finite"),
    ("points", 40, [0.0, np.inf], "chunk 20, bag 3, row 4: a coordinate is not finite"),
    ("points", 40, [0.0, -np.inf], "chunk 20, bag 3, row 4: a coordinate is not finite"),
    ("responses/points", 44, [0.0, np.nan, 0.0], "chunk 22, bag 5, row 3: a coordinate is not"),
    ("responses/points", 40, [-np.inf, 0.0, 0.0], "chunk 20, bag 2, row 0: a coordinate is not"),
    (OFFSETS, 0, 1, "chunk 0: bag 0 is empty or out of order"),
    (OFFSETS, 3, 35, "chunk 0: bag 2 is empty or out of order"),
    (OFFSETS, 3, 34, "chunk 0: bag 2 is empty or out of order"),
    (OFFSETS, 2, -1, "chunk 0: bag 1 is empty or out of order"),
    (OFFSETS, 6, 99, " ends at 99, 100 points are committed"),
    (OFFSETS, 6, 101, " ends at 101, 100 points are committed"),
    (RESPONSE_OFFSETS, 0, 1, "chunk 0: bag 0 has a response that is out of order"),
    (RESPONSE_OFFSETS, 0, -1, "chunk 0: bag 0 has a response that is out of order"),
    (RESPONSE_OFFSETS, 2, 39, "chunk 0: bag 1 has a response that is out of order"),
    (RESPONSE_OFFSETS, 4, 50, "chunk 0: bag 4 has a response that is out of order"),
    (RESPONSE_OFFSETS, 6, 49, " ends at 49, 50 points are committed"),
    (RESPONSE_OFFSETS, 6, 51, " ends at 51, 50 points are committed"),
    ("ids", 4, 11, "chunk 0, bag 4: id 11 is that of bag 1 too"),
    ("targets", 2, [np.inf, 0.0], "chunk 0, bag 2: a target is infinite"),
]


@pytest.mark.parametrize(("name", "row", "value", "message"), PLANTED)
def test_planted_values_are_found(store, name, row, value, message):
    """`verify` names array, chunk, bag and row of a value that no append would have written."""
    plant(store, name, row, value)
    with pytest.raises(StoreError, match=f"array '{name}',? ?{message}"):
        store.verify()


@pytest.mark.parametrize(
    ("name", "row", "value", "n_good", "message"),
    [
        ("points", 40, [0.0, np.nan], 3, "'points', chunk 20, bag 3: .*not finite"),
        ("responses/points", 44, [0.0, np.inf, 0.0], 5, "/points', chunk 22, bag 5: .*not finite"),
        (OFFSETS, 3, 200, 2, "'offsets' is damaged between bags 0 and 6"),
        (OFFSETS, 3, 35, 2, "'offsets' is damaged between bags 0 and 6"),  # bag 2 is empty
        (OFFSETS, 3, 34, 2, "'offsets' is damaged between bags 0 and 6"),
        (RESPONSE_OFFSETS, 2, 39, 1, "'responses/offsets' is damaged between bags 0 and 6"),
        (RESPONSE_OFFSETS, 4, 50, 3, "'responses/offsets' is damaged between bags 0 and 6"),
    ],
)
def test_planted_values_are_not_read(store, name, row, value, n_good, message):
    """A range that holds one is refused, before any point is read with offsets that cannot be.

    The bags before it, and the other kind of bags, can be read.
    """
    plant(store, name, row, value)
    read, other = store.read, store.responses
    if name.startswith("responses"):
        read, other = other, read
    with pytest.raises(StoreError, match=message):
        read()
    assert len(read(0, n_good)) == n_good
    assert len(other()) == 6


def test_a_wrong_largest_id_is_found(store):
    """The committed largest id, by which new ids are told from old ones, is checked."""
    edit_attributes(store, lambda a: a.update(max_id=3))
    with pytest.raises(StoreError, match="'ids': the largest id is 15, 3 is committed"):
        BagStore.open(store.url).verify()


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
    ("name", "text", "shapes"),
    [
        ("points", {"n_dims": 3, "box": [[0, 1]] * 3, "ranges": {}}, "(2,), not (3,)"),
        ("targets", {"target_names": ["y"], "class_names": {}}, "(2,), not (1,)"),
        (
            "responses/points",
            {"response_dims": 1, "response_box": [[0, 1]], "ranges": {}},
            "(3,), not (1,)",
        ),
    ],
)
def test_arrays_of_another_width_are_found(store, name, text, shapes):
    """Rows of another shape than the attributes say are found, in any array."""
    edit_attributes(store, lambda attributes: attributes.update(text))
    message = re.escape(f"array {name!r} has rows of shape {shapes}")
    fresh = BagStore.open(store.url)
    for use in (readers(fresh)[name], fresh.verify):
        with pytest.raises(StoreError, match=message):
            use()


def test_verify_reports_its_progress(store):
    """The progress of verify goes up to the number of points, of bags and of responses."""
    seen = []
    store.verify(lambda done, total: seen.append((done, total)))
    points = [(32, 150), (64, 150), (96, 150), (100, 150)]
    assert seen == [*points, (132, 150), (150, 150)]
