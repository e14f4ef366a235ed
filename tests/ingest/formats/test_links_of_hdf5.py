"""HDF5 files whose arrays lie elsewhere are refused by name: another file is never read."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from bagbasis import DataError
from bagbasis.ingest import ingest_catalogue, ingest_patches

VALUES = np.arange(8.0).reshape(4, 2)


@pytest.fixture
def folder(tmp_path):
    """A folder for one file, next to a file that it may lead to."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = VALUES
    VALUES.tofile(tmp_path / "raw.bin")
    (tmp_path / "files").mkdir()
    return tmp_path


def virtual(file, folder, source):
    layout = h5py.VirtualLayout(VALUES.shape, VALUES.dtype)
    layout[:] = h5py.VirtualSource(source, "x", VALUES.shape)
    file.create_virtual_dataset("x", layout)


def external(file, folder):
    raw = [(str(folder / "raw.bin"), 0, VALUES.nbytes)]
    file.create_dataset("x", VALUES.shape, VALUES.dtype, external=raw)


def through_a_link(file, folder):
    file["all"] = h5py.ExternalLink("../other.h5", "/")
    file["x"] = h5py.SoftLink("all/x")


def circle(file, folder):
    file["x"], file["y"] = h5py.SoftLink("/y"), h5py.SoftLink("/x")


LEADS = {
    "link": (
        lambda file, folder: file.__setitem__(
            "x", h5py.ExternalLink(str(folder / "other.h5"), "/x")
        ),
        r"a link to '/x' in the file '.*other\.h5'; copy the values",
    ),
    "link to no file": (
        lambda file, folder: file.__setitem__("x", h5py.ExternalLink("gone.h5", "/x")),
        r"a link to '/x' in the file 'gone\.h5'; copy the values",
    ),
    "soft link through a link": (through_a_link, r"a link to '/' in the file '\.\./other\.h5'"),
    "soft link to nothing": (
        lambda file, folder: file.__setitem__("x", h5py.SoftLink("/a/b")),
        "a soft link to '/a/b', where nothing is; link it to a data set of this file",
    ),
    "circle": (circle, "soft links lead in a circle"),
    "external storage": (external, r"the values lie in other files \(.*raw\.bin"),
    "virtual": (
        lambda file, folder: virtual(file, folder, str(folder / "other.h5")),
        r"the values lie in other files \(.*other\.h5",
    ),
    "virtual of no file": (
        lambda file, folder: virtual(file, folder, "gone.h5"),
        r"the values lie in other files \(.*gone\.h5",
    ),
}


CALLS = {
    "patches": (ingest_patches, {}),
    "catalogue": (ingest_catalogue, {"id_column": "id"}),
}


@pytest.mark.parametrize("ingest", CALLS)
@pytest.mark.parametrize("kind", LEADS)
def test_arrays_that_lie_elsewhere(folder, kind, ingest):
    """The array, and the file that it leads to, are named; no store is left."""
    make, message = LEADS[kind]
    with h5py.File(folder / "files" / "a.h5", "w") as file:
        make(file, folder)
        file["id"] = np.array([0, 0, 1, 1])
    call, options = CALLS[ingest]
    with pytest.raises(DataError, match=rf"a\.h5: 'x': .*{message}"):
        call(folder / "files" / "a.h5", folder / "s.zarr", coordinates=["x"], **options)
    assert not (folder / "s.zarr").exists()


@pytest.mark.parametrize("target", ["/g/values", "g/values", "again"])
def test_links_within_a_file_are_followed(folder, target):
    """Soft links to a data set of the file itself; a dead link to another name is no fault."""
    with h5py.File(folder / "files" / "a.h5", "w") as file:
        file.create_group("g")["values"] = VALUES
        file["again"] = h5py.SoftLink("/g/values")
        file["x"] = h5py.SoftLink(target)
        file["unused"] = h5py.ExternalLink("gone.h5", "/x")
        file["id"] = np.array([0, 0, 1, 1])
    store = ingest_patches(folder / "files", folder / "p.zarr", coordinates=["x"])
    np.testing.assert_array_equal(store.read()[0], VALUES)
    where = folder / "files" / "a.h5"
    store = ingest_catalogue(where, folder / "c.zarr", coordinates=["x"], id_column="id")
    np.testing.assert_array_equal(store.read().points, VALUES)


NEVER_WRITTEN = {
    "chunks": {"shape": (10**12,), "chunks": (1000,)},
    "compressed": {"shape": (10**9,), "chunks": (10**8,), "compression": "gzip"},
    "one block": {"shape": (10**12,)},
    "with a fill value": {"shape": (10**12,), "chunks": (1000,), "fillvalue": -1.0},
}


@pytest.mark.parametrize("kind", NEVER_WRITTEN)
def test_rows_that_were_never_written(tmp_path, kind):
    """A file of a KB says that it has 10^12 rows: it is refused before they are read."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name in ("bag", "x"):
            file.create_dataset(name, dtype="f8", **NEVER_WRITTEN[kind])
    with pytest.raises(DataError, match=r"a\.h5: '\w+': .* chunks were never written"):
        ingest_catalogue(path, tmp_path / "b.zarr", id_column="bag", coordinates=["x"])


def test_a_part_that_was_never_written(tmp_path):
    """Zeros that nobody wrote are refused; columns that are not read do not matter."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["bag"], file["y"] = np.repeat([0, 1], 5), np.arange(10.0)
        file.create_dataset("x", (10,), "f8", chunks=(5,))[:5] = 2.0
    names = {"id_column": "bag", "overwrite": True}
    with pytest.raises(DataError, match="'x': 1 of 2 chunks were never written"):
        ingest_catalogue(path, tmp_path / "b.zarr", coordinates=["x"], **names)
    assert len(ingest_catalogue(path, tmp_path / "b.zarr", coordinates=["y"], **names)) == 2
