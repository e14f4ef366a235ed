"""Second basis: random features of vectors."""

from .base import FeatureSpec, RandomFeatures
from .fourier import FourierSpec, RandomFourierFeatures
from .learned import LearnedFourierFeatures
from .learned_spec import LearnedSpec
from .nystroem import NystroemFeatures, NystroemSpec
from .registered import DEFAULT_FEATURES, RANDOM_FEATURES

__all__ = [
    "DEFAULT_FEATURES",
    "RANDOM_FEATURES",
    "FeatureSpec",
    "FourierSpec",
    "LearnedFourierFeatures",
    "LearnedSpec",
    "NystroemFeatures",
    "NystroemSpec",
    "RandomFeatures",
    "RandomFourierFeatures",
]
