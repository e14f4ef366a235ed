"""Hidden files and those of operating systems: one rule for every folder that is read."""

from __future__ import annotations

import shutil

import h5py
import numpy as np
import pandas as pd
import pytest
from flowio import create_fcs
from PIL import Image

from bagbasis import DataError
from bagbasis.data.storage.hidden import is_hidden, visible_files
from bagbasis.ingest import ingest_fcs, ingest_images, ingest_patches, ingest_tables

FOREIGN = [
    ".ipynb_checkpoints/{}",
    "a/.ipynb_checkpoints/{}",
    "._{}",
    "a/._{}",
    "__MACOSX/{}",
    "__MACOSX/a/._{}",
    ".Trash/{}",
    "@eaDir/{}",
    "$RECYCLE.BIN/{}",
    "System Volume Information/{}",
]


def image(path):
    Image.fromarray(np.full((4, 4), 60, np.uint8)).save(path)


def slide(path):
    with h5py.File(path, "w") as file:
        file["features"] = np.ones((3, 2), np.float32)


def sample(path):
    with path.open("wb") as file:
        create_fcs(file, [1.0, 2.0, 3.0, 4.0], ["FL1-A", "FL2-A"])


def table(path):
    pd.DataFrame({"id": [path.stem] * 2, "x": [1.0, 2.0]}).to_parquet(path)


READERS = {
    "images": (image, "png", ingest_images, {}),
    "slides": (slide, "h5", ingest_patches, {}),
    "samples": (sample, "fcs", ingest_fcs, {}),
    "tables": (table, "parquet", ingest_tables, {"id_column": "id", "coordinates": ["x"]}),
}


@pytest.mark.long
@pytest.mark.parametrize("is_readable", [True, False])
@pytest.mark.parametrize("reader", READERS)
def test_a_folder(reader, is_readable, tmp_path):
    """They are no bags and no classes, readable or not; nor is a folder's desktop.ini."""
    write, ending, ingest, options = READERS[reader]
    for name in (
        f"a/1.{ending}",
        f"b/2.{ending}",
        *(item.format(f"1.{ending}") for item in FOREIGN),
    ):
        path = tmp_path / "d" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_readable or (name[1:2] == "/" and name.count("/") == 1 and "._" not in name):
            write(path)
        else:
            path.write_bytes(b"\0\5\26\7Mac OS X")
    for name in ("Thumbs.db", "a/.DS_Store", "desktop.ini"):
        (tmp_path / "d" / name).write_bytes(b"none")
    store = ingest(tmp_path / "d", tmp_path / "s.zarr", **options)
    assert [str(item)[-5:].split(".")[0][-1] for item in store.ids()] == ["1", "2"]
    assert store.n_bags == 2
    if reader == "images":
        assert store.meta.class_names == {"class": ["a", "b"]}
    else:
        result = ingest(str(tmp_path / "d" / "**" / f"*.{ending}"), tmp_path / "t.zarr", **options)
        assert result.ids().tolist() == store.ids().tolist()


@pytest.mark.parametrize("reader", READERS)
def test_a_hidden_folder_that_is_named_is_read(reader, tmp_path):
    """And a file that is named; a folder of hidden files alone has none."""
    write, ending, ingest, options = READERS[reader]
    folder = tmp_path / ".cache" / "d"
    folder.mkdir(parents=True)
    write(folder / f"1.{ending}")
    assert ingest(folder, tmp_path / "s.zarr", **options).n_bags == 1
    if reader != "images":
        shutil.move(folder / f"1.{ending}", folder / f".1.{ending}")
        assert ingest(folder / f".1.{ending}", tmp_path / "t.zarr", **options).n_bags == 1
        with pytest.raises(DataError, match=r"no .*files found"):
            ingest(folder, tmp_path / "u.zarr", **options)


def test_the_rule():
    """Names of cameras that begin with an underscore are the user's."""
    assert not any(map(is_hidden, ["_DSC0001.jpg", "a.b", "thumbs.png", "__init__.h5", "a~"]))
    assert all(map(is_hidden, [".x", "._x", "THUMBS.DB", "__macosx", "lost+found"]))
    files = ["/.a/b/.c/x", "/.a/b/y", "/.a/b/_z"]
    assert visible_files(files, "/.a/b") == ["/.a/b/_z", "/.a/b/y"]
    assert visible_files(files, "/.a/b/") == ["/.a/b/_z", "/.a/b/y"]
    assert visible_files(files, "/.a/*/*") == ["/.a/b/_z", "/.a/b/y"]
    assert visible_files(files, "/.a/*/.c/*") == [*files[:1], "/.a/b/_z", "/.a/b/y"]
