"""Every second basis by its name."""

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
