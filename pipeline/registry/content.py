"""The name of a registered model: a hash of what it holds."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import zarr

from ..models import ATTRIBUTE
from ..storage import checked_array

# Of a fit's report, and of a network's parameters: these differ between runs of one fit.
VOLATILE = ("seconds", "n_bags_resumed", "n_steps_resumed")
PLACES = ("checkpoint",)


def content_name(group: zarr.Group) -> str:
    """Return a hash of all that is saved, except when and with what it was saved."""
    state: Any = group.attrs[ATTRIBUTE]
    content = {key: value for key, value in state.items() if key != "versions"}
    report = state["report"]
    content["report"] = {key: report[key] for key in report if key not in VOLATILE}
    params = state["params"]
    content["params"] = {key: params[key] for key in params if key not in PLACES}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name, array in sorted(group.arrays()):
        values = np.ascontiguousarray(checked_array(array)[:])
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.ravel().data)
    return digest.hexdigest()[:16]
