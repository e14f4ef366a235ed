"""The error of a model on labelled bags: one definition for reports, gates and experiments.

The room imports models and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Errors",
    "Importance",
    "cross_val_score",
    "evaluate",
    "judge_fit",
    "permutation_importance",
]
