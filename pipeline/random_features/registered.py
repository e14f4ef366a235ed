"""Every second basis by its name."""

from ..parameters.random_features import FEATURE_NAMES
from .base import RandomFeatures
from .fourier import RandomFourierFeatures
from .learned import LearnedFourierFeatures
from .nystroem import NystroemFeatures

RANDOM_FEATURES: dict[str, type[RandomFeatures]] = {
    "fourier": RandomFourierFeatures,
    "nystroem": NystroemFeatures,
    "learned": LearnedFourierFeatures,
}
DEFAULT_FEATURES = "fourier"  # what a description without a name is of


def named_features(name: str) -> RandomFeatures:
    """Return the random features of a registered name, with their defaults.

    Raises
    ------
    ParameterError
        Another name.
    """
    FEATURE_NAMES.check("random_features", name)
    return RANDOM_FEATURES[name]()
