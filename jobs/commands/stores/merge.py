"""``bags merge``: the present bags of several stores in a new one."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...configs.config import ReportConfig
from ...terminal import Terminal
from .changes import report_changes


class Config(ReportConfig):
    """Keys of ``configs/merge.yaml``."""

    stores: list[str] = Field(
        examples=[["example-output/bags.zarr", "example-output/more.zarr"]],
        description="the stores, in order; ids are unique among all",
    )
    url: str = Field(examples=["example-output/merged.zarr"], description="the store to write")
    overwrite: bool = Field(default=False, description="replace a store that is there")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Merge the stores; returns the report."""
    from bagbasis import merge_stores

    store = merge_stores(config.stores, config.url, overwrite=config.overwrite)
    return report_changes(console, "Merged", store)
