"""Where results may be written: nothing is replaced but what this package wrote there before."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import zarr

from ..errors import ModelError, StoreError
from .urls import filesystem
from .zarr_stores import exists, zarr_store

PART = re.compile(r"part-\d{12}\.parquet")


def check_replaceable(url: str, overwrite: bool, kind: str, ours: Callable[[str], bool]) -> None:
    """Raise ModelError when something is at the normalized URL that must stay.

    Parameters
    ----------
    kind : str
        What is about to be written, for the message.
    ours : callable
        Whether what is at the URL is of that kind.
    """
    try:
        occupied = exists(url)
    except StoreError as error:
        raise ModelError(str(error)) from error
    if not occupied:
        return
    if not overwrite:
        raise ModelError(f"{url}: exists already; remove it or pass overwrite=True")
    if not ours(url):
        raise ModelError(f"{url}: exists and is not {kind}; remove it or choose another place")


def attributes_of(url: str) -> dict[str, Any]:
    """The attributes of a Zarr group; empty where there is none."""
    try:
        group = zarr.open_group(zarr_store(url, read_only=True), mode="r", zarr_format=3)
        return dict(group.attrs)
    except Exception:
        return {}


def holds_parts(url: str) -> bool:
    """Whether the URL is a folder of the Parquet files of predictions, and of nothing else."""
    fs, path = filesystem(url)
    if not fs.isdir(path):
        return False
    names = [str(entry).rstrip("/").rsplit("/", 1)[-1] for entry in fs.ls(path, detail=False)]
    return all(PART.fullmatch(name) for name in names)
