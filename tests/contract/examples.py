"""A valid call of every public callable: the function, and the arguments that others replace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import bagbasis
from bagbasis import (
    BagStore,
    densities,
    embeddings,
    hypotheses,
    ingest,
    models,
    operations,
)
from tests.contract.data_examples import DATA_EXAMPLES, Example
from tests.contract.embedding_examples import EMBEDDING_EXAMPLES
from tests.contract.model_examples import MODEL_EXAMPLES, used
from tests.contract.run_examples import RUN_EXAMPLES
from tests.contract.search_examples import SEARCH_EXAMPLES
from tests.contract.world import World
from tests.ingest.formats.annotated import annotated

TRIPLES = np.random.default_rng(0).laplace(size=(60, 3))
IMAGE = np.random.default_rng(0).random((12, 12))


def _detector() -> operations.DriftDetector:
    return operations.DriftDetector(n_permutations=9, n_frequencies=8)


def _saved_detector(url: Any) -> Any:
    _detector().fit(np.arange(20.0)[:, None]).save(url)
    return url


EXAMPLES: dict[str, Example] = {
    **DATA_EXAMPLES,
    **EMBEDDING_EXAMPLES,
    **MODEL_EXAMPLES,
    **RUN_EXAMPLES,
    **SEARCH_EXAMPLES,
    "DivergenceKernel": used(densities.DivergenceKernel, "bags"),
    "DivergenceKernel.fit": lambda w: (
        densities.DivergenceKernel().fit,
        {"X": w.arrays},
    ),
    "DivergenceKernel.fit_transform": lambda w: (
        densities.DivergenceKernel().fit_transform,
        {"X": w.arrays},
    ),
    "DivergenceKernel.transform": lambda w: (
        densities.DivergenceKernel().fit(w.arrays).transform,
        {"X": w.arrays},
    ),
    "PrecomputedNystroem": used(densities.PrecomputedNystroem, "matrix"),
    "PrecomputedNystroem.fit": lambda w: (
        densities.PrecomputedNystroem().fit,
        {"X": w.distances},
    ),
    "PrecomputedNystroem.transform": lambda w: (
        densities.PrecomputedNystroem().fit(w.distances).transform,
        {"X": w.distances},
    ),
    "PSDRepair": used(densities.PSDRepair, "matrix"),
    "PSDRepair.fit": lambda w: (densities.PSDRepair().fit, {"X": w.distances}),
    "PSDRepair.fit_transform": lambda w: (
        densities.PSDRepair().fit_transform,
        {"X": w.distances},
    ),
    "PSDRepair.transform": lambda w: (
        densities.PSDRepair().fit(w.distances).transform,
        {"X": w.distances},
    ),
    "divergence_matrix": lambda w: (densities.divergence_matrix, {"X": w.arrays}),
    "kernel_matrix": lambda w: (densities.kernel_matrix, {"D": w.distances}),
    "median_bandwidth": lambda w: (densities.median_bandwidth, {"X": w.arrays}),
    "median_scale": lambda w: (densities.median_scale, {"D": w.distances}),
    "evaluate": lambda w: (
        bagbasis.evaluate,
        {"model": w.regressor, "X": w.store},
    ),
    "cross_val_score": lambda w: (
        bagbasis.cross_val_score,
        {"estimator": w.unfitted(), "X": w.store, "target": "y", "cv": 2},
    ),
    "judge_fit": lambda w: (
        models.judge_fit,
        {"model": w.regressor, "X": w.store},
    ),
    "explain": lambda w: (models.explain, {"model": w.regressor, "bag": w.arrays[0]}),
    "Explanation.plot": lambda w: (models.explain(w.regressor, w.arrays[0]).plot, {}),
    "Explanation.to_frame": lambda w: (models.explain(w.regressor, w.arrays[0]).to_frame, {}),
    "Errors.plot": lambda w: (w.errors.plot, {}),
    "Importance.plot": lambda w: (
        models.permutation_importance(w.regressor, w.arrays, w.y, n_repeats=1).plot,
        {},
    ),
    "HypothesisResult.report": lambda w: (
        hypotheses.two_sample_test(w.features, w.features + 0.1, n_permutations=9).report,
        {"url": f"{w.new()}.html"},
    ),
    "HypothesisResult.plot": lambda w: (
        hypotheses.two_sample_test(w.features, w.features + 0.1, n_permutations=9).plot,
        {},
    ),
    "permutation_importance": lambda w: (
        models.permutation_importance,
        {"model": w.regressor, "X": w.arrays, "y": w.y, "n_repeats": 1},
    ),
    "TableIngest": lambda w: (_table_ingest, _table(w)),
    "TableIngest.run": lambda w: (ingest.TableIngest(**_table(w)).run, {}),
    "ingest_tables": lambda w: (ingest.ingest_tables, _table(w)),
    "ingest_anndata": lambda w: (
        ingest.ingest_anndata,
        {
            "cells": annotated(pd.DataFrame({"bag": [0, 0, 1]}), np.eye(3), ["f", "g", "h"]),
            "url": w.new(),
            "id_column": "bag",
            "coordinates": ["g"],
        },
    ),
    "ingest_arrays": lambda w: (
        ingest.ingest_arrays,
        {"arrays": w.arrays, "url": w.new(), "targets": w.y},
    ),
    "ingest_catalogue": lambda w: (
        ingest.ingest_catalogue,
        {"path": w.catalogue, "url": w.new(), "id_column": "bag", "coordinates": ["u"]},
    ),
    "ingest_patches": lambda w: (
        ingest.ingest_patches,
        {"points": w.catalogue_of_slides, "url": w.new()},
    ),
    "ingest_fcs": lambda w: (ingest.ingest_fcs, {"points": w.fcs, "url": w.new()}),
    "ingest_images": lambda w: (
        ingest.ingest_images,
        {"images": [np.eye(4)] * 3, "url": w.new(), "targets": [0.0, 1.0, 2.0]},
    ),
    "ingest_frame": lambda w: (
        ingest.ingest_frame,
        {
            "points": pd.DataFrame({"bag": [0, 0, 1], "u": [0.0, 1.0, 2.0]}),
            "url": w.new(),
            "id_column": "bag",
            "coordinates": ["u"],
        },
    ),
    "ingest_npz": lambda w: (ingest.ingest_npz, {"path": w.npz, "url": w.new()}),
    "IndependentSubspaces": lambda w: (
        lambda **values: hypotheses.IndependentSubspaces(**values).fit(TRIPLES),
        {"dims": [2, 1], "n_features": 4},
    ),
    "IndependentSubspaces.fit": lambda w: (
        hypotheses.IndependentSubspaces(1, n_features=4).fit,
        {"X": TRIPLES},
    ),
    "IndependentSubspaces.transform": lambda w: (
        hypotheses.IndependentSubspaces(1, n_features=4).fit(TRIPLES).transform,
        {"X": TRIPLES},
    ),
    "DerivativeNorms.selected": lambda w: (
        hypotheses.DerivativeNorms(np.ones(2), np.ones(2)).selected,
        {"k": 1},
    ),
    **{
        f"Registration.{method}": lambda w, method=method, given=given: (
            getattr(hypotheses.Registration((1.0, 0.0), 5.0, 1.0, 0.5, "kcca"), method),
            {**given, "shape": (12, 12)},
        )
        for method, given in (("apply", {"image": IMAGE}), ("places", {}))
    },
    "derivative_norms": lambda w: (
        hypotheses.derivative_norms,
        {"model": w.regressor, "X": w.arrays, "n_draws": 1},
    ),
    "register_images": lambda w: (
        hypotheses.register_images,
        {"reference": IMAGE, "image": IMAGE, "max_shift": 0, "max_angle": 0, "n_features": 4},
    ),
    "select_coordinates": lambda w: (
        hypotheses.select_coordinates,
        {"X": TRIPLES, "y": TRIPLES[:, 0], "k": 1, "n_features": 4, "n_folds": 3},
    ),
    "MixtureScore": lambda w: (hypotheses.MixtureScore, {"means": [0.0, 1.0]}),
    "SeriesScore": lambda w: (hypotheses.SeriesScore, {"density": w.densities[0]}),
    "fit_test": lambda w: (
        hypotheses.fit_test,
        {"x": w.features, "score": hypotheses.MixtureScore([0.0] * 3), "n_draws": 9},
    ),
    "independence_test": lambda w: (
        hypotheses.independence_test,
        {"x": w.arrays, "y": w.y, "n_permutations": 9},
    ),
    "two_sample_test": lambda w: (
        hypotheses.two_sample_test,
        {"a": w.features, "b": w.features + 0.1, "n_permutations": 9},
    ),
    "DriftDetector": lambda w: (
        lambda **given: operations.DriftDetector(**given).fit(w.arrays).predict(w.arrays),
        {"n_permutations": 9, "n_frequencies": 8},
    ),
    "DriftDetector.fit": lambda w: (_detector().fit, {"reference": w.features}),
    "DriftDetector.test": lambda w: (
        _detector().fit(w.features).test,
        {"new": w.features},
    ),
    "DriftDetector.predict": lambda w: (
        _detector().fit(w.features).predict,
        {"new": w.features},
    ),
    "DriftResult.plot": lambda w: (
        _detector().fit(w.features).test(w.features).plot,
        {},
    ),
    "DriftPrediction.plot": lambda w: (
        _detector().fit(w.features).predict(w.features).plot,
        {},
    ),
    "DriftDetector.save": lambda w: (
        _detector().fit(w.features).save,
        {"url": w.new()},
    ),
    "DriftDetector.load": lambda w: (
        operations.DriftDetector.load,
        {"url": _saved_detector(w.new())},
    ),
    "drift_test": lambda w: (
        operations.drift_test,
        {"reference": w.arrays, "new": w.arrays, "n_features": 16, "n_permutations": 9},
    ),
    "RandomFourierFeatures": used(bagbasis.RandomFourierFeatures, "rows"),
    "RandomFourierFeatures.fit": lambda w: (
        bagbasis.RandomFourierFeatures(n_features=16).fit,
        {"X": w.features},
    ),
    "RandomFourierFeatures.transform": lambda w: (
        bagbasis.RandomFourierFeatures(n_features=16).fit(w.features).transform,
        {"X": w.features},
    ),
    "RandomFourierFeatures.get_feature_names_out": lambda w: (
        bagbasis.RandomFourierFeatures(n_features=16).fit(w.features).get_feature_names_out,
        {},
    ),
    "NystroemFeatures": lambda w: (
        lambda **values: bagbasis.NystroemFeatures(**values).fit_transform(w.features),
        {"n_features": 4},
    ),
    **{
        f"NystroemFeatures.{method}": lambda w, method=method, given=given: (
            getattr(bagbasis.NystroemFeatures(n_features=4).fit(w.features), method),
            {"X": w.features} if given else {},
        )
        for method, given in (("fit", 1), ("transform", 1), ("get_feature_names_out", 0))
    },
    "LearnedFourierFeatures": lambda w: (
        lambda **values: bagbasis.LearnedFourierFeatures(**values).fit(w.features, w.y),
        {"n_features": 4, "n_sweeps": 1},
    ),
    **{
        f"LearnedFourierFeatures.{method}": lambda w, method=method, given=given: (
            getattr(
                bagbasis.LearnedFourierFeatures(n_features=4, n_sweeps=1).fit(w.features, w.y),
                method,
            ),
            {name: getattr(w, {"X": "features"}.get(name, name)) for name in given},
        )
        for method, given in (("fit", "Xy"), ("transform", "X"), ("get_feature_names_out", ""))
    },
    "FourierSpec": lambda w: (
        embeddings.FourierSpec,
        {"n_inputs": 3, "n_features": 16, "scale": 1.0},
    ),
    "Registry": lambda w: (
        lambda **values: operations.Registry(**values).list(),
        {"url": w.registry.url},
    ),
    **{
        f"Registry.{method}": lambda w, method=method: (getattr(_promoted(w), method), {})
        for method in ("current", "history", "list", "load_current", "rollback")
    },
    "log_model": lambda w: (operations.log_model, {"model": w.regressor}),
    "Registry.model_url": lambda w: (w.registry.model_url, {"name": "a" * 16}),
    "Registry.promote": lambda w: (
        w.registry.promote,
        {"name": w.registry.current()},
    ),
    "Registry.register": lambda w: (w.registry.register, {"model": w.regressor}),
    "DriftGate": lambda w: (operations.DriftGate, {}),
    "Window": lambda w: (operations.Window, {"bags": 5}),
    "Retraining": lambda w: (operations.Retraining, _line(w)),
    "Retraining.labelled": lambda w: (
        operations.Retraining(**_line(w)).labelled,
        {"store": w.store},
    ),
    "retrain": lambda w: (
        operations.retrain,
        {"spec": operations.Retraining(**_line(w))},
    ),
    "Candidate.estimator": lambda w: (
        models.Candidate(0, 1.0, w.regressor.features_, w.embedding).estimator,
        {"base": w.unfitted()},
    ),
    "Search.auto": lambda w: (models.Search.auto, {}),
    "Search": lambda w: (
        lambda **values: models.Search(**values).check(),
        {"embeddings": [w.embedding]},
    ),
    "Search.check": lambda w: (models.Search(embeddings=[w.embedding]).check, {}),
    "tune": lambda w: (
        models.tune,
        {
            "estimator": w.unfitted().set_params(validation_fraction=0.5),
            "X": w.larger,
            "search": models.Search([w.embedding], scale_multipliers=[1.0]),
            "target": "y",
        },
    ),
    "Tuning.plot": lambda w: (_tuned(w).plot, {}),
}


def _tuned(w: World) -> models.Tuning:
    estimator = w.unfitted().set_params(validation_fraction=0.5)
    search = models.Search([w.embedding], scale_multipliers=[1.0])
    return models.tune(estimator, w.larger, search=search, target="y")


def _table(w: World) -> dict[str, Any]:
    return {"points": w.table, "url": w.new(), "id_column": "bag", "coordinates": ["u", "v"]}


def _table_ingest(**values: Any) -> BagStore:
    return ingest.TableIngest(**values).run()


def _promoted(w: World) -> operations.Registry:
    """A registry of two champions, one after the other."""
    made = operations.Registry(w.new(""))
    for model in (w.regressor, w.classifier):
        made.promote(made.register(model))
    return made


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
    EXAMPLES[f"{_statistic.__name__}"] = lambda w, kind=_statistic: (kind, {})
