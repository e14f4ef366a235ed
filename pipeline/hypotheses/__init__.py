"""Tests of hypotheses on points and on bags, with the bag as the unit.

The room imports search and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "FIT",
    "FSSD",
    "INDEPENDENCE",
    "KCCA",
    "KSD",
    "NFSIC",
    "RDC",
    "TWO_SAMPLE",
    "Aggregate",
    "BiasedMMD",
    "BlockMMD",
    "DistanceCovariance",
    "EnergyDistance",
    "FastfoodMMD",
    "FourierMMD",
    "Fuse",
    "HSICAggregate",
    "HSICBlock",
    "HSICFourier",
    "HSICFuse",
    "HSICNystroem",
    "HSICb",
    "HSICu",
    "HypothesisResult",
    "JointHSIC",
    "KCCAFourier",
    "KSDAggregate",
    "Lancaster",
    "LinearMMD",
    "MeanEmbeddings",
    "MixtureScore",
    "SeriesScore",
    "Sliced",
    "SmoothedCharacteristicFunctions",
    "UnbiasedMMD",
    "fit_test",
    "independence_test",
    "two_sample_test",
]
