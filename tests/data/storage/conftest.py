"""Places for folders of files."""

from __future__ import annotations

import uuid

import pytest


@pytest.fixture(params=["path", "memory://"])
def place(request, tmp_path):
    """A folder that is not there yet: on local files, or among objects."""
    if request.param == "path":
        return str(tmp_path / "folder")
    return f"memory://{uuid.uuid4().hex}/folder"
