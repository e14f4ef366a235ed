"""Regression on bag features: statistics, solving, estimators, and the kernel smoother."""

from .checkpoints import Checkpoints
from .estimators import DoubleBasisClassifier, DoubleBasisRegressor
from .feature_map import FeatureMap
from .smoother import KernelSmoother
from .statistics import RidgeStatistics
from .triple_basis import TripleBasisRegressor

__all__ = [
    "Checkpoints",
    "DoubleBasisClassifier",
    "DoubleBasisRegressor",
    "FeatureMap",
    "KernelSmoother",
    "RidgeStatistics",
    "TripleBasisRegressor",
]
