"""A valid call of every public callable of embeddings, as `examples` has them."""

from __future__ import annotations

from typing import Any

from bagbasis import embeddings
from tests.contract.data_examples import Call, Example, calls
from tests.contract.model_examples import used

SPEC: dict[str, Any] = {"box": [(0, 1), (0, 1)]}


def _spec(made: Any) -> Call:
    return type(made), {**made.__dict__}


EMBEDDING_EXAMPLES: dict[str, Example] = {
    **{
        f"{kind.__name__.removesuffix('Embedding')}Spec": lambda w, kind=kind: _spec(
            kind().fit(w.arrays).spec_
        )
        for kind in (
            embeddings.CoefficientPCA,
            embeddings.ShrunkEmbedding,
            embeddings.HDDEmbedding,
            embeddings.PointTransformer,
        )
    },
    "HDDSpec.densities": lambda w: (
        embeddings.HDDEmbedding().fit(w.arrays).spec_.densities,
        {"bags": w.arrays},
    ),
    "EmbeddingUnion.get_params": lambda w: (embeddings.EmbeddingUnion().get_params, {}),
    "PointTransformer.transform_points": lambda w: (
        embeddings.PointTransformer().fit(w.arrays).transform_points,
        {"X": w.arrays},
    ),
    **calls(
        "",
        lambda w: embeddings,
        HistogramSpec={
            "distance": "l2", "n_bins": 3, "lambdas": (0.0,), "weights": (1.0,), **SPEC,
        },
        MeanMapSpec={
            "kernel": "gaussian", "n_features": 4, "bandwidth": 0.2, "nu": 1.5, "seed": 0, **SPEC,
        },
        MomentsSpec={"covariance": True, **SPEC},
        ProjectionSpec={"basis": "cosine", "n_per_dim": 3, "max_norm": None, **SPEC},
        BagOfWordsSpec={"centres": (0.25, 0.5, 0.75, 0.5), **SPEC},
        ExtremesSpec={"n_directions": 2, "tail": 0.1, "seed": 0, **SPEC},
        RankedSummariesSpec={"n_levels": 1, "quantiles": (0.0, 1.0) * 13, **SPEC},
        SizeSpec=SPEC,
        SlicedWassersteinSpec={"n_directions": 2, "n_quantiles": 3, "seed": 0, **SPEC},
        UnionSpec={
            "names": ("mean",),
            "parts": (embeddings.MomentsSpec(True, **SPEC),),
            "join": "sum",
            "scales": (1.0,),
            "weights": (1.0,),
            **SPEC,
        },
        bags_of_series=lambda w: {"X": w.series},
        mmd_squared=lambda w: {"A": w.features, "sizes_A": w.bags.sizes},
        spec_from_dict=lambda w: {
            "values": embeddings.spec_to_dict(w.regressor.features_.embedding)
        },
        spec_to_dict=lambda w: {"spec": w.regressor.features_.embedding},
    ),
    "SeriesEmbedding": used(embeddings.SeriesEmbedding, "series"),
    **calls(
        "SeriesEmbedding.",
        lambda w: embeddings.SeriesEmbedding().fit(w.series),
        get_feature_names_out={"input_features": ["u", "v"]},
        **dict.fromkeys(("fit", "transform"), lambda w: {"X": w.series}),
    ),
}  # fmt: skip

for _kind in embeddings.EMBEDDINGS.values():
    EMBEDDING_EXAMPLES[_kind.__name__] = used(_kind, "bags")
    EMBEDDING_EXAMPLES |= calls(
        f"{_kind.__name__}.",
        lambda w, kind=_kind: kind().fit(w.arrays),
        get_feature_names_out={},
        **dict.fromkeys(("fit", "transform"), lambda w: {"X": w.arrays}),
    )
