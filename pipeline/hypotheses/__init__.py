"""Tests of hypotheses on points and on bags, with the bag as the unit."""

from .block_mmd import BlockMMD, LinearMMD
from .exact_mmd import BiasedMMD, EnergyDistance, UnbiasedMMD
from .feature_mmd import FastfoodMMD, FourierMMD
from .locations import MeanEmbeddings, SmoothedCharacteristicFunctions
from .result import HypothesisResult
from .two_sample import TWO_SAMPLE, two_sample_test

__all__ = [
    "TWO_SAMPLE",
    "BiasedMMD",
    "BlockMMD",
    "EnergyDistance",
    "FastfoodMMD",
    "FourierMMD",
    "HypothesisResult",
    "LinearMMD",
    "MeanEmbeddings",
    "SmoothedCharacteristicFunctions",
    "UnbiasedMMD",
    "two_sample_test",
]
