"""What estimators can be given, by class; each class shows its table as ``PARAMETERS``."""

from __future__ import annotations

from .checks import Table
from .constraints import Boolean, False_, Instance, Integer, None_, OneOf, Open, Real, Share, Text
from .containers import ListOf, MappingOf
from .embeddings import NAMES, PRECISION
from .random_features import FEATURE_NAMES

HOLDOUT = Real() | MappingOf(Text, Open()) | Instance("Holdout")
"""Of functions that fit: a share of the bags, what `Holdout` is made of, or one."""

_NAMED = Instance("Embedding", "ProjectionEmbedding()") | None_ | NAMES
_EMBEDDING = Instance("Embedding", "ProjectionEmbedding()") | None_
_PENALTY = Real(ge=0)

_RIDGE: Table = {
    "embedding": _NAMED | OneOf("auto"),
    "random_features": Instance("RandomFeatures", "RandomFourierFeatures()")
    | None_
    | False_
    | FEATURE_NAMES,
    "alpha": _PENALTY | ListOf(_PENALTY, 1) | OneOf("gcv", "folds", "validation"),
    "alphas": _PENALTY | ListOf(_PENALTY, 1) | None_,
    "validation_fraction": Share,
    "precision": PRECISION,
    "solver": OneOf("auto", "cholesky", "cg"),
    "rank": Integer(1) | None_,
    "uncertainty": Boolean,
    "baseline": OneOf("linear") | None_,
}
_HEAD: Table = {"head": OneOf("ridge", "trees", "stack")}

TABLES: dict[str, Table] = {
    "DoubleBasisRegressor": {**_RIDGE, **_HEAD},
    "DoubleBasisClassifier": {
        **_RIDGE,
        "class_weight": OneOf("balanced") | MappingOf(Open("class"), Real(ge=0)) | None_,
        **_HEAD,
    },
    "TripleBasisRegressor": {
        **_RIDGE,
        "response_embedding": _EMBEDDING,
        "alpha": _PENALTY | ListOf(_PENALTY, 1) | OneOf("gcv", "folds", "validation", "projected"),
        "baseline": OneOf("own") | None_,
    },
    "KernelSmoother": {
        "embedding": _NAMED,
        "bandwidth": Real(ge=1e-18, le=1e18) | OneOf("loo"),
        "response_embedding": _EMBEDDING,
        "precision": PRECISION,
        "in_memory": Boolean,
    },
}
