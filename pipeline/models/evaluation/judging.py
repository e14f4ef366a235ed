"""`evaluate` and `Errors`, which the room of models has for the scores of estimators."""

from __future__ import annotations

from ..errors import Errors
from ..judging import evaluate, evaluate_together

__all__ = ["Errors", "evaluate", "evaluate_together"]
