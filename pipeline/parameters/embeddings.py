"""What embeddings can be given, by class; each class shows its table as ``PARAMETERS``."""

from __future__ import annotations

from .checks import Table
from .constraints import Boolean, Instance, Integer, None_, OneOf, Open, Real, Seed, Share
from .containers import ListOf, Pair

SHARE = "share of the box's side"  # what messages call a bandwidth
LEAST_BANDWIDTH = 1e-6  # of the box's side; below, float32 does not resolve the phases
MAX_FLOOR = 1e6  # of a density, in units of the uniform one: what float32 holds the squares of
MAX_ORDER = 4  # of the measures' quadrature; larger powers of a density say nothing new
MAX_FUNCTIONS = 200_000  # a bag's coefficients in double take 1.6 MB

BASIS = OneOf("cosine", "trigonometric", "legendre")
OUT_OF_BOX = OneOf("clip", "drop", "error")
PRECISION = OneOf("float32", "float64")
KERNEL = OneOf("gaussian", "laplacian", "matern")
DISTANCE = OneOf("js", "tv", "chi2", "hellinger", "l2")
BOUNDS = ListOf(Pair(Real(), Real()), 1)
BOX = Open("one (lo, hi) per dimension", BOUNDS | None_)

# What an estimator takes in place of an embedding with its defaults: see `named_embedding`.
NAMES = OneOf(
    "projection",
    "hdd",
    *DISTANCE.choices,
    "mean_map",
    "histogram",
    "moments",
    "sliced_wasserstein",
    "extremes",
    "bag_of_words",
    "union",
    "coefficient_pca",
    "shrunk",
    "point_transformer",
)

# Of every embedding.
COMMON: Table = {"out_of_box": OUT_OF_BOX, "box": BOX, "dtype": PRECISION}
_MARGINALS: Table = {"marginals": Integer(1) | None_, **COMMON}
_INNER = Instance("Embedding", "ProjectionEmbedding()") | None_

TABLES: dict[str, Table] = {
    "ProjectionEmbedding": {
        "basis": BASIS,
        "n_per_dim": Integer(1) | None_ | OneOf("auto"),
        "max_norm": Real(ge=0) | None_ | OneOf("auto"),
        "bandwidth": Real(gt=0, kind=SHARE) | None_ | OneOf("auto"),
        **_MARGINALS,
    },
    "HDDEmbedding": {
        "distance": DISTANCE,
        "n_per_dim": Integer(1) | None_,
        "max_norm": Real(ge=0) | None_,
        "n_lambdas": Integer(1) | None_,
        "nodes": OneOf("fitted", "quantile", "random"),
        "order": Real(gt=0, le=MAX_ORDER) | None_,
        "bandwidth": Real(gt=0, lt=1, kind=SHARE) | OneOf("auto"),
        "floor": Real(gt=0, le=MAX_FLOOR),
        "grid": Integer(2) | None_,
        "seed": Seed,
        **_MARGINALS,
    },
    "MeanMapEmbedding": {
        "kernel": KERNEL,
        "n_features": Integer(2, MAX_FUNCTIONS, even=True),
        "bandwidth": Real(ge=LEAST_BANDWIDTH, kind=SHARE) | OneOf("median"),
        "nu": Real(ge=0.5),
        "seed": Seed,
        "phase": Boolean,
        **COMMON,
    },
    "HistogramEmbedding": {
        "distance": OneOf("js", "chi2", "intersection", "l2"),
        "n_bins": Integer(1),
        "n_lambdas": Integer(1),
        **_MARGINALS,
    },
    "MomentsEmbedding": {"covariance": Boolean, "standardize": Boolean, **COMMON},
    "SlicedWassersteinEmbedding": {
        "n_directions": Integer(1, MAX_FUNCTIONS),
        "n_quantiles": Integer(1, MAX_FUNCTIONS),
        "seed": Seed,
        **COMMON,
    },
    "ExtremesEmbedding": {
        "n_directions": Integer(1, MAX_FUNCTIONS),
        "tail": Real(gt=0, lt=0.5),
        "seed": Seed,
        **COMMON,
    },
    "BagOfWordsEmbedding": {"n_words": Integer(1, MAX_FUNCTIONS), "seed": Seed, **COMMON},
    "EmbeddingUnion": {
        "parts": Open("embeddings, or (name, embedding) pairs"),
        "join": OneOf("product", "sum"),
        "scales": ListOf(Real(gt=0), 1) | None_,
        "weights": ListOf(Real(gt=0), 1) | None_,
        **COMMON,
    },
    "CoefficientPCA": {
        "embedding": _INNER,
        "n_components": Integer(1) | Share,
        "whiten": Boolean,
        "max_bags": Integer(1) | None_,
        **COMMON,
    },
    "ShrunkEmbedding": {"embedding": _INNER, **COMMON},
    "PointTransformer": {
        "transformer": Open("a transformer of scikit-learn, or None"),
        "embedding": _INNER,
        **COMMON,
    },
}
