"""``bags merge``: the present bags of several stores in a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from bagbasis import merge_stores

from ...configs.config import ReportConfig
from ...configs.sections import parameter_of, with_parameters
from ...terminal import Terminal
from .changes import report_changes


@with_parameters(
    {"overwrite": parameter_of(merge_stores, "overwrite", "replace a store that is there")}
)
class Config(ReportConfig):
    """Keys of ``configs/merge.yaml``."""

    if TYPE_CHECKING:
        overwrite: bool

    stores: list[str] = Field(
        examples=[["example-output/bags.zarr", "example-output/more.zarr"]],
        description="the stores, in order; ids are unique among all",
    )
    url: str = Field(examples=["example-output/merged.zarr"], description="the store to write")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Merge the stores; returns the report."""
    store = merge_stores(config.stores, config.url, overwrite=config.overwrite)
    return report_changes(console, "Merged", store)
