"""Places for stores."""

from __future__ import annotations

import ctypes
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.data.store.six_bags import make, six_bags


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
    return make(tmp_path_factory.mktemp("template") / "s.zarr")


@pytest.fixture
def store(tmp_path):
    """Make another one, to be maltreated."""
    return make(tmp_path / "s.zarr")


@pytest.fixture(scope="session")
def named_template(tmp_path_factory):
    """Make a store like the template, whose ids are texts."""
    return make(tmp_path_factory.mktemp("template") / "s.zarr", "abcdef")


@pytest.fixture
def named_store(tmp_path):
    """Make another one of those, to be maltreated."""
    return make(tmp_path / "n.zarr", "abcdef")


@pytest.fixture
def traced():
    """Return a context in which Python and numpy may take so many bytes at most."""

    @contextmanager
    def within(n_bytes):
        tracemalloc.start()
        try:
            yield
            assert tracemalloc.get_traced_memory()[1] < n_bytes
        finally:
            tracemalloc.stop()

    return within


@pytest.fixture
def resident_peak():
    """Return a context in which this process may grow by so many bytes at most."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak is reset by Linux alone")

    def of(name):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

    @contextmanager
    def within(n_bytes):
        ctypes.CDLL(None).malloc_trim(0)  # or what was freed before would be taken first
        Path("/proc/self/clear_refs").write_text("5")
        before = of("VmRSS")
        yield
        assert of("VmHWM") - before < n_bytes

    return within
