"""The report of the jobs that change a store: remove, relabel, merge and compact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bagbasis import BagStore

    from ...terminal import Terminal


def report_changes(console: Terminal, title: str, store: BagStore) -> dict[str, Any]:
    """Print and return the counts of a store that was changed."""
    report = {
        "url": store.url,
        "n_bags": store.n_bags,
        "n_removed": store.n_removed,
        "n_changes": store.meta.n_changes,
        "n_erased": store.meta.n_erased,
    }
    console.values(title, report)
    return report
