"""Second basis: random features of vectors.

The room imports ingest and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

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
