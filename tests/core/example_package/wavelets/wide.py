"""Random features of a wide kernel."""

from bagbasis import RandomFourierFeatures
from bagbasis.embeddings import FourierSpec
from bagbasis.embeddings.random_features.registered import random_features


@random_features("wide", FourierSpec)
class WideFeatures(RandomFourierFeatures):
    """Random Fourier features of three times the median distance."""

    scale_multiplier: float = 3.0
