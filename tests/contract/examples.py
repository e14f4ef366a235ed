"""A valid call of every public callable: the function, and the arguments that others replace.

The constructor of an estimator only stores, so its example fits and uses it, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bagbasis import (
    divergences,
    embeddings,
    evaluation,
    hypotheses,
    ingest,
    monitoring,
    random_features,
    registry,
    regression,
    retraining,
    tuning,
)
from bagbasis.bags import BagStore
from tests.contract.data_examples import DATA_EXAMPLES, Call, Example
from tests.contract.world import N, World
from tests.ingest.annotated import annotated


def _used(kind: type, use: str, **fixed: Any) -> Example:
    """The example of an estimator: made, fitted and used."""

    def example(w: World) -> Call:
        def call(**parameters: Any) -> object:
            model = kind(**parameters)
            if use == "predict":
                labels = (
                    {"responses": w.answers}
                    if kind is regression.TripleBasisRegressor
                    else {"y": w.classes if kind is regression.DoubleBasisClassifier else w.y}
                )
                return model.fit(w.arrays, **labels).predict(w.arrays[:2])
            data = w.features if use == "rows" else w.distances if use == "matrix" else w.arrays
            return model.fit_transform(data)

        values = {name: getattr(w, value) for name, value in fixed.items()}
        return call, values

    return example


def _scored(kind: type) -> Example:
    """The example of `bag_scores` of an estimator."""

    def example(w: World) -> Call:
        model = kind(w.embedding, w.second, uncertainty=True)
        given = {} if kind is regression.TripleBasisRegressor else {"target": "c"}
        if kind is regression.DoubleBasisRegressor:
            given = {"target": "y"}
        return model.fit(w.store, **given).bag_scores, {"X": w.arrays}

    return example


MODEL = {"embedding": "embedding", "random_features": "second"}
SPEC: dict[str, Any] = {"box": [(0, 1), (0, 1)]}

EXAMPLES: dict[str, Example] = {
    **DATA_EXAMPLES,
    "divergences.DivergenceKernel": _used(divergences.DivergenceKernel, "bags"),
    "divergences.DivergenceKernel.fit": lambda w: (
        divergences.DivergenceKernel().fit,
        {"X": w.arrays},
    ),
    "divergences.DivergenceKernel.fit_transform": lambda w: (
        divergences.DivergenceKernel().fit_transform,
        {"X": w.arrays},
    ),
    "divergences.DivergenceKernel.transform": lambda w: (
        divergences.DivergenceKernel().fit(w.arrays).transform,
        {"X": w.arrays},
    ),
    "divergences.NystroemFeatures": _used(divergences.NystroemFeatures, "matrix"),
    "divergences.NystroemFeatures.fit": lambda w: (
        divergences.NystroemFeatures().fit,
        {"X": w.distances},
    ),
    "divergences.NystroemFeatures.transform": lambda w: (
        divergences.NystroemFeatures().fit(w.distances).transform,
        {"X": w.distances},
    ),
    "divergences.PSDRepair": _used(divergences.PSDRepair, "matrix"),
    "divergences.PSDRepair.fit": lambda w: (divergences.PSDRepair().fit, {"X": w.distances}),
    "divergences.PSDRepair.fit_transform": lambda w: (
        divergences.PSDRepair().fit_transform,
        {"X": w.distances},
    ),
    "divergences.PSDRepair.transform": lambda w: (
        divergences.PSDRepair().fit(w.distances).transform,
        {"X": w.distances},
    ),
    "divergences.divergence_matrix": lambda w: (divergences.divergence_matrix, {"X": w.arrays}),
    "divergences.kernel_matrix": lambda w: (divergences.kernel_matrix, {"D": w.distances}),
    "divergences.median_bandwidth": lambda w: (divergences.median_bandwidth, {"X": w.arrays}),
    "divergences.median_scale": lambda w: (divergences.median_scale, {"D": w.distances}),
    "embeddings.HDDSpec": lambda w: (
        embeddings.HDDSpec,
        {**embeddings.HDDEmbedding().fit(w.arrays).spec_.__dict__},
    ),
    "embeddings.HistogramSpec": lambda w: (
        embeddings.HistogramSpec,
        {"distance": "l2", "n_bins": 3, "lambdas": (0.0,), "weights": (1.0,), **SPEC},
    ),
    "embeddings.MeanMapSpec": lambda w: (
        embeddings.MeanMapSpec,
        {"kernel": "gaussian", "n_features": 4, "bandwidth": 0.2, "nu": 1.5, "seed": 0, **SPEC},
    ),
    "embeddings.MomentsSpec": lambda w: (embeddings.MomentsSpec, {"covariance": True, **SPEC}),
    "embeddings.ProjectionSpec": lambda w: (
        embeddings.ProjectionSpec,
        {"basis": "cosine", "n_per_dim": 3, "max_norm": None, **SPEC},
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
    "evaluation.evaluate": lambda w: (
        evaluation.evaluate,
        {"model": w.regressor, "data": w.store},
    ),
    "evaluation.cross_val_score": lambda w: (
        evaluation.cross_val_score,
        {"estimator": w.unfitted(), "X": w.store, "target": "y", "cv": 2},
    ),
    "evaluation.permutation_importance": lambda w: (
        evaluation.permutation_importance,
        {"model": w.regressor, "data": w.arrays, "y": w.y, "n_repeats": 1},
    ),
    "ingest.TableIngest": lambda w: (_table_ingest, _table(w)),
    "ingest.ingest_tables": lambda w: (ingest.ingest_tables, _table(w)),
    "ingest.ingest_anndata": lambda w: (
        ingest.ingest_anndata,
        {
            "cells": annotated(pd.DataFrame({"bag": [0, 0, 1]}), np.eye(3), ["f", "g", "h"]),
            "url": w.new(),
            "id_column": "bag",
            "coordinates": ["g"],
        },
    ),
    "ingest.ingest_arrays": lambda w: (
        ingest.ingest_arrays,
        {"arrays": w.arrays, "url": w.new(), "targets": w.y},
    ),
    "ingest.ingest_catalogue": lambda w: (
        ingest.ingest_catalogue,
        {"path": w.catalogue, "url": w.new(), "id_column": "bag", "coordinates": ["u"]},
    ),
    "ingest.ingest_images": lambda w: (
        ingest.ingest_images,
        {"images": [np.eye(4)] * 3, "url": w.new(), "targets": [0.0, 1.0, 2.0]},
    ),
    "ingest.ingest_frame": lambda w: (
        ingest.ingest_frame,
        {
            "points": pd.DataFrame({"bag": [0, 0, 1], "u": [0.0, 1.0, 2.0]}),
            "url": w.new(),
            "id_column": "bag",
            "coordinates": ["u"],
        },
    ),
    "ingest.ingest_npz": lambda w: (ingest.ingest_npz, {"path": w.npz, "url": w.new()}),
    "hypotheses.MixtureScore": lambda w: (hypotheses.MixtureScore, {"means": [0.0, 1.0]}),
    "hypotheses.SeriesScore": lambda w: (hypotheses.SeriesScore, {"density": w.densities[0]}),
    "hypotheses.fit_test": lambda w: (
        hypotheses.fit_test,
        {"x": w.features, "score": hypotheses.MixtureScore([0.0] * 3), "n_draws": 9},
    ),
    "hypotheses.independence_test": lambda w: (
        hypotheses.independence_test,
        {"x": w.arrays, "y": w.y, "n_permutations": 9},
    ),
    "hypotheses.two_sample_test": lambda w: (
        hypotheses.two_sample_test,
        {"a": w.features, "b": w.features + 0.1, "n_permutations": 9},
    ),
    "monitoring.drift_test": lambda w: (
        monitoring.drift_test,
        {"reference": w.arrays, "new": w.arrays, "n_features": 16, "n_permutations": 9},
    ),
    "random_features.RandomFourierFeatures": _used(random_features.RandomFourierFeatures, "rows"),
    "random_features.RandomFourierFeatures.fit": lambda w: (
        random_features.RandomFourierFeatures(16).fit,
        {"X": w.features},
    ),
    "random_features.RandomFourierFeatures.transform": lambda w: (
        random_features.RandomFourierFeatures(16).fit(w.features).transform,
        {"X": w.features},
    ),
    "random_features.RandomFourierFeatures.get_feature_names_out": lambda w: (
        random_features.RandomFourierFeatures(16).fit(w.features).get_feature_names_out,
        {},
    ),
    "random_features.NystroemFeatures": lambda w: (
        lambda **values: random_features.NystroemFeatures(**values).fit_transform(w.features),
        {"n_features": 4},
    ),
    **{
        f"random_features.NystroemFeatures.{method}": lambda w, method=method, given=given: (
            getattr(random_features.NystroemFeatures(4).fit(w.features), method),
            {"X": w.features} if given else {},
        )
        for method, given in (("fit", 1), ("transform", 1), ("get_feature_names_out", 0))
    },
    "random_features.FourierSpec": lambda w: (
        random_features.FourierSpec,
        {"n_inputs": 3, "n_features": 16, "scale": 1.0},
    ),
    "registry.Registry": lambda w: (
        lambda **values: registry.Registry(**values).list(),
        {"url": w.registry.url},
    ),
    "registry.Registry.model_url": lambda w: (w.registry.model_url, {"name": "a" * 16}),
    "registry.Registry.promote": lambda w: (
        w.registry.promote,
        {"name": w.registry.current()},
    ),
    "registry.Registry.register": lambda w: (w.registry.register, {"model": w.regressor}),
    "regression.Checkpoints": lambda w: (
        lambda **values: w.unfitted().fit(
            w.store, target="y", checkpoints=regression.Checkpoints(**values)
        ),
        {"url": w.new("")},
    ),
    "regression.DoubleBasisRegressor": _used(regression.DoubleBasisRegressor, "predict", **MODEL),
    "regression.DoubleBasisRegressor.fit": lambda w: (w.unfitted().fit, {"X": w.arrays, "y": w.y}),
    "regression.DoubleBasisRegressor.predict": lambda w: (w.regressor.predict, {"X": w.arrays}),
    **{
        f"regression.{kind.__name__}.bag_scores": _scored(kind)
        for kind in (
            regression.DoubleBasisRegressor,
            regression.DoubleBasisClassifier,
            regression.TripleBasisRegressor,
        )
    },
    "regression.DoubleBasisRegressor.conformalize": lambda w: (
        w.unfitted().fit(w.store, target="y").conformalize,
        {"X": w.arrays, "y": w.y, "groups": np.arange(N) // 2},
    ),
    "regression.DoubleBasisRegressor.predict_interval": lambda w: (
        w.unfitted().fit(w.store, target="y").conformalize(w.arrays, w.y).predict_interval,
        {"X": w.arrays, "coverage": 0.5},
    ),
    "regression.DoubleBasisRegressor.save": lambda w: (w.regressor.save, {"url": w.new()}),
    "regression.DoubleBasisClassifier": _used(regression.DoubleBasisClassifier, "predict", **MODEL),
    "regression.DoubleBasisClassifier.fit": lambda w: (
        regression.DoubleBasisClassifier(w.embedding, w.second).fit,
        {"X": w.arrays, "y": w.classes},
    ),
    "regression.DoubleBasisClassifier.predict": lambda w: (
        w.classifier.predict,
        {"X": w.arrays},
    ),
    "regression.DoubleBasisClassifier.predict_proba": lambda w: (
        w.classifier.predict_proba,
        {"X": w.arrays},
    ),
    "regression.DoubleBasisClassifier.decision_function": lambda w: (
        w.classifier.decision_function,
        {"X": w.arrays},
    ),
    "regression.DoubleBasisClassifier.score": lambda w: (
        w.classifier.score,
        {"X": w.arrays, "y": [0, 1] * (N // 2)},
    ),
    "regression.DoubleBasisRegressor.score": lambda w: (
        w.regressor.score,
        {"X": w.arrays, "y": w.y},
    ),
    "regression.DoubleBasisClassifier.save": lambda w: (w.classifier.save, {"url": w.new()}),
    "regression.TripleBasisRegressor": _used(regression.TripleBasisRegressor, "predict", **MODEL),
    "regression.TripleBasisRegressor.fit": lambda w: (
        regression.TripleBasisRegressor(w.embedding, w.second, w.embedding).fit,
        {"X": w.arrays, "responses": w.answers},
    ),
    "regression.TripleBasisRegressor.score": lambda w: (
        w.triple.score,
        {"X": w.arrays, "responses": w.answers},
    ),
    "regression.KernelSmoother": _used(regression.KernelSmoother, "predict", embedding="embedding"),
    "regression.KernelSmoother.fit": lambda w: (
        regression.KernelSmoother(w.embedding).fit,
        {"X": w.arrays, "y": w.y},
    ),
    "regression.KernelSmoother.score": lambda w: (
        regression.KernelSmoother(w.embedding).fit(w.arrays, w.y).score,
        {"X": w.arrays, "y": w.y},
    ),
    "regression.features": lambda w: (
        regression.features,
        {"store": w.store, "embedding": w.embedding, "random_features": w.second},
    ),
    "regression.iter_predictions": lambda w: (
        lambda **values: list(regression.iter_predictions(**values)),
        {"model": w.regressor, "store": w.store},
    ),
    "regression.load_model": lambda w: (regression.load_model, {"url": w.model_url}),
    "regression.save_model": lambda w: (
        regression.save_model,
        {"model": w.regressor, "url": w.new()},
    ),
    "regression.write_predictions": lambda w: (
        regression.write_predictions,
        {"model": w.regressor, "store": w.store, "url": w.new()},
    ),
    "retraining.DriftGate": lambda w: (retraining.DriftGate, {}),
    "retraining.Window": lambda w: (retraining.Window, {"bags": 5}),
    "retraining.Retraining": lambda w: (retraining.Retraining, _line(w)),
    "retraining.retrain": lambda w: (
        retraining.retrain,
        {"spec": retraining.Retraining(**_line(w))},
    ),
    "tuning.Search": lambda w: (
        lambda **values: tuning.Search(**values).check(),
        {"embeddings": [w.embedding]},
    ),
    "tuning.tune": lambda w: (
        tuning.tune,
        {
            "store": w.larger,
            "estimator": w.unfitted().set_params(validation_fraction=0.5),
            "search": tuning.Search([w.embedding], [1.0]),
            "target": "y",
        },
    ),
}


def _table(w: World) -> dict[str, Any]:
    return {"points": w.table, "url": w.new(), "id_column": "bag", "coordinates": ["u", "v"]}


def _table_ingest(**values: Any) -> BagStore:
    return ingest.TableIngest(**values).run()


def _line(w: World) -> dict[str, Any]:
    registry_url = str(w.new(""))
    return {
        "data_url": w.url,
        "registry_url": registry_url,
        "estimator": w.unfitted(),
        "target": "y",
        "holdout": 0.3,
    }


_TESTS = hypotheses.TWO_SAMPLE, hypotheses.INDEPENDENCE, hypotheses.FIT
for _statistic in (kind for table in _TESTS for kind in table.values()):
    EXAMPLES[f"hypotheses.{_statistic.__name__}"] = lambda w, kind=_statistic: (kind, {})

for _name, (_kind, _) in embeddings.EMBEDDINGS.items():
    _key = f"embeddings.{_kind.__name__}"
    EXAMPLES[_key] = _used(_kind, "bags")
    EXAMPLES[f"{_key}.fit"] = lambda w, kind=_kind: (kind().fit, {"X": w.arrays})
    EXAMPLES[f"{_key}.get_feature_names_out"] = lambda w, kind=_kind: (
        kind().fit(w.arrays).get_feature_names_out,
        {},
    )
    EXAMPLES[f"{_key}.transform"] = lambda w, kind=_kind: (
        kind().fit(w.arrays).transform,
        {"X": w.arrays},
    )

for _key, _name in (("TripleBasisRegressor", "triple"), ("KernelSmoother", "smoother")):
    for _method, _values in {
        "predict": {},
        "densities": {},
        "predict_density": {"grid": 3},
        "sample": {"n": 3},
        **({"save": None} if _name == "triple" else {}),
    }.items():
        EXAMPLES[f"regression.{_key}.{_method}"] = lambda w, model=_name, m=_method, v=_values: (
            getattr(getattr(w, model), m),
            {"url": w.new()} if v is None else {"X": w.arrays, **v},
        )
