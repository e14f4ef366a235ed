"""A registry in a folder, or in a filesystem of objects."""

from __future__ import annotations

import uuid

import pytest

from bagbasis.operations import Registry


@pytest.fixture(params=["path", "memory://"])
def registry(request, tmp_path):
    """An empty registry: in a folder, or in a filesystem of objects."""
    if request.param == "path":
        return Registry(tmp_path / "registry")
    return Registry(f"memory://{uuid.uuid4().hex}/registry")
