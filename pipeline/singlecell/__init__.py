"""Patients as bags of cells: distances between samples, scores of distances, and donor tests.

The classes implement patpy's interfaces, but need neither patpy nor scanpy. They need ``pip install
'bagbasis[tables]'``.
"""

from ..core.lazy import attach_with_extra

__getattr__, __dir__, __all__ = attach_with_extra("tables", __name__, __file__)
