"""Densities of bags: series, kernel and score-matched estimates, the nearest valid density."""

from .estimate import estimate_densities
from .exponential_family import ExponentialFamilyDensity, Width
from .kernel_density import kde_at
from .leave_one_out import Smoothness, choose_smoothness
from .series import Densities

__all__ = [
    "Densities",
    "ExponentialFamilyDensity",
    "Smoothness",
    "Width",
    "choose_smoothness",
    "estimate_densities",
    "kde_at",
]
