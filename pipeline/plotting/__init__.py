"""Figures of results with matplotlib: each function draws into Axes and returns them."""

from ..core.errors import needing_extra

with needing_extra("plots", "bagbasis.plotting"):
    import matplotlib.axes  # noqa: F401

from .bags import plot_bag, plot_densities
from .explanations import plot_explanation
from .fits import plot_choice, plot_learning_curve, plot_tuning
from .hypothesis_tests import plot_coordinates, plot_drift, plot_null, plot_scales
from .predictions import (
    plot_calibration,
    plot_density_errors,
    plot_importance,
    plot_intervals,
    plot_predictions,
)

__all__ = [
    "plot_bag",
    "plot_calibration",
    "plot_choice",
    "plot_coordinates",
    "plot_densities",
    "plot_density_errors",
    "plot_drift",
    "plot_explanation",
    "plot_importance",
    "plot_intervals",
    "plot_learning_curve",
    "plot_null",
    "plot_predictions",
    "plot_scales",
    "plot_tuning",
]
