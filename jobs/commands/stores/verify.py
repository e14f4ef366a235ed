"""``bags verify``: check every invariant of a store."""

from __future__ import annotations

import time
from typing import Any

from ...configs.config import ReportConfig, StoreUrl
from ...terminal import Terminal


class Config(ReportConfig):
    """Keys of ``configs/verify.yaml``."""

    url: StoreUrl


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Verify the store; returns the report, or raises the StoreError of the first violation."""
    from bagbasis import BagStore

    begun = time.perf_counter()
    store = BagStore.open(config.url)
    with console.progress("verify", "points") as progress:
        store.verify(progress)
    report = {
        "url": store.url,
        "n_bags": store.n_bags,
        "n_points": store.n_points,
        "n_response_points": store.n_response_points,
        "seconds": time.perf_counter() - begun,
    }
    console.values("Verified: every invariant holds", report)
    return report
