"""The error of a model on labelled bags: one definition for reports, gates and experiments."""

from .baselines import judge_fit
from .cross_validation import cross_val_score
from .errors import Errors
from .importance import Importance, permutation_importance
from .judging import evaluate, evaluate_together

__all__ = [
    "Errors",
    "Importance",
    "cross_val_score",
    "evaluate",
    "evaluate_together",
    "judge_fit",
    "permutation_importance",
]
