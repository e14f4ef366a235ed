"""Versions of models, the champion among them, and the way back."""

from .registry import ModelRecord, Registry

__all__ = ["ModelRecord", "Registry"]
