"""Regression on bag features: statistics, solving, estimators, and the kernel smoother."""

from .checkpoints import Checkpoints
from .classifier import DoubleBasisClassifier
from .feature_map import FeatureMap
from .loading import load_model
from .prediction import features
from .regressor import DoubleBasisRegressor
from .saving import save_model
from .smoother import KernelSmoother
from .statistics import RidgeStatistics
from .stored_predictions import PredictedBlock, iter_predictions, write_predictions
from .triple_basis import TripleBasisRegressor

__all__ = [
    "Checkpoints",
    "DoubleBasisClassifier",
    "DoubleBasisRegressor",
    "FeatureMap",
    "KernelSmoother",
    "PredictedBlock",
    "RidgeStatistics",
    "TripleBasisRegressor",
    "features",
    "iter_predictions",
    "load_model",
    "save_model",
    "write_predictions",
]
