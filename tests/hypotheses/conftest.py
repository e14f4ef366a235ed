"""Tests are many and small: threads that wait for each other take longer than one of them."""

from __future__ import annotations

import pytest

from tests.passes import use_cores


@pytest.fixture(autouse=True)
def _one_core():
    with use_cores(1):
        yield
