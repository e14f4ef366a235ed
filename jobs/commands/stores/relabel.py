"""``bags relabel``: give bags other labels, or their first ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...configs.config import ReportConfig, StoreUrl
from ...terminal import Terminal
from .changes import report_changes

if TYPE_CHECKING:
    from bagbasis import BagStore


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

    store = BagStore.open(config.url)
    _check_kind(store, config)
    return report_changes(console, "Relabelled", store.relabel(config.target, config.labels))


def _check_kind(store: BagStore, config: Config) -> None:
    """Raise DataError for numbers as labels of classes, which would be codes, or the reverse."""
    from bagbasis.core.errors import DataError, shown

    classes = store.meta.class_names.get(config.target)
    if config.target not in store.target_names:
        return  # refused by the store
    for bag, label in config.labels.items():
        if isinstance(label, str) == (classes is None):
            ours = "numbers" if classes is None else f"the classes {shown(list(classes))}"
            hint = "give a number" if classes is None else "give the name of a class, in quotes"
            raise DataError(
                f"{store.url}: target {config.target!r} has {ours}, and the new label of bag "
                f"{bag!r} is {label!r}; {hint}"
            )
