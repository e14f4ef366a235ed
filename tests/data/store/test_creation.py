"""Making a store: what it refuses, and what it never replaces."""

from __future__ import annotations

import os

import numpy as np
import pytest
import zarr

from bagbasis import (
    Bags,
    BagStore,
    DataError,
    InterruptedStoreError,
    ParameterError,
    StoreError,
    WriterBusyError,
)
from bagbasis.data.storage.lock import writer_lock
from bagbasis.data.storage.urls import normalize_url
from bagbasis.data.store.schema import StoreArray

ONE = [np.zeros((1, 2))]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"target_names": ["y", "y"]}, ParameterError, "not unique"),
        ({"class_names": {"x": ["a"]}}, ParameterError, "'x': no such target"),
        ({"class_names": {"y": ["a", "a"]}}, ParameterError, "'y' are not unique"),
        ({"box": [(0, 1)]}, DataError, "box has 1 dimensions, the points have 2"),
        (
            {"response_box": [(0, 1)]},
            ParameterError,
            "response_box is given, but not response_dims",
        ),
        ({"response_dims": 2, "response_box": [(0, 1)]}, DataError, "response_box has 1 dimens"),
        (
            {"response_dims": 1, "response_box": [(1, 0)]},
            DataError,
            "response_box, dimension 0: .1.0, 0.0. is not a finite range",
        ),
    ],
)
def test_wrong_parameters_are_named(tmp_path, arguments, error, message):
    """A parameter out of its range is refused before anything is made."""
    with pytest.raises(error, match=message):
        BagStore.create(tmp_path / "s.zarr", **{"n_dims": 2, "target_names": ["y"], **arguments})
    assert not (tmp_path / "s.zarr").exists()


def test_numbers_of_numpy(tmp_path):
    """Numbers of dimensions may be numpy's, as those of shapes that were computed are."""
    store = BagStore.create(
        tmp_path / "s.zarr", np.int64(2), response_dims=np.int32(1), chunk_points=np.int64(8)
    )
    again = BagStore.open(store.append(ONE).url)
    assert (again.n_dims, again.response_dims, again.chunk_points) == (2, 1, 8)


def test_a_store_with_bags_is_only_replaced_on_request(url):
    """`create` refuses a store that holds bags, replaces it on request, and an empty one freely."""
    BagStore.create(url, 2)
    store = BagStore.create(url, 3).append([np.zeros((1, 3))])
    with pytest.raises(StoreError, match="exists already"):
        BagStore.create(url, 2)
    assert BagStore.open(url).n_bags == store.n_bags == 1
    store = BagStore.create(url, 2, overwrite=True)
    assert BagStore.open(url).n_bags == 0
    store.append(ONE)
    store.verify()


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_not_a_store_is_never_replaced(tmp_path, overwrite):
    """A folder, a file, a Zarr group or array of others survives `create`, even on request."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("years of work")
    (tmp_path / "almost").mkdir()
    (tmp_path / "almost" / "points").write_text("years of work")
    zarr.create_group(tmp_path / "group").create_array("x", data=np.arange(3))
    zarr.create_array(tmp_path / "array", data=np.arange(3))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for name in ("folder", "file", "almost", "group", "array"):
        with pytest.raises(StoreError, match=f"{name}: .*not a bag store"):
            BagStore.create(tmp_path / name, 2, overwrite=overwrite)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_an_empty_folder_is_a_place_for_a_store(tmp_path):
    """A folder made beforehand, say by a scheduler, can become a store."""
    (tmp_path / "s.zarr").mkdir()
    BagStore.create(tmp_path / "s.zarr", 2).append(ONE).verify()


def test_leftovers_make_way_and_a_live_writer_does_not(tmp_path):
    """What killed writers left is no content; who lives and has written no more holds the lock."""
    url = normalize_url(tmp_path / "s.zarr")
    with writer_lock(url, make=True):
        (tmp_path / "s.zarr" / f"zarr.{'0' * 32}.partial").touch()
        with pytest.raises(InterruptedStoreError):
            BagStore.open(url)
        with pytest.raises(WriterBusyError):
            BagStore.create(url, 2)
    BagStore.create(url, 2).append(ONE).verify()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_store_being_written_is_not_replaced(tmp_path, overwrite):
    """`create` cannot pull a store away from under a writer, even while it has no bags yet."""
    url = tmp_path / "s.zarr"
    store = BagStore.create(url, 2)
    with store.appending() as session:
        session.write(Bags.from_list(ONE))
        with pytest.raises(WriterBusyError):
            BagStore.create(url, 2, overwrite=overwrite)
    assert BagStore.open(url).n_bags == 1
    store.verify()


def test_data_are_on_the_disk_before_a_commit(tmp_path, monkeypatch):
    """A power failure leaves no store without its arrays, and no bags without their points."""
    url, synced, fsync, update = tmp_path / "s.zarr", set(), os.fsync, zarr.Group.update_attributes

    def recorded(fd):
        fsync(fd)
        synced.add(os.fstat(fd).st_ino)

    def checked(group, attributes):
        paths = [path for path in [url, *url.rglob("*")] if path.suffix != ".lock"]
        assert [path for path in paths if path.stat().st_ino not in synced] == []
        commits.append(attributes)
        return update(group, attributes)

    commits = []
    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(zarr.Group, "update_attributes", checked)
    BagStore.create(url, 2).append(ONE).append(ONE).remove([0]).compact()
    assert len(commits) == 6


def test_an_interrupted_create_is_named_and_made_again(url, monkeypatch):
    """A `create` that was killed leaves something that says so and that `create` replaces."""

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StoreArray, "create", killed)
        with pytest.raises(KeyboardInterrupt):
            BagStore.create(url, 2)
    with pytest.raises(StoreError, match="interrupted; make it again"):
        BagStore.open(url)
    BagStore.create(url, 2).append(ONE).verify()
