"""Densities of bags: series and kernel estimates, their smoothness, the nearest valid density."""

from .estimate import estimate_densities
from .kernel_density import kde_at
from .leave_one_out import Smoothness, choose_smoothness
from .series import Densities

__all__ = ["Densities", "Smoothness", "choose_smoothness", "estimate_densities", "kde_at"]
