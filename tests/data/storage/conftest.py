"""Places for folders of files."""

from __future__ import annotations

import uuid

import pytest


@pytest.fixture
def memory_url():
    """A folder in a filesystem of objects."""
    return f"memory://{uuid.uuid4().hex}/folder"


@pytest.fixture(params=["path", "memory://"])
def place(request, tmp_path):
    """A folder that is not there yet: on local files, or among objects."""
    is_path = request.param == "path"
    return str(tmp_path / "folder") if is_path else request.getfixturevalue("memory_url")
