"""Estimators and fitted models: they fit, predict, give intervals, and are saved.

The room imports fitting and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "DoubleBasisClassifier",
    "DoubleBasisRegressor",
    "KernelSmoother",
    "PredictedBlock",
    "StreamingRidge",
    "TripleBasisRegressor",
    "features",
    "iter_predictions",
    "load_model",
    "save_model",
    "write_predictions",
]
