"""Versions of models, the champion among them, and the way back."""

from .mlflow_models import log_model
from .registry import ModelRecord, Registry

__all__ = ["ModelRecord", "Registry", "log_model"]
