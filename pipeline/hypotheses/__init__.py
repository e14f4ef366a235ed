"""Tests of hypotheses on points and on bags, with the bag as the unit."""

from .block_mmd import BlockMMD, LinearMMD
from .exact_mmd import BiasedMMD, EnergyDistance, UnbiasedMMD
from .feature_dependence import KCCA, RDC, HSICFourier, HSICNystroem, KCCAFourier
from .feature_mmd import FastfoodMMD, FourierMMD
from .hsic import DistanceCovariance, HSICb, HSICBlock, HSICu, Lancaster
from .independence import INDEPENDENCE, independence_test
from .locations import MeanEmbeddings, SmoothedCharacteristicFunctions
from .nfsic import NFSIC
from .result import HypothesisResult
from .two_sample import TWO_SAMPLE, two_sample_test

__all__ = [
    "INDEPENDENCE",
    "KCCA",
    "NFSIC",
    "RDC",
    "TWO_SAMPLE",
    "BiasedMMD",
    "BlockMMD",
    "DistanceCovariance",
    "EnergyDistance",
    "FastfoodMMD",
    "FourierMMD",
    "HSICBlock",
    "HSICFourier",
    "HSICNystroem",
    "HSICb",
    "HSICu",
    "HypothesisResult",
    "KCCAFourier",
    "Lancaster",
    "LinearMMD",
    "MeanEmbeddings",
    "SmoothedCharacteristicFunctions",
    "UnbiasedMMD",
    "independence_test",
    "two_sample_test",
]
