"""A store to predict, cut into many blocks, and places for models."""

from __future__ import annotations

import uuid

import fsspec
import pytest

from tests.models.predicting import BAGS, IDS, N, Y, fitted
from tests.oracles.labelled import stored
from tests.passes import pass_limits


@pytest.fixture(scope="module")
def store(request, tmp_path_factory):
    """Bags in many partitions, with ids of text, or of the kind that a test asks for."""
    url, kind = tmp_path_factory.mktemp("data") / "s.zarr", getattr(request, "param", "str")
    return stored(url, BAGS, Y, ids=IDS[kind], chunk_points=50)


@pytest.fixture
def many_blocks():
    """Predictions are cut into blocks of a dozen bags, each of several partitions."""
    seconds = 12 * fitted("one target").features_.cost.seconds(N, sum(map(len, BAGS))) / N
    with pass_limits(block_seconds=seconds, partition_bytes=60 * 16):
        yield


@pytest.fixture
def memory_url():
    """A place in a filesystem of objects."""
    place = f"memory://{uuid.uuid4().hex}/p"
    yield place
    fs = fsspec.filesystem("memory")
    if fs.exists(place):
        fs.rm(place, recursive=True)
