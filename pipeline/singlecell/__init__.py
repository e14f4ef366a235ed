"""Patients as bags of cells: distances between samples, their scores, and donors' tests.

The classes have the methods that patpy asks of its own, and need neither it nor scanpy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
