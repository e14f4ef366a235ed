"""Networks of a module are compiled soon, and forgotten after it."""

from __future__ import annotations

import pytest

from tests.networks import compiled_soon


@pytest.fixture(autouse=True, scope="module")  # a package is a folder with __init__.py for pytest
def _compiled_soon():
    with compiled_soon():
        yield
