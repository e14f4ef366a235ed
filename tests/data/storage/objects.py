"""Stores as plain Zarr among objects, where they can be read and not written."""

from __future__ import annotations

import fsspec

from bagbasis import BagStore


def among_objects(store: BagStore, url: str) -> BagStore:
    """A copy of a local store at the URL of a filesystem of objects."""
    fs, path = fsspec.core.url_to_fs(url)
    fs.put(f"{store.url}/", f"{path}/", recursive=True)
    return BagStore.open(url)
