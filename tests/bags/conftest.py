"""Places for stores."""

from __future__ import annotations

import uuid

import fsspec
import pytest


@pytest.fixture(params=["path", "memory://"])
def url(request, tmp_path):
    """A place for a store: a local path, the same as a URL, or a filesystem of objects."""
    if request.param == "memory://":
        place = f"memory://{uuid.uuid4().hex}/store.zarr"
        yield place
        fs = fsspec.filesystem("memory")
        if fs.exists(place):
            fs.rm(place, recursive=True)
    elif request.param == "file://":
        yield f"file://{tmp_path}/store.zarr"
    else:
        yield tmp_path / "store.zarr"


@pytest.fixture
def memory_url():
    """A place for a store in a filesystem of objects."""
    place = f"memory://{uuid.uuid4().hex}/store.zarr"
    yield place
    fs = fsspec.filesystem("memory")
    if fs.exists(place):
        fs.rm(place, recursive=True)
