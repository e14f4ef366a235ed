"""One S3 for the tests of a module, and a bucket for each of them."""

from __future__ import annotations

import uuid

import dask
import fsspec
import pytest

from tests.object_stores.moto_server import OneAtATime, forget_clients, serving


@pytest.fixture(scope="module")
def moto():
    """The application that plays S3."""
    return OneAtATime()


@pytest.fixture(scope="module")
def s3(moto):
    """An S3 played by moto: this process, and those it starts, reach it by ``s3://`` URLs."""
    with serving(moto) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        # workers are forked from a server that may have been started before
        to_workers = {**dask.config.get("distributed.nanny.environ"), **environment}
        patch.setitem(dask.config.config["distributed"]["nanny"], "environ", to_workers)
        forget_clients()
        yield environment
    forget_clients()


@pytest.fixture
def bucket(s3):
    """An empty bucket, ``s3://...``."""
    url = f"s3://bags-{uuid.uuid4().hex[:12]}"
    fsspec.filesystem("s3").mkdir(url)
    return url


@pytest.fixture
def impatient(s3, monkeypatch):
    """Clients that try no request again."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    import s3fs

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    forget_clients()
    yield
    forget_clients()
