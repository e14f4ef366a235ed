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


def plain(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping in types that JSON knows; other objects become their text."""
    return {str(key): _plain(value) for key, value in values.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
