"""Estimated divergences of all pairs of bags, O(N²): kernels for small sets, and as truth."""

from .kernel import DivergenceKernel, kernel_matrix, median_scale
from .matrix import divergence_matrix, median_bandwidth
from .repair import NystroemFeatures, PSDRepair

__all__ = [
    "DivergenceKernel",
    "NystroemFeatures",
    "PSDRepair",
    "divergence_matrix",
    "kernel_matrix",
    "median_bandwidth",
    "median_scale",
]
