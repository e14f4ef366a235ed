"""Fitted models: saving, loading, and predicting whole stores."""

from .predictions import PredictedBlock, iter_predictions, write_predictions
from .saving import load_model, save_model

__all__ = [
    "PredictedBlock",
    "iter_predictions",
    "load_model",
    "save_model",
    "write_predictions",
]
