"""The folder where this account keeps what `bags` remembers between calls."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """Return the folder, by XDG's specification; RuntimeError for an account without a home."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "bagbasis"
