"""``bags compact``: delete the points and labels of removed bags from the disk."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...configs.config import ReportConfig
from ...terminal import Terminal
from .changes import report_changes


class Config(ReportConfig):
    """Keys of ``configs/compact.yaml``."""

    url: str = Field(examples=["example-output/bags.zarr"], description="the store")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Delete what removed bags left; returns the report."""
    from bagbasis import BagStore

    return report_changes(console, "Compacted", BagStore.open(config.url).compact())
