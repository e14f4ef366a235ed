"""The report a job leaves behind, as JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bagbasis.storage.files import write_json


def write_report(path: str | os.PathLike[str], report: Mapping[str, Any]) -> None:
    """Write a report as JSON; NaN and infinity become null, numpy's types plain numbers.

    Raises
    ------
    StoreError
        The place can not be written.
    """
    write_json(path, plain(report), indent=2)


def plain(value: Any) -> Any:
    """The value in types JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
