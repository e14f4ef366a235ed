"""Dask and Distributed, each imported when one of its names is first used.

They take half a second of CPU time to import. A process without a cluster, for example one that
predicts with a saved model or fits a few bags in memory, should not wait for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import dask as dask
    import distributed as distributed
    from dask import array as dask_array

    LazyArray = dask_array.Array
else:
    LazyArray = Any  # a name for type checkers alone

    class _Module:
        """A stand-in that imports its module for the first attribute."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    dask, distributed = _Module("dask"), _Module("distributed")
    dask_array = _Module("dask.array")

__all__ = ["LazyArray", "dask", "dask_array", "distributed"]
