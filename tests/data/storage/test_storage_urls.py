"""URLs: credentials in them are refused, and are shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from bagbasis import BagStore, ConfigError, ParameterError, StoreError, load_model
from bagbasis.data.storage.urls import normalize_url
from bagbasis.execution.clusters.profiles import load_profile
from bagbasis.jobs.runs import submit
from tests.jobs.running import refused, settings

WITH = [
    "https://me:hush@host/a.zarr",
    "icechunk+s3://me:hush@bucket/a.zarr",
    "simplecache::ftp://me:hu:sh@host/a.csv",
    "sftp://:hush@host/a",
    "https://host/a.parquet?sv=1&sig=hush",
    "https://bucket/a?X-Amz-Credential=hush&X-Amz-Signature=hush",
    "https://bucket/a?AWSAccessKeyId=hush",
    "https://host/a?access_token=hush#x",
    "https://host/a?API_KEY=hush",
    "https://hush@host/a.zarr",
    "s3://AKIAIOSFODNN7EXAMPLE:hush/hush/hush@bucket/x.zarr",
    "https://me:hu@hush/hush@host",
    "https://host/a?key=hush",
    "https://host/a#access_token=hush",
    "https://host/a;token=hush",
    "https://host/a?get=https%3A%2F%2Fme%3Ahush%40host%2Fa",
    "s3://bucket/a?access_key=hush&secret_key=hush",
]
WITHOUT = [
    "s3://bucket/a:b@c/d.zarr",
    "abfs://container@account.example.org/a",
    "github://owner:repository@main/a.csv",
    "ssh://me@host:22/a",
    "https://host:8080/a?design=2&sort_key=points",
    "/data/a:b@c?token=1",
]


@pytest.mark.parametrize("url", WITH)
def test_urls_with_credentials(url, tmp_path):
    """Stores, models, configs, runs and profiles refuse them, and do not print them."""
    profile = tmp_path / "p.yaml"
    profile.write_text(f"cluster: gateway\nn_workers: 1\naddress: {url}\n")
    config = {"data_url": url, "model_url": str(tmp_path / "m.zarr")}
    for kind, call in [
        (StoreError, lambda: BagStore.open(url)),
        (StoreError, lambda: load_model(url)),
        (ConfigError, lambda: load_profile(str(profile))),
        (ConfigError, lambda: submit("fit", config, root=tmp_path / "runs")),
    ]:
        with pytest.raises(kind, match=r"credentials.*environment") as caught:
            call()
        assert "hush" not in str(caught.value)
    line = refused(2, "fit", *settings(**config))
    assert "--set data_url: the value holds credentials" in line
    assert "hush" not in line + refused(2, "fit", "--set", f"{url}") + refused(2, "info", url)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("url", WITHOUT)
def test_urls_without_credentials(url):
    """What looks a little like credentials and is none is taken."""
    assert normalize_url(url) == url


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
