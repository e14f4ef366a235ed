"""Estimated divergences of all pairs of bags, O(N²): kernels for small sets, and as truth.

The room imports embeddings and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "DivergenceKernel",
    "PSDRepair",
    "PrecomputedNystroem",
    "divergence_matrix",
    "kernel_matrix",
    "median_bandwidth",
    "median_scale",
]
