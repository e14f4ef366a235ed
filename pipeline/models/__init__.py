"""Fitted models: saving, loading, and predicting whole stores."""

from .density_errors import DensityErrors, density_errors
from .predictions import PredictedBlock, iter_predictions, write_predictions
from .registry import ModelRecord, Registry
from .saving import load_model, save_model

__all__ = [
    "DensityErrors",
    "ModelRecord",
    "PredictedBlock",
    "Registry",
    "density_errors",
    "iter_predictions",
    "load_model",
    "save_model",
    "write_predictions",
]
