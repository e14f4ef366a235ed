"""Ridge regression on bag features: statistics, solving, estimators."""

from .estimators import DoubleBasisClassifier, DoubleBasisRegressor
from .feature_map import FeatureMap
from .statistics import RidgeStatistics

__all__ = ["DoubleBasisClassifier", "DoubleBasisRegressor", "FeatureMap", "RidgeStatistics"]
