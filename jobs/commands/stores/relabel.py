"""``bags relabel``: give bags other labels, or their first ones."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...configs.config import ReportConfig, StoreUrl
from ...terminal import Terminal
from .changes import report_changes


class Config(ReportConfig):
    """Keys of ``configs/relabel.yaml``."""

    url: StoreUrl
    target: str = Field(examples=["k"], description="the target")
    labels: dict[int | str, int | float | str] = Field(
        examples=[{3: 2.0, 17: 4.0}], description="the new label of each id"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Relabel the bags; returns the report."""
    from bagbasis import BagStore

    store = BagStore.open(config.url).relabel(config.target, config.labels)
    return report_changes(console, "Relabelled", store)
