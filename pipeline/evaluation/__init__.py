"""The error of a model on labelled bags."""

from .densities import DensityErrors, density_errors

__all__ = ["DensityErrors", "density_errors"]
