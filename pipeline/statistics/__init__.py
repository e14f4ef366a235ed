"""Sums of features and labels that add and subtract: moments, Gram matrices, rows.

The room imports densities and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
