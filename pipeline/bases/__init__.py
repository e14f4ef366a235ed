"""Orthonormal bases of L2([0, 1]^d): index sets, evaluation and projection.

The room imports clusters and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "BASES",
    "evaluate_basis",
    "index_set",
]
