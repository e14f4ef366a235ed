"""Whether a store is the one, only longer, that earlier rounds saw."""

from __future__ import annotations

import hashlib
from typing import Any

from ..bags import BagStore
from ..errors import StoreError

LAST_BAGS = 1024  # whose ids and sizes are compared


def fingerprint(store: BagStore, stop: int) -> dict[str, Any]:
    """What identifies the first ``stop`` bags of a store, in types that JSON knows.

    Of the bags only the last 1,024 are looked at.
    """
    digest = hashlib.sha256()
    digest.update(repr(store.ids(max(0, stop - LAST_BAGS), stop).tolist()).encode())
    digest.update(repr(store.offsets(max(0, stop - LAST_BAGS), stop).tolist()).encode())
    return {
        "n_bags": stop,
        "n_dims": store.n_dims,
        "box": [list(bounds) for bounds in store.box.bounds],
        "target_names": list(store.target_names),
        "response_dims": store.response_dims,
        "last_bags": digest.hexdigest(),
    }


def check_same_store(store: BagStore, before: dict[str, Any], state_url: str) -> None:
    """Raise StoreError for a store that was replaced or shrunk since.

    Parameters
    ----------
    before : dict
        Of `fingerprint`.
    state_url : str
        Whose rounds saw it, for the message.
    """
    what = ""
    if store.n_bags < before["n_bags"]:
        what = f"it has {store.n_bags} bags, {before['n_bags']} were learned from"
    else:
        now = fingerprint(store, before["n_bags"])
        changed = [name for name in before if now[name] != before[name]]
        if changed == ["last_bags"]:
            what = f"its bags before {before['n_bags']} have other ids or sizes"
        elif changed:
            name = changed[0]
            what = f"its {name} is {now[name]}, it was {before[name]}"
    if what:
        raise StoreError(
            f"{store.url}: not the store that {state_url} was made from: {what}; put it back, or "
            "give another state_url to begin anew"
        )
