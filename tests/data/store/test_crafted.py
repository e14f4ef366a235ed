"""Stores that nobody's append wrote: small files that would take all memory, or never end."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path

import google_crc32c
import numcodecs
import numpy as np
import pytest
import zarr

from bagbasis import (
    BagbasisError,
    BagStore,
    DoubleBasisRegressor,
    ExhaustedError,
    RandomFourierFeatures,
    StoreError,
    load_model,
)
from bagbasis.data.store.chunks import MAX_UNSEEN, read_rows
from tests.data.store.six_bags import GOOD, edit_attributes, two_bags

CHEAP = DoubleBasisRegressor("moments", RandomFourierFeatures(n_features=4), alpha=1.0)


def uses(url):
    """Return what may be done with a store that somebody else sends."""
    return [
        lambda: BagStore.open(url).verify(),
        lambda: BagStore.open(url).read(),
        lambda: repr(BagStore.open(url)),
        lambda: BagStore.open(url).ids(),
        lambda: BagStore.open(url).targets(),
        lambda: BagStore.open(url).append(two_bags(), GOOD),
        lambda: BagStore.open(url).remove([10]),
        lambda: BagStore.open(url).compact(),
        lambda: CHEAP.fit(BagStore.open(url), target="y"),
    ]


def refused(url, at_least=1):
    """Check that every use ends well or by an error of ours, and that some are refused."""
    messages = []
    for use in uses(url):
        try:
            use()
        except BagbasisError as error:
            messages.append(str(error))
    assert len(messages) >= at_least
    return messages


ATTRIBUTES = [
    {"n_bags": 2**63},
    {"n_bags": 10**30},
    {"n_bags": -1},
    {"n_bags": 6.5},
    {"n_bags": True},
    {"n_bags": 101},  # 100 points
    {"n_points": None},
    {"n_points": "100"},
    {"n_dims": 0},
    {"n_dims": 2.0},
    {"n_dims": 10**9},
    {"n_changes": 10**30},
    {"n_erased": 1},
    {"n_changes": 1, "n_erased": 2},
    {"box": None},
    {"box": {}},
    {"box": [["0", "1"]] * 2},
    {"box": [[0, 1]]},
    {"box": [[1, 0]] * 2},
    {"response_box": None},
    {"target_names": [1, 2]},
    {"target_names": "yc"},
    {"target_names": ["y", "y"]},
    {"target_names": ["y", ""]},
    {"target_names": None},
    {"class_names": ["red"]},
    {"class_names": {"c": "red"}},
    {"class_names": {"c": [1, 2]}},
    {"class_names": {"z": ["red"]}},
    {"class_names": {"c": ["red", "red"]}},
    {"class_names": None},
    {"source": "somewhere"},
    {"source": [1]},
    {"id_kind": 7},
    {"id_kind": "float64"},
    {"max_id": "15"},
    {"max_id": 2**63},
    {"max_id": -(2**63) - 1},
    {"merged": 3},
    {"fractions": 1},
    {"fractions": True, "whole_numbers": True},
    {"checksums": []},
    {"checksums": {"points": 1}},
    {"checksums": {"points": "zzzzzzzz"}},
]


@pytest.mark.parametrize("values", ATTRIBUTES, ids=lambda v: f"{v}"[:60])
def test_attributes_of_another_type_are_refused(store, values):
    """What no store has in its attributes is one error of ours, when it is opened."""
    edit_attributes(store, lambda a: a.update(values))
    with pytest.raises(StoreError, match="damaged bag store attributes"):
        BagStore.open(store.url)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_bags": 10**9, "n_points": 10**9}, "are committed"),
        ({"n_points": 10**12}, "are committed"),
        ({"id_kind": "str", "max_id": None}, "array 'ids' has dtype int64"),
        ({"fractions": True}, "array 'points' has dtype float32"),
        ({"whole_numbers": True}, "array 'points' has dtype float32"),
    ],
)
def test_attributes_that_do_not_fit_the_arrays_are_found(store, values, message):
    """Counts and kinds are compared with the arrays before anything is read."""
    edit_attributes(store, lambda a: a.update(values))
    assert any(message in output for output in refused(store.url, 2))
    with pytest.raises(StoreError, match=re.escape(message)):
        BagStore.open(store.url).verify()


def set_shape(store, name, rows):
    """Let the metadata of an array tell of rows that nobody wrote."""
    path = Path(store.url, name, "zarr.json")
    document = json.loads(path.read_text())
    document["shape"][0] = rows
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("n", [10**9, 2**62])
def test_counts_beyond_all_memory_are_refused_at_once(store, n):
    """Fill values of objects that are missing are no data: the first missing one is named."""
    edit_attributes(store, lambda a: a.update(n_bags=n, n_points=n, n_response_points=n))
    for name in ("points", "offsets", "ids", "targets", "responses/points", "responses/offsets"):
        set_shape(store, name, n + name.endswith("offsets"))
    assert all(re.search("is missing|damaged|no more memory", s) for s in refused(store.url, 5))


@pytest.mark.parametrize("n", [10**12])
def test_changes_beyond_all_memory_are_refused_at_once(store, n):
    """The log of changes, which is read as a whole, is looked for first."""
    store.remove([10])
    edit_attributes(store, lambda a: a.update(n_changes=n))
    set_shape(store, "changes", n)
    assert all("'changes'" in message for message in refused(store.url, 5))


@pytest.mark.parametrize(
    "change",
    [[6.0, 0, 1], [-1, 0, 1], [0.5, 0, 1], [0, 9, 1], [0, -2, 1], [np.nan, 0, 1], [0, 0.5, 1]],
)
def test_changes_of_no_bag_are_refused(store, change):
    """A change of a bag or of a target that there is not, is never applied."""
    store.remove([10])
    zarr.open_array(store.url, path="changes", mode="r+")[0] = change
    for use in (lambda s: s.targets(), lambda s: s.read(), lambda s: s.verify(), repr):
        with pytest.raises(StoreError, match="change 0 is none of a bag there is"):
            use(BagStore.open(store.url))


def test_no_memory_is_not_asked_for_twice(store, monkeypatch):
    """A MemoryError says nothing of a chunk: the read is not tried again chunk by chunk."""
    calls = []

    class Array:
        path, fill_value, chunks, shards = "points", np.nan, (2, 2), (32, 2)

        def __getitem__(self, item):
            calls.append(item)
            raise MemoryError

    with pytest.raises(ExhaustedError, match="no more memory"):
        read_rows(Array(), 0, 100)
    assert len(calls) == 1
    assert MAX_UNSEEN > 1


# ------------------------------------------------------------------ codecs


def blosc_bomb(n_bytes):
    """Return a small chunk that Blosc makes n_bytes of."""
    return numcodecs.Blosc("zstd", clevel=9).encode(bytes(n_bytes))


def zstd_bomb(n_bytes):
    """Return a small chunk that Zstandard makes n_bytes of."""
    return numcodecs.Zstd(9).encode(bytes(n_bytes))


def plant_chunk(store, name, chunk, codec=None):
    """Put a compressed chunk in the place of the first of an array, in an object of its own."""
    body = chunk + struct.pack("<I", google_crc32c.value(chunk))
    index = struct.pack("<QQ", 0, len(body)) + b"\xff" * 16 * 15
    index += struct.pack("<I", google_crc32c.value(index))
    path = Path(store.url, name, "c", *["0"] * (2 if name.endswith(("points", "targets")) else 1))
    path.write_bytes(body + index)
    if codec is not None:
        metadata = Path(store.url, name, "zarr.json")
        document = json.loads(metadata.read_text())
        document["codecs"][0]["configuration"]["codecs"][1] = codec
        metadata.write_text(json.dumps(document))


ZSTD = {"name": "zstd", "configuration": {"level": 0, "checksum": False}}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "bomb"),
    [
        ("points", blosc_bomb),
        ("points", zstd_bomb),
        ("targets", blosc_bomb),
        ("offsets", zstd_bomb),
        ("ids", blosc_bomb),
        ("ids", zstd_bomb),
    ],
)
def test_a_chunk_that_states_another_size_is_not_decompressed(store, name, bomb, traced):
    """A chunk of some KB that becomes 256 MiB is damage; nothing of that size is made."""
    plant_chunk(store, name, bomb(2**26), ZSTD if bomb is zstd_bomb else None)
    with traced(2**24), pytest.raises(StoreError, match="states 67108864 bytes; its chunk has"):
        BagStore.open(store.url).verify()


@pytest.mark.long
def test_a_text_chunk_that_states_too_much_is_not_decompressed(named_store, traced):
    """Texts have no size of their own; so much more than was compressed is not by bagbasis."""
    plant_chunk(named_store, "ids", blosc_bomb(2**26))
    with traced(2**24), pytest.raises(StoreError, match="states 67108864 bytes of text"):
        BagStore.open(named_store.url).ids()


def test_a_model_of_bombs_is_not_decompressed(tmp_path, store, traced):
    """Arrays of models are read through the same codecs."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(5, 2)) for _ in range(30)]
    url = tmp_path / "m.zarr"
    DoubleBasisRegressor("moments").fit(bags, rng.normal(size=30)).save(url)
    path = next(p for p in url.rglob("c") if p.is_dir())
    chunk = next(p for p in [path, *path.rglob("*")] if p.is_file())
    bomb = zstd_bomb(2**26)
    chunk.write_bytes(bomb + struct.pack("<I", google_crc32c.value(bomb)))
    with traced(2**24), pytest.raises(BagbasisError, match="states 67108864 bytes"):
        load_model(url)


@pytest.mark.parametrize("text", [b"", b"x", bytes(300), bytes(70_000), bytes(2**17)])
def test_frames_of_every_size_are_read(tmp_path, text):
    """What Zstandard writes of the size of its content is read in each of its forms."""
    values = np.frombuffer(text, np.uint8)
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("a", data=values if len(values) else np.zeros(1, np.uint8))
    from bagbasis.data.storage.zarr_reading import array_of, open_group

    read = array_of(open_group(tmp_path / "g.zarr"), "a")[:]
    assert np.array_equal(read, values if len(values) else [0])


def edit_array(store, name, change):
    """Change the metadata of an array."""
    path = Path(store.url, name, "zarr.json")
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("name", "inner"),
    [("points", 0), ("points", 2**40), ("points", 2**31), ("ids", 0), ("ids", 2**31)],
)
def test_chunks_of_an_impossible_size_are_refused(store, name, inner):
    """Chunks without rows, or of more bytes than any codec takes, are refused when opened."""

    def change(document):
        columns = document["shape"][1:]
        sharding = document["codecs"][0]["configuration"]
        sharding["chunk_shape"] = [inner, *columns]
        document["chunk_grid"]["configuration"]["chunk_shape"] = [16 * inner, *columns]

    edit_array(store, name, change)
    assert all(f"array '{name}' cannot be opened" in message for message in refused(store.url, 2))


def test_shards_within_shards_and_double_compression_are_refused(store):
    """Chains of codecs that multiply what a byte stands for are not written by bagbasis."""

    def nest(document):
        inner = json.loads(json.dumps(document["codecs"][0]))
        document["codecs"][0]["configuration"]["codecs"] = [inner]

    def twice(document):
        codecs = document["codecs"][0]["configuration"]["codecs"]
        codecs.insert(1, ZSTD)

    whole = Path(store.url, "points", "zarr.json").read_bytes()
    for change, message in ((nest, "shards within shards"), (twice, "compressed twice")):
        edit_array(store, "points", change)
        with pytest.raises(StoreError, match=message):
            BagStore.open(store.url).verify()
        Path(store.url, "points", "zarr.json").write_bytes(whole)


# ------------------------------------------------------------------ what is not a file


def pipe(path):
    """Put a pipe in the place of a file: whoever opens it waits for a writer."""
    path.unlink()
    os.mkfifo(path)


def endless(path):
    """Put a link to a device that never ends in the place of a file."""
    path.unlink()
    path.symlink_to("/dev/zero")


def loop(path):
    """Put a loop of links in the place of a file."""
    path.unlink()
    path.symlink_to(path)


def folder(path):
    """Put a folder in the place of a file."""
    path.unlink()
    path.mkdir()


PLACES = ["zarr.json", "points/zarr.json", "points/c/0/0", "ids/c/0", "targets/zarr.json"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "place"),
    [
        *((pipe, place) for place in PLACES),
        *((endless, place) for place in PLACES if place != "targets/zarr.json"),
        (loop, "zarr.json"),
        (loop, "ids/c/0"),
        (folder, "points/zarr.json"),
        (folder, "points/c/0/0"),
    ],
)
def test_what_is_no_file_is_refused(store, change, place):
    """A pipe, a device, a loop of links or a folder in the place of a file ends in one error."""
    change(Path(store.url, place))
    refused(store.url, 2)


def test_a_file_in_the_place_of_a_folder_is_refused(store):
    """An array whose folder of objects is a file has lost its objects."""
    (Path(store.url) / "points/c").rename(Path(store.url) / "away")
    (Path(store.url) / "points/c").write_text("")
    assert all("'points'" in message for message in refused(store.url, 2))


def test_links_to_files_are_followed(store):
    """Objects that lie elsewhere, as on systems with a large and a fast disk, are read."""
    path = Path(store.url, "points/c/0/0")
    path.rename(Path(store.url).parent / "elsewhere")
    path.symlink_to(Path(store.url).parent / "elsewhere")
    store.verify()
