"""Normalized URLs, local paths, and the filesystems of remote URLs."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import fsspec

from ...core.credentials import NO_CREDENTIALS, cut_url, has_credentials
from ...core.errors import ParameterError, StoreError, shown

_MAX_NAME_BYTES = 255  # longest file name in the filesystems of Linux
ICECHUNK = "icechunk+"  # begins the URL of a store that Icechunk keeps


def normalize_url(url: str | os.PathLike[str]) -> str:
    """Return an absolute path for local files, any other URL as it is, without a final slash.

    Raises
    ------
    StoreError
        If the URL holds credentials, or is a relative path and the working folder was deleted.
    ParameterError
        If the URL is neither text nor a path, is empty, or has a NUL, "::", a name that no
        filesystem accepts, or the home of an unknown user.
    """
    text = os.fspath(url) if isinstance(url, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ParameterError(f"{shown(url)} is not a URL; expected a string or a path")
    for scheme in ("file://", "local://"):
        text = text.removeprefix(scheme)
    is_remote = "://" in text or "::" in text
    is_path = text.startswith(("/", ".", "~"))
    if (is_remote or not is_path) and has_credentials(text):
        raise StoreError(f"{cut_url(text)}: the URL {NO_CREDENTIALS}")
    first, is_chain, _ = text.partition("::")
    if is_chain and "://" not in first and (is_path or first not in fsspec.available_protocols()):
        raise ParameterError(
            f"{shown(text)}: '::' in the name of a local file or folder reads as a chain of URLs; "
            "give it another name"
        )
    if is_remote:
        return text.rstrip("/")
    if any(len(part.encode("utf-8", "replace")) > _MAX_NAME_BYTES for part in text.split("/")):
        raise ParameterError(f"{shown(text)}: a name in a path has at most {_MAX_NAME_BYTES} bytes")
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise ParameterError(f"{shown(text)}: no such account has a home here") from error
    return str(path if path.is_absolute() else working_folder() / path)


def is_same_place(first: str | None, second: str | None) -> bool:
    """Return whether two normalized URLs name one place: paths may differ by ".." and links."""
    return first is not None and second is not None and place_of(first) == place_of(second)


def place_of(url: str) -> str:
    """Return one form for equal places: a local path without links and "..", or the URL."""
    return os.path.realpath(url) if os.path.isabs(url) else url


def working_folder() -> Path:
    """Return the folder that relative paths begin at; StoreError where it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise StoreError(
            "the folder that this process works in was deleted; go to another one, and give "
            "paths that begin with /"
        ) from error


def local_path(url: str) -> Path | None:
    """Return the path of a normalized local URL, None for a remote one."""
    return None if "://" in url or "::" in url else Path(url)


def is_transactional(url: str) -> bool:
    """Whether Icechunk stores the data at the URL."""
    return url.startswith(ICECHUNK)


def filesystem(url: str, asynchronous: bool = False) -> tuple[Any, str]:
    """Return the fsspec filesystem of a URL and the path in it; of S3, the checked one.

    Parameters
    ----------
    url : str
    asynchronous : bool
        Whether the filesystem's calls are coroutines, as those that Zarr uses.

    Raises
    ------
    StoreError
        If the protocol is unknown, its package is not installed, or Icechunk keeps the store.
    """
    if is_transactional(url):
        raise StoreError(f"{url}: bag stores alone can be kept by Icechunk; choose another URL")
    try:
        fs, path = fsspec.core.url_to_fs(url, **({"asynchronous": True} if asynchronous else {}))
        if "s3" in fs.protocol:
            s3 = importlib.import_module(f"{__package__}.s3")  # which needs s3fs, an extra
            fs = s3.CheckedS3(**fs.storage_options)
    except (ValueError, ImportError) as error:
        raise StoreError(f"{url}: {error}") from error
    return fs, path
