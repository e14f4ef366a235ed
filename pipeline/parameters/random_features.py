"""What random features can be given, by class; each class shows its table as ``PARAMETERS``."""

from __future__ import annotations

from .checks import Table
from .constraints import Boolean, Integer, OneOf, Real, Seed

SCALES = 1e-30, 1e30  # beyond, embeddings divided by the width may overflow float32
MOST_PRIOR = 1e4  # of concentration and tightness: a draw of the mixture takes as many steps

STRUCTURE = OneOf("dense", "hadamard")
# What an estimator takes in place of random features with their defaults.
FEATURE_NAMES = OneOf("fourier", "nystroem", "learned")

_WIDTH: Table = {
    "scale": Real(*SCALES) | OneOf("median"),
    "scale_multiplier": Real(gt=0),
    "seed": Seed,
}

TABLES: dict[str, Table] = {
    "RandomFourierFeatures": {
        "n_features": Integer(2, even=True),
        "orthogonal": Boolean,
        "structure": STRUCTURE,
        **_WIDTH,
    },
    "NystroemFeatures": {
        "n_features": Integer(1),
        "kernel": OneOf("gaussian", "laplacian", "matern", "cauchy"),
        "nu": Real(ge=0.5),
        "landmarks": OneOf("rpcholesky", "kmeans++"),
        **_WIDTH,
    },
    "LearnedFourierFeatures": {
        "n_features": Integer(2, even=True),
        "n_sweeps": Integer(0, 10_000),
        "n_bags": Integer(1),
        "covariance": OneOf("diagonal", "full"),
        "concentration": Real(gt=0, le=MOST_PRIOR),
        "tightness": Real(gt=0, le=MOST_PRIOR),
        **_WIDTH,
    },
}
