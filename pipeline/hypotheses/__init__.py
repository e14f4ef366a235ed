"""Tests of hypotheses on points and on bags, with the bag as the unit."""

from .exact_mmd import BiasedMMD, EnergyDistance, UnbiasedMMD
from .result import HypothesisResult
from .two_sample import TWO_SAMPLE, two_sample_test

__all__ = [
    "TWO_SAMPLE",
    "BiasedMMD",
    "EnergyDistance",
    "HypothesisResult",
    "UnbiasedMMD",
    "two_sample_test",
]
