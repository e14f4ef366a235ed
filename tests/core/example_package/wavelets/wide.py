"""Random features of a wide kernel."""

from bagbasis.random_features import FourierSpec, RandomFourierFeatures, random_features


@random_features("wide", FourierSpec)
class WideFeatures(RandomFourierFeatures):
    """Random Fourier features of three times the median distance."""

    scale_multiplier: float = 3.0
