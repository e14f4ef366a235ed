"""Stores that are made once and copied: to make one takes a tenth of a second of CPU, to copy one
three thousandths."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bagbasis import BagStore

LOCAL = ("", "file://", "icechunk+file://")


def copied(make: Callable[..., object]) -> Callable[..., BagStore]:
    """Let ``make(url, ...)`` be called once for the same other arguments, which are hashable.

    The URL gets a copy of what it made, under names and times of its own; where a store may be
    already, or not on local files, the function is called.
    """

    @cache
    def whole(begin: str, *args: Any, **options: Any) -> Path:
        path = Path(tempfile.mkdtemp(dir=_folder().name)) / "s"
        make(f"{begin}{path}", *args, **options)
        return path

    def copy(url: Any, *args: Any, **options: Any) -> BagStore:
        begin, path = re.fullmatch(r"([\w+]+://)?(.*)", str(url)).groups(default="")
        if begin not in LOCAL or Path(path).exists():
            make(url, *args, **options)
        else:
            shutil.copytree(whole(begin, *args, **options), path, copy_function=shutil.copy)
        return BagStore.open(url)

    return copy


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Until this process ends."""
    return tempfile.TemporaryDirectory(prefix="bagbasis-tests-")
