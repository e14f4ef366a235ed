"""The error of a model on labelled bags: one definition for reports, gates and experiments."""

from .baselines import judge_held_out
from .errors import Errors
from .judging import evaluate, evaluate_together

__all__ = ["Errors", "evaluate", "evaluate_together", "judge_held_out"]
