"""Tests of hypotheses on points and on bags, with the bag as the unit."""

from .block_mmd import BlockMMD, LinearMMD
from .exact_mmd import BiasedMMD, EnergyDistance, UnbiasedMMD
from .feature_dependence import KCCA, RDC, HSICFourier, HSICNystroem, KCCAFourier
from .feature_mmd import FastfoodMMD, FourierMMD
from .goodness_of_fit import FIT, FSSD, KSD, fit_test
from .hsic import DistanceCovariance, HSICb, HSICBlock, HSICu, Lancaster
from .independence import INDEPENDENCE, independence_test
from .locations import MeanEmbeddings, SmoothedCharacteristicFunctions
from .nfsic import NFSIC
from .result import HypothesisResult
from .scores import MixtureScore, SeriesScore
from .two_sample import TWO_SAMPLE, two_sample_test

__all__ = [
    "FIT",
    "FSSD",
    "INDEPENDENCE",
    "KCCA",
    "KSD",
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
    "MixtureScore",
    "SeriesScore",
    "SmoothedCharacteristicFunctions",
    "UnbiasedMMD",
    "fit_test",
    "independence_test",
    "two_sample_test",
]
