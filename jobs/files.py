"""The report a job leaves behind, as JSON: an object with the keys ``job`` and ``config``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from bagbasis.errors import StoreError
from bagbasis.storage.files import read_bytes, storage_errors, write_json
from bagbasis.storage.urls import local_path, normalize_url
from bagbasis.storage.zarr_stores import check_no_link

if TYPE_CHECKING:
    from .config import JobConfig
    from .terminal import Terminal


def run_and_report(
    job: ModuleType, name: str, config: JobConfig, console: Terminal
) -> dict[str, Any]:
    """Run a job, write its report where the config says, and return it.

    Raises
    ------
    StoreError
        Something else than a report is there, before anything is done; or it can not be written.
    """
    path = config.report_path
    if path is not None:
        check_report_place(path)
    report: dict[str, Any] = job.run(config, console)
    if path is not None:
        write_report(path, {"job": name, "config": config.model_dump(), **report})
    return report


def check_report_place(url: str | os.PathLike[str]) -> None:
    """Raise StoreError unless a report may be written there: nothing, or an older one, is there."""
    url = normalize_url(url)
    with storage_errors(url, "can not be written"):  # a name that is too long, a closed folder
        check_no_link(url)
        path = local_path(url)
        if path is None or path.is_file() or not path.exists():
            content = read_bytes(url)
            if not content or is_report(content):
                return
    raise StoreError(f"{url}: exists and is no report of a job; move it, or give another place")


def is_report(content: bytes) -> bool:
    """Whether a job wrote that."""
    try:
        values = json.loads(content)
    except ValueError:
        return False
    return isinstance(values, dict) and {"job", "config"} <= values.keys()


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
