"""Names of registered models: hashes of their content."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import zarr

from ...data.storage.zarr_reading import checked_array
from ...models.saving import MODEL_KEY

# Keys of a fit's report and its parts that differ between runs of the same fit.
VOLATILE = ("seconds", "n_bags_resumed", "n_steps_resumed")
# The same of a network's parameters; "checkpoint" is in models of versions before 1.0.
PLACES = ("checkpoints", "checkpoint")


def content_name(group: zarr.Group) -> str:
    """Return a hash of the saved content, without the time and package versions of saving."""
    return content_names(group)[0]


def is_content(group: zarr.Group, name: str) -> bool:
    """Return whether a name is the hash of the saved content, by this or an earlier version."""
    return name in content_names(group)


def content_names(group: zarr.Group) -> list[str]:
    """Return the name, and the name in earlier versions, which hashed the times of parts."""
    state: Any = group.attrs[MODEL_KEY]
    content = {key: value for key, value in state.items() if key != "versions"}
    params = state["params"]
    content["params"] = {key: params[key] for key in params if key not in PLACES}
    report = _lasting(state["report"])
    parts = {
        key: _lasting(part) if isinstance(part, dict) else part for key, part in report.items()
    }
    contents = [content | {"report": parts}]
    if parts != report:
        contents.append(content | {"report": report})
    digests = [
        hashlib.sha256(json.dumps(saved_content, sort_keys=True).encode())
        for saved_content in contents
    ]
    for name, array in sorted(group.arrays()):
        values = np.ascontiguousarray(checked_array(array)[:])
        for digest in digests:
            digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
            digest.update(values.ravel().data)
    return [digest.hexdigest()[:16] for digest in digests]


def _lasting(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without the entries that differ between runs of the same fit."""
    return {key: value for key, value in report.items() if key not in VOLATILE}
