"""Patients as bags of cells: distances between samples, scores of distances, and donor tests.

The classes implement patpy's interfaces, but need neither patpy nor scanpy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
