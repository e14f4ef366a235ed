"""Estimators and fitted models: they fit, predict, give intervals, and are saved."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Candidate",
    "Checkpoints",
    "DoubleBasisClassifier",
    "DoubleBasisRegressor",
    "Errors",
    "Importance",
    "KernelSmoother",
    "Lead",
    "PredictedBlock",
    "Rung",
    "Score",
    "Search",
    "StreamingRidge",
    "TripleBasisRegressor",
    "Tuning",
    "cross_val_score",
    "evaluate",
    "features",
    "iter_predictions",
    "judge_fit",
    "load_model",
    "permutation_importance",
    "save_model",
    "tune",
    "write_predictions",
]
