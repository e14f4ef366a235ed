"""Places for stores."""

from __future__ import annotations

import shutil
import uuid

import fsspec
import pytest

from bagbasis.bags import BagStore
from tests.bags.six_bags import make, six_bags


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


@pytest.fixture
def model():
    """What `store` holds."""
    return six_bags()


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A local store of six bags over four objects of points."""
    return make(tmp_path_factory.mktemp("template") / "s.zarr", six_bags())


@pytest.fixture
def store(tmp_path, template):
    """A copy of the template, to be maltreated."""
    shutil.copytree(template.url, tmp_path / "s.zarr")
    return BagStore.open(tmp_path / "s.zarr")
