"""A valid call of every public callable of embeddings, as `examples` has them."""

from __future__ import annotations

from typing import Any

from bagbasis import embeddings
from tests.contract.data_examples import Example
from tests.contract.model_examples import used

SPEC: dict[str, Any] = {"box": [(0, 1), (0, 1)]}

EMBEDDING_EXAMPLES: dict[str, Example] = {
    "embeddings.CoefficientPCASpec": lambda w: (
        embeddings.CoefficientPCASpec,
        {**embeddings.CoefficientPCA().fit(w.arrays).spec_.__dict__},
    ),
    "embeddings.ShrunkSpec": lambda w: (
        embeddings.ShrunkSpec,
        {**embeddings.ShrunkEmbedding().fit(w.arrays).spec_.__dict__},
    ),
    "embeddings.HDDSpec": lambda w: (
        embeddings.HDDSpec,
        {**embeddings.HDDEmbedding().fit(w.arrays).spec_.__dict__},
    ),
    "embeddings.HDDSpec.densities": lambda w: (
        embeddings.HDDEmbedding().fit(w.arrays).spec_.densities,
        {"bags": w.arrays},
    ),
    "embeddings.EmbeddingUnion.get_params": lambda w: (embeddings.EmbeddingUnion().get_params, {}),
    "embeddings.HistogramSpec": lambda w: (
        embeddings.HistogramSpec,
        {"distance": "l2", "n_bins": 3, "lambdas": (0.0,), "weights": (1.0,), **SPEC},
    ),
    "embeddings.MeanMapSpec": lambda w: (
        embeddings.MeanMapSpec,
        {"kernel": "gaussian", "n_features": 4, "bandwidth": 0.2, "nu": 1.5, "seed": 0, **SPEC},
    ),
    "embeddings.MomentsSpec": lambda w: (embeddings.MomentsSpec, {"covariance": True, **SPEC}),
    "embeddings.PointTransformer.transform_points": lambda w: (
        embeddings.PointTransformer().fit(w.arrays).transform_points,
        {"X": w.arrays},
    ),
    "embeddings.PointTransformerSpec": lambda w: (
        embeddings.PointTransformerSpec,
        {**embeddings.PointTransformer().fit(w.arrays).spec_.__dict__},
    ),
    "embeddings.ProjectionSpec": lambda w: (
        embeddings.ProjectionSpec,
        {"basis": "cosine", "n_per_dim": 3, "max_norm": None, **SPEC},
    ),
    "embeddings.BagOfWordsSpec": lambda w: (
        embeddings.BagOfWordsSpec,
        {"centres": (0.25, 0.5, 0.75, 0.5), **SPEC},
    ),
    "embeddings.ExtremesSpec": lambda w: (
        embeddings.ExtremesSpec,
        {"n_directions": 2, "tail": 0.1, "seed": 0, **SPEC},
    ),
    "embeddings.SlicedWassersteinSpec": lambda w: (
        embeddings.SlicedWassersteinSpec,
        {"n_directions": 2, "n_quantiles": 3, "seed": 0, **SPEC},
    ),
    "embeddings.UnionSpec": lambda w: (
        embeddings.UnionSpec,
        {
            "names": ("mean",),
            "parts": (embeddings.MomentsSpec(True, **SPEC),),
            "join": "sum",
            "scales": (1.0,),
            "weights": (1.0,),
            **SPEC,
        },
    ),
    "embeddings.SeriesEmbedding": used(embeddings.SeriesEmbedding, "series"),
    "embeddings.SeriesEmbedding.fit": lambda w: (
        embeddings.SeriesEmbedding().fit,
        {"X": w.series},
    ),
    "embeddings.SeriesEmbedding.transform": lambda w: (
        embeddings.SeriesEmbedding().fit(w.series).transform,
        {"X": w.series},
    ),
    "embeddings.SeriesEmbedding.get_feature_names_out": lambda w: (
        embeddings.SeriesEmbedding().fit(w.series).get_feature_names_out,
        {"input_features": ["u", "v"]},
    ),
    "embeddings.bags_of_series": lambda w: (embeddings.bags_of_series, {"X": w.series}),
    "embeddings.mmd_squared": lambda w: (
        embeddings.mmd_squared,
        {"A": w.features, "sizes_A": w.bags.sizes},
    ),
    "embeddings.spec_from_dict": lambda w: (
        embeddings.spec_from_dict,
        {"values": embeddings.spec_to_dict(w.regressor.features_.embedding)},
    ),
    "embeddings.spec_to_dict": lambda w: (
        embeddings.spec_to_dict,
        {"spec": w.regressor.features_.embedding},
    ),
}

for _name, _kind in embeddings.EMBEDDINGS.items():
    _key = f"embeddings.{_kind.__name__}"
    EMBEDDING_EXAMPLES[_key] = used(_kind, "bags")
    EMBEDDING_EXAMPLES[f"{_key}.fit"] = lambda w, kind=_kind: (kind().fit, {"X": w.arrays})
    EMBEDDING_EXAMPLES[f"{_key}.get_feature_names_out"] = lambda w, kind=_kind: (
        kind().fit(w.arrays).get_feature_names_out,
        {},
    )
    EMBEDDING_EXAMPLES[f"{_key}.transform"] = lambda w, kind=_kind: (
        kind().fit(w.arrays).transform,
        {"X": w.arrays},
    )
