"""The Zarr convention `ragged`: attributes that say which arrays of a group hold bags.

A convention is a set of attributes that readers may ignore (zarr-conventions-spec). Its page is
``docs/ragged-convention.md``, its schema ``docs/ragged-convention.schema.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...bags.packed_points import FRACTIONS
from ..schema import POINTS, PointArray, StoreMeta, points_of

CONVENTIONS = "zarr_conventions"  # the attribute that lists all conventions of a node
_NAME, _VERSION = "ragged", 1
CONVENTION = {
    "uuid": "79db8396-19dc-4eef-a727-92f66eebed75",
    "name": _NAME,
    "description": "Bags of points of uneven numbers: the points of all bags, and their offsets",
}
FRACTION_STEPS = int(np.iinfo(FRACTIONS).max) - 1  # of a box's side; the largest code is missing


def first_attributes(meta: StoreMeta) -> dict[str, Any]:
    """Return the attributes of a new store, and the attributes of the convention."""
    return {**meta.to_attributes(), CONVENTIONS: [CONVENTION], _NAME: _ragged(meta)}


def next_attributes(meta: StoreMeta, present: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that a commit replaces; an older store does not get the convention."""
    own = meta.to_attributes()
    return {**own, _NAME: _ragged(meta)} if _NAME in present else own


def contradiction(meta: StoreMeta, attributes: Mapping[str, Any]) -> str | None:
    """Return how the attributes of the convention contradict the store's own; None if they agree.

    Stores of earlier versions have none.
    """
    listed = CONVENTION in attributes.get(CONVENTIONS, [])
    if listed != (_NAME in attributes):
        return f"only one of the attributes {CONVENTIONS!r} and {_NAME!r} has the arrays of bags"
    if listed and attributes[_NAME] != json.loads(json.dumps(_ragged(meta))):
        return f"attribute {_NAME!r} says something else of the arrays than the store itself"
    return None


def _ragged(meta: StoreMeta) -> dict[str, Any]:
    return {"version": _VERSION, "arrays": [_entry(array, meta) for array in points_of(meta)]}


def _entry(array: PointArray, meta: StoreMeta) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "values": array.name,
        "offsets": array.offsets.name,
        "size": meta.n_bags,
    }
    if array is POINTS:
        entry["along"] = ["ids", *(["targets"] if meta.target_names else [])]
    if meta.fractions:
        bounds = np.array(array.box(meta).bounds, dtype=np.float64)
        entry["add_offset"] = bounds[:, 0].tolist()
        entry["scale_factor"] = ((bounds[:, 1] - bounds[:, 0]) / FRACTION_STEPS).tolist()
        entry["missing"] = FRACTION_STEPS + 1
    return entry
