"""Modules that are imported when one of their names is first used.

Some packages take tenths of a second to import. A process that does not use them, for example one
that fits a few bags in memory, should not wait for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stand-in for a module, which is imported for the first attribute.

    Parameters
    ----------
    name : str
        Absolute name of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
