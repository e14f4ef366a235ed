"""URLs: filesystems that fail at once, folders that are gone, and chains of local names."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from bagbasis import BagStore, ParameterError, StoreError
from bagbasis.data.storage.urls import normalize_url
from bagbasis.jobs.runs import submit
from tests.jobs.running import refused


def test_local_paths_are_no_urls():
    assert normalize_url("/data/a:b@c?token=1") == "/data/a:b@c?token=1"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://127.0.0.1:1/x", "Connection refused"),
        ("zip://x::/nope.zip", "No such file or directory"),
        ("github://owner:repository@main/x", "nobody answers"),
    ],
)
def test_filesystems_that_connect_at_once(url, message, monkeypatch):
    """What fails when fsspec makes the filesystem is one error of ours, too."""

    def get(*args, **options):
        raise requests.ConnectionError("nobody answers")

    monkeypatch.setattr(requests, "get", get)
    assert refused(1, "info", url) == f"bags: info: {url}: cannot be read ({message})"


def test_a_working_folder_that_was_deleted(tmp_path, monkeypatch):
    """Relative paths, and jobs that are submitted, name it; others work."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    for act in (
        lambda: BagStore.open("a.zarr"),
        lambda: submit("fit", {"data_url": "/a.zarr", "model_url": "/m.zarr"}, root=tmp_path),
    ):
        with pytest.raises(StoreError, match="the folder that this process works in was deleted"):
            act()
    assert normalize_url("/a.zarr") == "/a.zarr"


@pytest.mark.parametrize("url", ["/data/A::B.csv", "./a::b", "~/a::b", "a::b.zarr", Path("a/b::c")])
def test_local_names_that_read_as_a_chain(url):
    """fsspec would take what stands before "::" for a protocol, and write to another place."""
    with pytest.raises(ParameterError, match="reads as a chain of URLs; give it another name"):
        normalize_url(url)


@pytest.mark.parametrize("url", ["simplecache::/data/a.csv", "zip://a.csv::/data/a.zip"])
def test_chains_of_local_files(url):
    assert normalize_url(url) == url
