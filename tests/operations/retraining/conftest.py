"""A store, and a sequence of models that has done its first round: made once, copied for a test."""

from __future__ import annotations

import shutil

import pytest

from bagbasis import BagStore
from bagbasis.operations import retrain
from tests.operations.retraining.problems import create, grow, spec


@pytest.fixture(scope="session")
def begun(tmp_path_factory):
    """A store of 200 bags, and the registry and the state of a first round."""
    folder = tmp_path_factory.mktemp("begun")
    grow(create(folder / "bags.zarr"), 200)
    assert retrain(spec(folder)).decision == "promoted"
    return folder


@pytest.fixture
def store(tmp_path, begun):
    shutil.copytree(begun / "bags.zarr", tmp_path / "bags.zarr")
    return BagStore.open(tmp_path / "bags.zarr")


@pytest.fixture
def settings(tmp_path, begun, store):
    """A retraining whose first round is done."""
    for name in ("registry", "registry.retrain"):
        shutil.copytree(begun / name, tmp_path / name)
    return spec(tmp_path)
