"""Patients as bags of cells: distances between samples, scores of distances, and donor tests.

The classes implement patpy's interfaces, but need neither patpy nor scanpy. They need ``pip install
'bagbasis[tables]'``.
"""

import lazy_loader

from ..core.errors import needing_extra

_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    with needing_extra("tables", name):
        return _import(name)
