"""Dask and Distributed, each imported when one of its names is first used.

They take half a second of CPU time to import. A process without a cluster, for example one that
predicts with a saved model or fits a few bags in memory, should not wait for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.lazy_modules import LazyModule

if TYPE_CHECKING:
    import dask as dask
    import distributed as distributed
    from dask import array as dask_array

    LazyArray = dask_array.Array
else:
    LazyArray = Any  # a name for type checkers alone
    dask, distributed = LazyModule("dask"), LazyModule("distributed")
    dask_array = LazyModule("dask.array")

__all__ = ["LazyArray", "dask", "dask_array", "distributed"]
