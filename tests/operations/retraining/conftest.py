"""A store, and a sequence of models that has done its first round."""

from __future__ import annotations

import pytest

from bagbasis.operations import retrain
from tests.operations.retraining.problems import create, grow, spec


@pytest.fixture
def store(tmp_path):
    return grow(create(tmp_path / "bags.zarr"), 200)


@pytest.fixture
def given(tmp_path, store):
    """A retraining whose first round is done."""
    made = spec(tmp_path)
    assert retrain(made).decision == "promoted"
    return made
