"""Densities of bags: series and kernel estimates, their smoothness, the nearest valid density."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Densities",
    "DivergenceKernel",
    "ExponentialFamilyDensity",
    "PSDRepair",
    "PrecomputedNystroem",
    "Smoothness",
    "Width",
    "choose_smoothness",
    "divergence_matrix",
    "estimate_densities",
    "kde_at",
    "kernel_matrix",
    "median_bandwidth",
    "median_scale",
]
