"""Saved models whose state was changed by hand, with the checksum that belongs to the new state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec

from bagbasis.models.saving import MODEL_KEY, attributes_with


def edit_attributes(url: str | Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the attributes of a Zarr group as they stand, by a function."""
    fs, root = fsspec.core.url_to_fs(str(url))
    document = json.loads(fs.cat_file(f"{root}/zarr.json"))
    change(document["attributes"])
    fs.pipe_file(f"{root}/zarr.json", json.dumps(document).encode())


def edit_state(url: str | Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the state of a saved model, and its checksum, as if it had been saved so."""

    def edit(attributes: dict[str, Any]) -> None:
        change(attributes[MODEL_KEY])
        attributes.update(attributes_with(attributes[MODEL_KEY]))

    edit_attributes(url, edit)


def saved_state(url: str | Path) -> dict[str, Any]:
    """Return the state of a saved model as it is written."""
    fs, root = fsspec.core.url_to_fs(str(url))
    state: dict[str, Any] = json.loads(fs.cat_file(f"{root}/zarr.json"))["attributes"][MODEL_KEY]
    return state
