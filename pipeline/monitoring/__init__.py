"""Whether new bags are still like the ones that were learned from."""

from .coordinates import CoordinateShift
from .drift import DriftResult, drift_test

__all__ = ["CoordinateShift", "DriftResult", "drift_test"]
