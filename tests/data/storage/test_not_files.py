"""What is not a file, where a command reads one: refused by name, before anybody waits for it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from bagbasis import BagbasisError, BagStore, ConfigError, DataError, StoreError, load_model
from bagbasis.data.storage.files import read_bytes, read_json, reading
from bagbasis.ingest import ingest_anndata, ingest_catalogue, ingest_npz, ingest_tables
from bagbasis.jobs.configs.config import read_yaml
from bagbasis.operations import Registry


def pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def listening(path):
    with socket.socket(socket.AF_UNIX) as end:
        here = Path.cwd()
        os.chdir(path.parent)  # the address of a socket has a hundred characters
        try:
            end.bind(path.name)
        finally:
            os.chdir(here)


def read_with(path):
    with reading(path):
        raise AssertionError("it was opened")


def table(path):
    ingest_tables(path, path.with_name("bags.zarr"), id_column="bag", coordinates=["x"])


def catalogue(path):
    ingest_catalogue(path, path.with_name("bags.zarr"), id_column="bag", coordinates=["x"])


READERS = {
    "config.yaml": (read_yaml, ConfigError),
    "file": (read_with, StoreError),
    "bytes": (read_bytes, StoreError),
    "values.json": (lambda path: read_json(path, dict), StoreError),
    "t.csv": (table, DataError),
    "t.csv.gz": (table, DataError),
    "t.parquet": (table, DataError),
    "t.jsonl": (table, DataError),
    "b.npz": (lambda path: ingest_npz(path, path.with_name("bags.zarr")), DataError),
    "c.h5ad": (
        lambda path: ingest_anndata(path, path.with_name("b.zarr"), id_column="b", coordinates="X"),
        DataError,
    ),
    "c.h5": (catalogue, DataError),
    "c.fits": (catalogue, DataError),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("make", [pipe, endless, listening])
def test_no_file_is_refused(tmp_path, make, name):
    """A pipe, a device and a socket are named; nobody waits for them or reads without an end."""
    read, kind = READERS[name]
    make(tmp_path / name)
    with pytest.raises(kind, match=rf"{name}: not a regular file but a pipe, a device or a socket"):
        read(tmp_path / name)


@pytest.mark.parametrize("make", [pipe, listening])
@pytest.mark.parametrize("read", [load_model, BagStore.open, lambda path: Registry(path).list()])
def test_no_folder_is_refused(tmp_path, make, read):
    """The same in the place of a folder."""
    make(tmp_path / "there")
    with pytest.raises(BagbasisError, match="there"):
        read(tmp_path / "there")


def test_a_folder_is_no_config(tmp_path):
    """It is named."""
    with pytest.raises(ConfigError, match=r"config .*: is a folder; expected a YAML file"):
        read_yaml(tmp_path)


def test_the_pipe_of_a_shell_is_a_config():
    """What `<(…)` stands for is open already, and has a writer."""
    end, writer = os.pipe()
    os.write(writer, b"data_url: a.zarr\n")
    os.close(writer)
    try:
        assert read_yaml(f"/dev/fd/{end}") == {"data_url": "a.zarr"}
    finally:
        os.close(end)
