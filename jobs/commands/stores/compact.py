"""``bags compact``: delete the points and labels of removed bags from the disk."""

from __future__ import annotations

from typing import Any

from ...configs.config import ReportConfig, StoreUrl
from ...terminal import Terminal
from .changes import report_changes


class Config(ReportConfig):
    """Keys of ``configs/compact.yaml``."""

    url: StoreUrl


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Delete what removed bags left; returns the report."""
    from bagbasis import BagStore

    return report_changes(console, "Compacted", BagStore.open(config.url).compact())
