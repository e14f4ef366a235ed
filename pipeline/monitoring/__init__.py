"""Whether new bags are still like the bags that a model learnt from."""

from .coordinates import CoordinateShift
from .drift import DriftResult, drift_test

__all__ = ["CoordinateShift", "DriftResult", "drift_test"]
