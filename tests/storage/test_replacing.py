"""Overwriting replaces what it is asked to replace, and nothing that somebody else put there."""

from __future__ import annotations

import re
import shutil

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bagbasis import BagStore
from bagbasis.errors import BagbasisError, ModelError
from bagbasis.jobs.fit import Config as FitConfig
from bagbasis.jobs.model_place import ModelPlace
from bagbasis.regression import write_predictions
from bagbasis.regression.saving import is_whole
from bagbasis.storage import folders
from bagbasis.storage.zarr_stores import attributes_of
from tests.regression.predicting import BAGS, fitted


def write_store(url):
    BagStore.create(url, 2, overwrite=True).append(BAGS)


def write_model(url, overwrite=True):
    fitted("one target").save(url, overwrite)


def write_zarr(url, overwrite=True, format="zarr"):
    data = BagStore.open(DATA[0])
    write_predictions(fitted("one target"), data, url, format=format, overwrite=overwrite)


def write_parquet(url, overwrite=True):
    write_zarr(url, overwrite, "parquet")


WRITERS = [write_store, write_model, write_zarr, write_parquet]
DATA: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def _data(tmp_path_factory):
    DATA.append(BagStore.create(tmp_path_factory.mktemp("data") / "s.zarr", 2).append(BAGS).url)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("name", ["notes.txt", "ids/notes.txt", "mine/inner/zarr.json"])
def test_files_of_others_stay(tmp_path, write, name):
    """A folder that holds files of somebody else is refused, with their names."""
    place = tmp_path / "place"
    write(place)
    write(place)
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    (place / name).write_text("years")
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    with pytest.raises(BagbasisError, match=rf"place: .*({name}|exists and is not written pred)"):
        write(place)
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    (place / name).unlink()
    shutil.rmtree(place / "mine", ignore_errors=True)
    if write is not write_parquet:  # an empty folder is none of its files
        write(place)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("dangles", [False, True])
def test_a_link_is_not_written_over(tmp_path, write, dangles):
    """Neither the link nor what it leads to is replaced; the line says where it leads."""
    target, link = tmp_path / "v1", tmp_path / "current"
    if not dangles:
        write(target)
    link.symlink_to("v1")
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(BagbasisError, match=re.escape(f"{link}: a symbolic link to v1; give")):
        write(link)
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("write", WRITERS[1:])
def test_of_two_writers_without_overwrite_one_is_refused(tmp_path, monkeypatch, write):
    """What another process wrote since this one looked stays, and nothing is left beside it."""
    place, sync = tmp_path / "place", folders.sync_folder

    def be_overtaken(fresh):
        monkeypatch.setattr(folders, "sync_folder", sync)
        write(place, overwrite=False)
        sync(fresh)

    monkeypatch.setattr(folders, "sync_folder", be_overtaken)
    with pytest.raises(ModelError, match="somebody else wrote there"):
        write(place, overwrite=False)
    assert list(tmp_path.iterdir()) == [place]
    with pytest.raises(ModelError, match="exists already"):
        write(place, overwrite=False)


@pytest.mark.parametrize("write", WRITERS[1:])
def test_cut_off_while_objects_are_deleted(monkeypatch, write):
    """Among objects, too, what is half deleted can be replaced: what says its kind goes last, but
    it does not say that all is there."""
    url = f"memory://{write.__name__}/place"
    write(url)
    n_objects = len(fsspec.filesystem("memory").find(url))
    delete = MemoryFileSystem.rm_file
    for n in range(n_objects):
        deleted = []

        def die(self, path, n=n, deleted=deleted):
            if len(deleted) == n:
                raise KeyboardInterrupt
            deleted.append(path)
            delete(self, path)

        with monkeypatch.context() as patch:
            patch.setattr(MemoryFileSystem, "rm_file", die)
            with pytest.raises(KeyboardInterrupt):
                write(url)
        if write is not write_parquet:
            assert not any(attributes_of(url).values())
        write(url)


def test_a_job_cut_off_while_objects_are_deleted_can_go_on(monkeypatch, tmp_path):
    """What it leaves says that it is its own, so that it needs no overwrite to run again."""
    url, model = "memory://mark/place", fitted("one target")
    report = str(tmp_path / "fit.json")
    config = FitConfig(data_url=DATA[0], model_url=url, target="y", report=report)
    write_model(url)

    def die(self, path):
        raise KeyboardInterrupt

    place = ModelPlace("fit", config.model_copy(update={"overwrite": True}), "run 1")
    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "rm_file", die)
        with pytest.raises(KeyboardInterrupt):
            place.save(model)
    assert not is_whole(url)
    again = ModelPlace("fit", config, "run 1")
    again.save(model)
    assert is_whole(url)
    monkeypatch.setattr(MemoryFileSystem, "rm_file", die)
    again.save(model)  # nothing to be done: it was saved, and a kill here would lose it
    with pytest.raises(ModelError, match="exists already"):
        ModelPlace("fit", config, "run 2")
