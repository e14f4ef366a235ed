"""Densities of bags: series and kernel estimates, their smoothness, the nearest valid density.

The room imports divergences and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Densities",
    "ExponentialFamilyDensity",
    "Smoothness",
    "Width",
    "choose_smoothness",
    "estimate_densities",
    "kde_at",
]
