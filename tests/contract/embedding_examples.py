"""A valid call of every public callable of embeddings, as `examples` has them."""

from __future__ import annotations

from typing import Any

from bagbasis import embeddings
from tests.contract.data_examples import Example
from tests.contract.model_examples import used

SPEC: dict[str, Any] = {"box": [(0, 1), (0, 1)]}

EMBEDDING_EXAMPLES: dict[str, Example] = {
    "CoefficientPCASpec": lambda w: (
        embeddings.CoefficientPCASpec,
        {**embeddings.CoefficientPCA().fit(w.arrays).spec_.__dict__},
    ),
    "ShrunkSpec": lambda w: (
        embeddings.ShrunkSpec,
        {**embeddings.ShrunkEmbedding().fit(w.arrays).spec_.__dict__},
    ),
    "HDDSpec": lambda w: (
        embeddings.HDDSpec,
        {**embeddings.HDDEmbedding().fit(w.arrays).spec_.__dict__},
    ),
    "HDDSpec.densities": lambda w: (
        embeddings.HDDEmbedding().fit(w.arrays).spec_.densities,
        {"bags": w.arrays},
    ),
    "EmbeddingUnion.get_params": lambda w: (embeddings.EmbeddingUnion().get_params, {}),
    "HistogramSpec": lambda w: (
        embeddings.HistogramSpec,
        {"distance": "l2", "n_bins": 3, "lambdas": (0.0,), "weights": (1.0,), **SPEC},
    ),
    "MeanMapSpec": lambda w: (
        embeddings.MeanMapSpec,
        {"kernel": "gaussian", "n_features": 4, "bandwidth": 0.2, "nu": 1.5, "seed": 0, **SPEC},
    ),
    "MomentsSpec": lambda w: (embeddings.MomentsSpec, {"covariance": True, **SPEC}),
    "PointTransformer.transform_points": lambda w: (
        embeddings.PointTransformer().fit(w.arrays).transform_points,
        {"X": w.arrays},
    ),
    "PointTransformerSpec": lambda w: (
        embeddings.PointTransformerSpec,
        {**embeddings.PointTransformer().fit(w.arrays).spec_.__dict__},
    ),
    "ProjectionSpec": lambda w: (
        embeddings.ProjectionSpec,
        {"basis": "cosine", "n_per_dim": 3, "max_norm": None, **SPEC},
    ),
    "BagOfWordsSpec": lambda w: (
        embeddings.BagOfWordsSpec,
        {"centres": (0.25, 0.5, 0.75, 0.5), **SPEC},
    ),
    "ExtremesSpec": lambda w: (
        embeddings.ExtremesSpec,
        {"n_directions": 2, "tail": 0.1, "seed": 0, **SPEC},
    ),
    "SizeSpec": lambda w: (embeddings.SizeSpec, {**SPEC}),
    "SlicedWassersteinSpec": lambda w: (
        embeddings.SlicedWassersteinSpec,
        {"n_directions": 2, "n_quantiles": 3, "seed": 0, **SPEC},
    ),
    "UnionSpec": lambda w: (
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
    "SeriesEmbedding": used(embeddings.SeriesEmbedding, "series"),
    "SeriesEmbedding.fit": lambda w: (
        embeddings.SeriesEmbedding().fit,
        {"X": w.series},
    ),
    "SeriesEmbedding.transform": lambda w: (
        embeddings.SeriesEmbedding().fit(w.series).transform,
        {"X": w.series},
    ),
    "SeriesEmbedding.get_feature_names_out": lambda w: (
        embeddings.SeriesEmbedding().fit(w.series).get_feature_names_out,
        {"input_features": ["u", "v"]},
    ),
    "bags_of_series": lambda w: (embeddings.bags_of_series, {"X": w.series}),
    "mmd_squared": lambda w: (
        embeddings.mmd_squared,
        {"A": w.features, "sizes_A": w.bags.sizes},
    ),
    "spec_from_dict": lambda w: (
        embeddings.spec_from_dict,
        {"values": embeddings.spec_to_dict(w.regressor.features_.embedding)},
    ),
    "spec_to_dict": lambda w: (
        embeddings.spec_to_dict,
        {"spec": w.regressor.features_.embedding},
    ),
}

for _name, _kind in embeddings.EMBEDDINGS.items():
    _key = f"{_kind.__name__}"
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
