"""Second basis: random features of vectors."""

from .base import FeatureSpec, RandomFeatures
from .fourier import FourierSpec, RandomFourierFeatures
from .learned import LearnedFourierFeatures
from .learned_spec import LearnedSpec
from .nystroem import NystroemFeatures, NystroemSpec

RANDOM_FEATURES: dict[str, type[RandomFeatures]] = {
    "fourier": RandomFourierFeatures,
    "nystroem": NystroemFeatures,
    "learned": LearnedFourierFeatures,
}
DEFAULT_FEATURES = "fourier"  # what a description without a name is of

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
