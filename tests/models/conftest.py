"""A store to predict, cut into many blocks, and places for models."""

from __future__ import annotations

import uuid

import fsspec
import pytest

from bagbasis.bags import reading
from bagbasis.regression import prediction
from tests.models.predicting import BAGS, IDS, N, Y, fitted
from tests.oracles.labelled import stored


@pytest.fixture(scope="module", params=["int", "str"])
def store(request, tmp_path_factory):
    """Bags with integer or string ids, in many partitions."""
    url = tmp_path_factory.mktemp("data") / "s.zarr"
    return stored(url, BAGS, Y, ids=IDS[request.param], chunk_points=50)


@pytest.fixture
def many_blocks(monkeypatch):
    """Predictions are cut into blocks of a dozen bags, each of several partitions."""
    monkeypatch.setattr(prediction, "BLOCK_SECONDS", 12 * seconds_a_bag())
    monkeypatch.setattr(reading.partitions, "__defaults__", (60 * 16,))


def seconds_a_bag():
    model = fitted("one target").features_
    embedding = model.embedding.cost.seconds(N, sum(map(len, BAGS))) / N
    products = model.n_features * model.embedding.n_features
    return embedding + 5e-9 * model.n_features + 2e-11 * products


@pytest.fixture
def memory_url():
    """A place in a filesystem of objects."""
    place = f"memory://{uuid.uuid4().hex}/p"
    yield place
    fs = fsspec.filesystem("memory")
    if fs.exists(place):
        fs.rm(place, recursive=True)
