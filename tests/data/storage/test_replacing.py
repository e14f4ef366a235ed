"""Overwriting replaces what it is asked to replace, and nothing that somebody else put there."""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager, suppress

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bagbasis import BagbasisError, BagStore, ModelError
from bagbasis.data.storage import folders, generations
from bagbasis.data.storage.files import names_in
from bagbasis.data.storage.generations import is_generation
from bagbasis.data.storage.zarr_stores import attributes_of, is_taken, read_group
from bagbasis.jobs.commands.fit import Config as FitConfig
from bagbasis.jobs.commands.model_place import ModelPlace
from bagbasis.models import write_predictions
from tests.models.predicting import BAGS, fitted


def write_store(url):
    BagStore.create(url, 2, overwrite=True).append(BAGS)


def write_model(url, overwrite=True):
    fitted("one target").save(url, overwrite=overwrite)


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


@pytest.mark.long
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
    """What another process wrote since this one looked stays, and nothing is left next to it."""
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


OPERATIONS = ("pipe_file", "put_file", "rm_file")  # all that change objects, one at a time


class Dead(BaseException):
    """After a process is killed, nothing that it would still do to objects is done."""


@contextmanager
def dying(monkeypatch, n=10**6):
    """Let the block die before its n-th change of an object; yields the list of changes."""
    done = []
    with monkeypatch.context() as patch:
        for name in OPERATIONS:
            change = getattr(MemoryFileSystem, name)

            def change(*args, name=name, change=change, **more):
                if len(done) >= n:
                    raise Dead
                done.append(name)
                return change(*args, **more)

            patch.setattr(MemoryFileSystem, name, change)
        with suppress(Dead):
            yield done


def save(url, kind, overwrite=True):
    fitted(kind).save(url, overwrite=overwrite)


def predict(url, kind, overwrite=True):
    write_predictions(fitted(kind), BagStore.open(DATA[0]), url, overwrite=overwrite)


def content(url):
    """Every array, by its name; None where nothing is."""
    if not is_taken(url):
        return None
    assert next(iter(attributes_of(url).values()))  # it is whole
    arrays = sorted(read_group(url).arrays())
    return {name: (str(array[:].tolist()), dict(array.attrs)) for name, array in arrays}


def generations_in(url):
    return [name for name in names_in(url) if is_generation(name)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("write", "value"),
    [(save, None), (save, "flat"), (save, "one target"), (predict, None), (predict, "one target")],
)
def test_a_kill_among_objects_leaves_the_old_or_the_new(monkeypatch, write, value):
    """Before any change of an object: one PUT puts the new in the place of the old, be that one
    of today or of an earlier version, and nothing is ever left that could not be written again."""
    url, objects = f"memory://{write.__name__}/{value}/place", MemoryFileSystem.store
    if value:
        write(url, "one target")
    if value == "flat":
        fs, root = fsspec.core.url_to_fs(url)
        within = f"{root}/{generations_in(url)[0]}"
        for path in fs.find(within):
            fs.mv(path, path.replace(within, root))
    before = {path: objects[path] for path in objects if "place" in path}
    old = content(url)
    with dying(monkeypatch) as changes:
        write(url, "two targets", value is not None)
    new, seen = content(url), []
    assert new != old
    for n in range(len(changes)):
        for path in [path for path in objects if "place" in path]:
            del objects[path]
        objects.update(before)
        with dying(monkeypatch, n):
            write(url, "two targets", value is not None)
        seen.append(content(url))
        if seen[-1] == old:
            write(url, "two targets", value is not None)
            assert content(url) == new
    n_old = seen.index(new) if new in seen else len(seen)
    assert n_old > 5
    assert seen == [old] * n_old + [new] * (len(seen) - n_old)
    monkeypatch.setattr(generations, "STALE_SECONDS", 0)  # as a day later
    write(url, "two targets")
    assert len(generations_in(url)) == 1
    assert {*names_in(url)} == {"zarr.json", *generations_in(url)}


@pytest.mark.parametrize("write", [save, predict])
def test_of_two_writers_among_objects(monkeypatch, write):
    """Without overwrite the second is refused; with it, the last one's is there, and alone."""
    url, point = f"memory://two/{write.__name__}/place", generations._replace

    def be_overtaken(*args):
        monkeypatch.setattr(generations, "_replace", point)
        write(url, "two targets")
        return point(*args)

    monkeypatch.setattr(generations, "_replace", be_overtaken)
    with pytest.raises(ModelError, match="somebody else wrote there"):
        write(url, "one target", overwrite=False)
    theirs = content(url)
    monkeypatch.setattr(generations, "_replace", be_overtaken)
    write(url, "one target")
    assert content(url) != theirs
    assert len(generations_in(url)) == 1


@pytest.mark.long
def test_parquet_cut_off_while_objects_are_deleted(monkeypatch):
    """Nothing can point to its files: what is half deleted can be replaced."""
    url = "memory://parquet/place"
    for write in (write_zarr, write_parquet):  # of either format
        write(url)
        n_objects = len(fsspec.filesystem("memory").find(url))
        for n in range(n_objects):
            with dying(monkeypatch, n):
                write_parquet(url)
            write(url)


def test_a_job_that_died_knows_its_model(monkeypatch, tmp_path):
    """Its own model needs no overwrite; that of another job does."""
    url, model = "memory://mark/place", fitted("one target")
    report = str(tmp_path / "fit.json")
    config = FitConfig(data_url=DATA[0], model_url=url, target="y", report=report)
    with dying(monkeypatch, 3):
        ModelPlace("fit", config, "run 1").save(model)
    assert not is_taken(url)
    for _ in range(2):
        ModelPlace("fit", config, "run 1").save(model)
    with pytest.raises(ModelError, match="exists already"):
        ModelPlace("fit", config, "run 2")
