"""Parameters that fit no bags of two coordinates: refused by name, with what is expected."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    BagbasisError,
    CoefficientPCA,
    EmbeddingUnion,
    ExtremesEmbedding,
    HDDEmbedding,
    HistogramEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
    SlicedWassersteinEmbedding,
)

BAGS = [np.random.default_rng(0).random((size, 2)) for size in (1, 30, 257)]
MOMENTS = MomentsEmbedding()
REFUSED = [
    (HDDEmbedding, {"n_lambdas": 9}, "n_lambdas = 8"),
    (HDDEmbedding, {"bandwidth": 0.002}, "in 2 dimensions expected at least 0.007"),
    (HDDEmbedding, {"grid": 513}, "grid is 513; expected an integer from 2 to 512"),
    (HistogramEmbedding, {"n_bins": 183}, "n_bins is 183: 200934 features in 2 dim.* than 200000"),
    (ProjectionEmbedding, {"bandwidth": 0.1, "basis": "legendre"}, "polynomials have none"),
    (ProjectionEmbedding, {"bandwidth": "auto", "basis": "trigonometric"}, "for basis='cosine'"),
    (ProjectionEmbedding, {"n_per_dim": None}, "n_per_dim is None"),
    (ProjectionEmbedding, {"marginals": 3}, "marginals is 3; expected an integer from 1 to 2"),
    (SlicedWassersteinEmbedding, {"n_directions": 10**6}, "n_directions is 1000000; expected"),
    (SlicedWassersteinEmbedding, {"n_directions": 12_501}, "n_directions is 12501; expected"),
    (ExtremesEmbedding, {"tail": 0.0}, "tail is"),
    (ExtremesEmbedding, {"tail": 0.5}, "tail is"),
    (ExtremesEmbedding, {"n_directions": 50_001}, "n_directions is"),
    (CoefficientPCA, {"embedding": CoefficientPCA()}, r"embedding is CoefficientPCA\(\); expected"),
    (
        CoefficientPCA,
        {"embedding": ProjectionEmbedding(box=[(0, 1)])},
        "embedding has a box or out_of_box: give the CoefficientPCA's",
    ),
    *(
        (EmbeddingUnion, {"parts": parts}, "expected embeddings, or")
        for parts in ([], [3, "js"], [("a",)], "js", [("a", 3)])
    ),
    (EmbeddingUnion, {"parts": [("a", MOMENTS), MOMENTS]}, "a part is MomentsEmb"),
    (EmbeddingUnion, {"parts": [("a", EmbeddingUnion())]}, "no union is a part"),
    (
        EmbeddingUnion,
        {"parts": [("a", MomentsEmbedding(box=[(0, 1)]))]},
        "part 'a' has a box .* the union's",
    ),
    (EmbeddingUnion, {"parts": [("a", MOMENTS)] * 2}, r"names of 2 parts are \['a', 'a'\]"),
    (EmbeddingUnion, {"parts": [("join", MOMENTS)]}, "name of a part is 'join'; expected"),
    (EmbeddingUnion, {"parts": [("a__b", MOMENTS)]}, "name of a part is 'a__b'; expected"),
    (EmbeddingUnion, {"weights": [1, 2, 3]}, "weights is .*; expected one number > 0 per part, 2"),
]


@pytest.mark.parametrize(("kind", "params", "message"), REFUSED)
def test_refusals(kind, params, message):
    """By a fit: before it, `repr` and `get_params` take anything."""
    embedding = kind(**params)
    assert repr(embedding).startswith(f"{kind.__name__}(")
    assert params.keys() <= embedding.get_params().keys()
    with pytest.raises(BagbasisError, match=message):
        embedding.fit(BAGS)
