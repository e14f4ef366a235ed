"""Folders of files of which each is a bag: slides in HDF5, and files of FlowIO."""

from __future__ import annotations

import os
import signal
from multiprocessing import get_context

import fsspec
import h5py
import numpy as np
import pandas as pd
import pytest
from flowio import FlowData, create_fcs

from bagbasis import BagStore, DataError, ParameterError
from bagbasis.ingest import ingest_fcs, ingest_patches
from bagbasis.ingest.formats.patches import PatchIngest
from tests.traced import peak_of

RNG = np.random.default_rng(0)
SLIDES = {
    name: RNG.normal(size=(n, 6)).astype(np.float32) for name, n in {"c": 9, "a": 4, "b": 7}.items()
}
CHANNELS = ["FSC-A", "FITC-A", "PE-A", "Time"]
SPILL = np.array([[1.0, 0.2], [0.05, 1.0]])


def write_slides(folder):
    """Slides as CLAM writes them; the last with an axis of batches, as some extractors do."""
    for name, features in SLIDES.items():
        (folder / "h5_files").mkdir(parents=True, exist_ok=True)
        with h5py.File(folder / "h5_files" / f"{name}.h5", "w") as file:
            file["features"] = features[None] if name == "b" else features.astype(np.float16)
            file["coords"] = np.arange(2 * len(features)).reshape(-1, 2) * 256
    (folder / "notes.txt").write_text("none")
    return folder


@pytest.mark.long
def test_slides_and_the_table_of_their_patients(tmp_path):
    """In the order of their names; columns side by side; a slide without a row has no label."""
    table = tmp_path / "labels.csv"
    pd.DataFrame({"slide_id": ["c.svs", "a.svs"], "label": ["t", "n"], "stage": [3, 1]}).to_csv(
        table
    )
    store = ingest_patches(
        write_slides(tmp_path / "d"),
        tmp_path / "s.zarr",
        coordinates=["coords", "features"],
        target_table=table,
        targets=["label", "stage"],
    )
    assert store.ids().tolist() == ["a", "b", "c"]
    assert store.meta.class_names == {"label": ["n", "t"]}
    np.testing.assert_array_equal(store.targets(), [[0, 1], [np.nan, np.nan], [1, 3]])
    for name, bag in zip("abc", store.read(), strict=True):
        kind = np.float32 if name == "b" else np.float16
        np.testing.assert_array_equal(bag[:, 2:], SLIDES[name].astype(kind))
        np.testing.assert_array_equal(bag[:, :2].ravel(), np.arange(2 * len(bag)) * 256)


@pytest.mark.long
def test_slides_at_a_url(tmp_path):
    """Whatever fsspec knows."""
    fs = fsspec.filesystem("memory")
    fs.put(str(write_slides(tmp_path / "d")) + "/", "/slides/", recursive=True)
    store = ingest_patches("memory://slides", tmp_path / "s.zarr")
    assert (store.n_bags, store.n_dims) == (3, 6)
    assert (
        ingest_patches([f"memory://slides/h5_files/{n}.h5" for n in "ab"], tmp_path / "t").n_bags
        == 2
    )
    fs.rm("/slides", recursive=True)


def test_one_slide_is_in_memory_at_a_time(tmp_path):
    """The peak of reading is that of a slide, however many there are."""
    files = [str(tmp_path / f"{i}.h5") for i in range(12)]
    for url in files:
        with h5py.File(url, "w") as file:
            file["features"] = np.zeros((4096, 64), np.float32)  # 1 MiB
    ingest = PatchIngest(files, tmp_path / "s.zarr")

    def read():
        assert sum(len(points) for points in ingest.bags(files)) == 12 * 4096

    assert peak_of(read) < 3 * 2**20


def slide(folder, **arrays):
    with h5py.File(folder / "d.h5", "w") as file:
        for name, values in arrays.items():
            file[name] = values


NAN = np.where(np.arange(12).reshape(4, 3) == 7, np.nan, 0)


@pytest.mark.parametrize(
    ("arrays", "options", "error", "message"),
    [
        ({"feature": NAN}, {}, DataError, r"d\.h5: no array 'features' \(did you mean 'feature'"),
        ({"features": NAN}, {}, DataError, r"d\.h5: row 2, features\[1\] is nan, not a finite"),
        ({"features": np.zeros(3)}, {}, DataError, r"d\.h5: 'features' has shape \(3,\)"),
        ({"features": np.zeros((0, 3))}, {}, DataError, r"d\.h5: 'features' has shape \(0, 3\)"),
        ({"features": np.zeros((1, 5))}, {}, DataError, r"have \[5\] columns, not \[6\] as before"),
        (
            {"features": np.zeros((1, 6)), "coords": np.zeros((2, 2))},
            {"coordinates": ["features", "coords"]},
            DataError,
            r"d\.h5: arrays differ in their numbers of rows: .*'features': 1",
        ),
        (
            {"features": np.zeros((1, 6))},
            {"target_table": {"slide_id": ["a", "e"], "y": [1, 2]}},
            ParameterError,
            "target_table, row 1: slide_id 'e': no file has this name",
        ),
        (
            {"features": np.zeros((1, 6))},
            {"target_table": {"slide_id": ["a", "a.h5"], "y": [1, 2]}},
            ParameterError,
            "row 1: slide_id 'a.h5': it has a row already",
        ),
        (
            {"features": np.zeros((1, 6))},
            {"target_table": {"slide": ["a"], "y": [1]}},
            DataError,
            "no column 'slide_id' .*; there are",
        ),
        ({"features": np.zeros((1, 6))}, {"targets": ["y"]}, ParameterError, "no target_table"),
        ({"features": np.zeros((1, 6))}, {"target_table": "no.csv"}, DataError, "no files found"),
    ],
)
def test_slides_that_cannot_be_used(arrays, options, error, message, tmp_path):
    """The error names file, array and row; no store is left."""
    slide(write_slides(tmp_path / "d"), **arrays)
    with pytest.raises(error, match=message):
        ingest_patches(tmp_path / "d", tmp_path / "s.zarr", **options)
    assert not (tmp_path / "s.zarr").exists()


def test_folders_that_cannot_be_used(tmp_path):
    """Nothing in it, two files of one name, a file of another kind."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty.*: no files found; expected \.h5, \.hdf5"):
        ingest_patches(tmp_path / "empty", tmp_path / "s.zarr")
    write_slides(tmp_path / "d/x"), write_slides(tmp_path / "d/y")
    with pytest.raises(DataError, match=r"y/h5_files/a\.h5: has the same name as .*x/h5_files/a"):
        ingest_patches(tmp_path / "d", tmp_path / "s.zarr")
    (tmp_path / "broken.h5").write_bytes(b"none")
    with pytest.raises(DataError, match=r"broken\.h5: cannot be read as HDF5"):
        ingest_patches(tmp_path / "broken.h5", tmp_path / "s.zarr")


def write_sample(path, events, channels=CHANNELS, markers=("", "CD3", "CD4", ""), **text):
    with path.open("wb") as file:
        create_fcs(file, events.ravel().tolist(), list(channels), list(markers), text)
    return path


@pytest.fixture
def samples(tmp_path):
    """Two files of 50 events, with a matrix of spillover."""
    folder = tmp_path / "samples"
    folder.mkdir()
    matrix = ",".join(["2", *CHANNELS[1:3], *map(str, SPILL.ravel())])
    for name in "vu":
        events = RNG.uniform(0, 5000, (50, 4)).astype(np.float32)
        write_sample(folder / f"{name}.fcs", events, spillover=matrix)
    return folder


@pytest.mark.long
def test_events_of_a_sample(samples, tmp_path):
    """arcsinh of the stained channels, as FlowIO reads them; scatter and time stay linear."""
    table = pd.DataFrame({"file": ["v.fcs", "u.fcs"], "sick": [1.0, 0.0]})
    store = ingest_fcs(samples, tmp_path / "s.zarr", target_table=table, dtype="float64")
    assert store.ids().tolist() == ["u", "v"]
    assert store.targets()[:, 0].tolist() == [0.0, 1.0]
    events = FlowData(str(samples / "u.fcs")).as_array()
    np.testing.assert_allclose(store.read()[0], np.arcsinh(events[:, 1:3] / 150), rtol=1e-12)
    named = {"coordinates": ["CD4", "FSC-A", "FITC-A"], "dtype": "float64"}
    store = ingest_fcs(samples, tmp_path / "t.zarr", cofactor=5, **named)
    expected = [np.arcsinh(events[:, 2] / 5), events[:, 0], np.arcsinh(events[:, 1] / 5)]
    np.testing.assert_allclose(store.read()[0], np.column_stack(expected), rtol=1e-12)
    for cofactor in (None, {"CD4": 5}):
        store = ingest_fcs(samples, tmp_path / "t.zarr", cofactor=cofactor, overwrite=True, **named)
        expected[0] = np.arcsinh(events[:, 2] / 5) if cofactor else events[:, 2]
        expected[2] = events[:, 1]
        np.testing.assert_allclose(store.read()[0], np.column_stack(expected), rtol=1e-12)


def test_spillover_is_divided_out(samples, tmp_path):
    """Measured = true times matrix, by rows."""
    options = {"compensate": True, "cofactor": None, "dtype": "float64"}
    store = ingest_fcs(samples, tmp_path / "s.zarr", **options)
    events = FlowData(str(samples / "u.fcs")).as_array()
    np.testing.assert_allclose(store.read()[0] @ SPILL, events[:, 1:3], rtol=1e-10)


def test_channels_in_another_order(samples, tmp_path):
    """They are found by name in each file."""
    events = RNG.uniform(0, 9, (5, 4)).astype(np.float32)
    write_sample(samples / "w.fcs", events[:, ::-1], CHANNELS[::-1], ("", "CD4", "CD3", ""))
    store = ingest_fcs(samples, tmp_path / "s.zarr", cofactor=None)
    np.testing.assert_array_equal(store.read()[2], events[:, 1:3])


@pytest.mark.parametrize(
    ("channels", "options", "message"),
    [
        (CHANNELS, {"coordinates": ["CD8"]}, r"u\.fcs: no channel 'CD8'.*there are .*'CD4'"),
        (["FSC-A", "FITC-A", "APC-A", "Time"], {}, r"x\.fcs: no channel 'PE-A'"),
        (CHANNELS, {"compensate": True}, r"x\.fcs: no spillover matrix of its channels"),
        (CHANNELS, {}, r"x\.fcs: row 3, channel 'PE-A' is nan, not a finite number"),
    ],
)
def test_samples_that_cannot_be_used(channels, options, message, samples, tmp_path):
    """The error names file, channel and row; no store is left."""
    events = np.ones((5, 4), np.float32)
    events[3, 2] = np.nan
    write_sample(samples / "x.fcs", events, channels, ("", "CD3", "", ""))
    with pytest.raises(DataError, match=message):
        ingest_fcs(samples, tmp_path / "s.zarr", **options)
    assert not (tmp_path / "s.zarr").exists()


def test_a_broken_sample(samples, tmp_path):
    """Cut in its events, or no FCS at all; or only scatter in it."""
    whole = (samples / "u.fcs").read_bytes()
    for text in (whole[:-99], b"none"):
        (samples / "u.fcs").write_bytes(text)
        with pytest.raises(DataError, match=r"u\.fcs: cannot be read as FCS"):
            ingest_fcs(samples, tmp_path / "s.zarr")
    write_sample(samples / "u.fcs", np.ones((5, 2), np.float32), ["FSC-A", "Time"], ("", ""))
    with pytest.raises(DataError, match=r"u\.fcs: all channels are scatter, time or bookkeeping"):
        ingest_fcs(samples, tmp_path / "s.zarr")


def write_one(ingest, folder, name):
    """A slide, or a sample, with one number in all its points."""
    rows = np.full((3, 4), ord(name), np.float32)
    folder.mkdir(exist_ok=True)
    if ingest is ingest_fcs:
        return write_sample(folder / f"{name}.fcs", rows)
    with h5py.File(folder / f"{name}.h5", "w") as file:
        file["features"] = rows
    return folder / f"{name}.h5"


BOTH = pytest.mark.parametrize("ingest", [ingest_patches, ingest_fcs])


@pytest.mark.long
@BOTH
def test_files_that_come_later_are_appended(ingest, tmp_path):
    """By themselves, or with all of the folder; the store keeps its box, targets and classes."""
    folder, url = tmp_path / "d", tmp_path / "s.zarr"
    table = pd.DataFrame({"id": list("abcd"), "kind": list("xyxy"), "other": 0.0})
    options = {"target_id_column": "id", "dtype": "float64"}
    for name in "ca":
        write_one(ingest, folder, name)
    steps = []
    first = ingest(
        folder,
        url,
        target_table=table[table["id"].isin(["a", "c"])].assign(kind=["y", "x"]),
        targets=["kind"],
        progress=lambda *step: steps.append(step),
        **options,
    )
    assert steps == [(1, 2), (2, 2)]
    box, points = first.box, first.read()
    new = [write_one(ingest, folder, name) for name in "db"]
    steps.clear()
    options |= {"target_table": table, "progress": lambda *step: steps.append(step)}
    with pytest.raises(DataError, match="id 'a'"):
        ingest(folder, url, mode="append", **options)
    assert BagStore.open(url).n_bags == 2
    with pytest.raises(ParameterError, match="row 3: id 'd': no file has this name"):
        ingest(new[1], url, mode="append", **options)
    ingest(new[1], url, mode="append", **options | {"target_table": table[:3]})
    for _ in range(2):
        store = ingest(folder, url, mode="append", known_ids="skip", **options)
        assert store.ids().tolist() == ["a", "c", "b", "d"]
    assert steps[-2:] == [(1, 1), (1, 1)]
    assert store.meta.class_names == {"kind": ["x", "y"]}
    assert store.targets()[:, 0].tolist() == [1, 0, 1, 1]
    assert store.box == box
    for before, after in zip(points, store.read(), strict=False):
        np.testing.assert_array_equal(before, after)
    with pytest.raises(ParameterError, match="chunk_points is given with mode='append'"):
        ingest(folder, url, mode="append", chunk_points=9)
    with pytest.raises(ParameterError, match="known_ids is given, but mode is not 'append'"):
        ingest(folder, url, known_ids="skip")
    replaced = ingest(folder, url, mode="overwrite")
    assert (replaced.n_bags, replaced.target_names) == (4, ())


def ingest_and_be_killed(ingest, folder, url, options):
    """Ingest, and die without any cleaning up after half of the files."""

    def kill(n_read, n_files):
        if n_read > n_files / 2:
            os.kill(os.getpid(), signal.SIGKILL)

    ingest(folder, url, progress=kill, **options)


@pytest.mark.long
@BOTH
@pytest.mark.parametrize("mode", ["create", "append"])
def test_a_killed_ingest_commits_nothing_and_runs_again(ingest, mode, tmp_path):
    """The same call makes the store whole; what was there before stays as it was."""
    folder, url, options = tmp_path / "d", tmp_path / "s.zarr", {}
    if mode == "append":
        write_one(ingest, folder, "a")
        ingest(folder, url)
        options = {"mode": "append", "known_ids": "skip"}
    for name in "bcdef":
        write_one(ingest, folder, name)
    process = get_context("forkserver").Process(
        target=ingest_and_be_killed, args=(ingest, folder, url, options)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert BagStore.open(url).n_bags == (mode == "append")
    store = ingest(folder, url, **options)
    assert store.ids().tolist() == [*"abcdef"][mode == "create" :]
    for name, bag in zip(store.ids().tolist(), store.read(), strict=True):
        message = ord(name) if ingest is ingest_patches else np.arcsinh(np.float32(ord(name) / 150))
        np.testing.assert_allclose(bag, message, rtol=1e-6)
    store.verify()
