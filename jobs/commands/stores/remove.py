"""``bags remove``: removes bags, so that later fits, evaluations and predictions leave them out."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...configs.config import ReportConfig, StoreUrl
from ...terminal import Terminal
from .changes import report_changes


class Config(ReportConfig):
    """Keys of ``configs/remove.yaml``."""

    url: StoreUrl
    ids: list[int] | list[str] = Field(
        examples=[[3, 17]], description="ids of the bags; none is removed if one is unknown"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Remove the bags; returns the report."""
    from bagbasis import BagStore

    store = BagStore.open(config.url).remove(config.ids)
    title = "Removed; points stay on the disk until `bags compact`"
    return report_changes(console, title, store)
