"""Zarr and the modules that derive classes from its own, imported when first used.

Zarr takes a fifth of a second of CPU time to import. A process that reads and writes no store, for
example one that fits bags in memory, should not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.lazy_modules import LazyModule

if TYPE_CHECKING:
    import zarr as zarr
    import zarr.core.buffer as zarr_buffer
    import zarr.core.sync as zarr_sync
    from zarr.types import AnyArray as AnyArray

    from . import transactions, zarr_reading, zarr_writer
else:
    AnyArray = Any  # a name for type checkers alone
    zarr = LazyModule("zarr")
    zarr_buffer, zarr_sync = LazyModule("zarr.core.buffer"), LazyModule("zarr.core.sync")
    transactions = LazyModule(f"{__package__}.transactions")
    zarr_reading = LazyModule(f"{__package__}.zarr_reading")
    zarr_writer = LazyModule(f"{__package__}.zarr_writer")

__all__ = ["transactions", "zarr", "zarr_buffer", "zarr_reading", "zarr_sync", "zarr_writer"]
