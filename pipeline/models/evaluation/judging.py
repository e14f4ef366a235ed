"""`evaluate` and `Errors`, under the names of this package."""

from __future__ import annotations

from ..errors import Errors
from ..judging import evaluate, evaluate_together

__all__ = ["Errors", "evaluate", "evaluate_together"]
