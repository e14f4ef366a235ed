"""The error of a model on labelled bags: one definition for reports, gates and experiments."""

from .errors import Errors
from .judging import evaluate, evaluate_together

__all__ = ["Errors", "evaluate", "evaluate_together"]
