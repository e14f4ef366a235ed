"""Places for stores."""

from __future__ import annotations

import shutil

import pytest

from bagbasis.store import BagStore
from tests.store.six_bags import make, six_bags


@pytest.fixture(params=["path", "icechunk"])
def url(request, tmp_path):
    """Return a place for a store: a local path, the same as a URL, or a repository of Icechunk."""
    if request.param == "icechunk":
        return f"icechunk+file://{tmp_path}/store"
    if request.param == "file://":
        return f"file://{tmp_path}/store.zarr"
    return tmp_path / "store.zarr"


@pytest.fixture
def model():
    """Return what `store` holds."""
    return six_bags()


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """Make a local store of six bags over four objects of points."""
    return make(tmp_path_factory.mktemp("template") / "s.zarr", six_bags())


@pytest.fixture
def store(tmp_path, template):
    """Copy the template, to be maltreated."""
    shutil.copytree(template.url, tmp_path / "s.zarr")
    return BagStore.open(tmp_path / "s.zarr")
