"""A valid call of every public callable: the function, and the arguments that others replace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bagbasis import (
    divergences,
    evaluation,
    hypotheses,
    ingest,
    monitoring,
    objectives,
    random_features,
    registry,
    retraining,
    tuning,
)
from bagbasis.store import BagStore
from tests.contract.data_examples import DATA_EXAMPLES, Example
from tests.contract.embedding_examples import EMBEDDING_EXAMPLES
from tests.contract.model_examples import MODEL_EXAMPLES, used
from tests.contract.run_examples import RUN_EXAMPLES
from tests.contract.search_examples import SEARCH_EXAMPLES
from tests.contract.world import World
from tests.ingest.formats.annotated import annotated

TRIPLES = np.random.default_rng(0).laplace(size=(60, 3))
IMAGE = np.random.default_rng(0).random((12, 12))


def _detector() -> monitoring.DriftDetector:
    return monitoring.DriftDetector(n_permutations=9, n_frequencies=8)


def _saved_detector(url: Any) -> Any:
    _detector().fit(np.arange(20.0)[:, None]).save(url)
    return url


EXAMPLES: dict[str, Example] = {
    **DATA_EXAMPLES,
    **EMBEDDING_EXAMPLES,
    **MODEL_EXAMPLES,
    **RUN_EXAMPLES,
    **SEARCH_EXAMPLES,
    "divergences.DivergenceKernel": used(divergences.DivergenceKernel, "bags"),
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
    "divergences.PrecomputedNystroem": used(divergences.PrecomputedNystroem, "matrix"),
    "divergences.PrecomputedNystroem.fit": lambda w: (
        divergences.PrecomputedNystroem().fit,
        {"X": w.distances},
    ),
    "divergences.PrecomputedNystroem.transform": lambda w: (
        divergences.PrecomputedNystroem().fit(w.distances).transform,
        {"X": w.distances},
    ),
    "divergences.PSDRepair": used(divergences.PSDRepair, "matrix"),
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
    "evaluation.evaluate": lambda w: (
        evaluation.evaluate,
        {"model": w.regressor, "data": w.store},
    ),
    "evaluation.cross_val_score": lambda w: (
        evaluation.cross_val_score,
        {"estimator": w.unfitted(), "X": w.store, "target": "y", "cv": 2},
    ),
    "evaluation.judge_fit": lambda w: (
        evaluation.judge_fit,
        {"model": w.regressor, "store": w.store},
    ),
    "evaluation.permutation_importance": lambda w: (
        evaluation.permutation_importance,
        {"model": w.regressor, "data": w.arrays, "y": w.y, "n_repeats": 1},
    ),
    "ingest.TableIngest": lambda w: (_table_ingest, _table(w)),
    "ingest.TableIngest.run": lambda w: (ingest.TableIngest(**_table(w)).run, {}),
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
    "ingest.ingest_patches": lambda w: (
        ingest.ingest_patches,
        {"points": w.catalogue_of_slides, "url": w.new()},
    ),
    "ingest.ingest_fcs": lambda w: (ingest.ingest_fcs, {"points": w.fcs, "url": w.new()}),
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
    "objectives.IndependentSubspaces": lambda w: (
        lambda **values: objectives.IndependentSubspaces(**values).fit(TRIPLES),
        {"dims": [2, 1], "n_features": 4},
    ),
    "objectives.IndependentSubspaces.fit": lambda w: (
        objectives.IndependentSubspaces(1, 4).fit,
        {"X": TRIPLES},
    ),
    "objectives.IndependentSubspaces.transform": lambda w: (
        objectives.IndependentSubspaces(1, 4).fit(TRIPLES).transform,
        {"X": TRIPLES},
    ),
    "objectives.DerivativeNorms.selected": lambda w: (
        objectives.DerivativeNorms(np.ones(2), np.ones(2)).selected,
        {"k": 1},
    ),
    **{
        f"objectives.Registration.{method}": lambda w, method=method, given=given: (
            getattr(objectives.Registration((1.0, 0.0), 5.0, 1.0, 0.5, "kcca"), method),
            {**given, "shape": (12, 12)},
        )
        for method, given in (("apply", {"image": IMAGE}), ("places", {}))
    },
    "objectives.derivative_norms": lambda w: (
        objectives.derivative_norms,
        {"model": w.regressor, "X": w.arrays, "n_draws": 1},
    ),
    "objectives.register_images": lambda w: (
        objectives.register_images,
        {"reference": IMAGE, "image": IMAGE, "max_shift": 0, "max_angle": 0, "n_features": 4},
    ),
    "objectives.select_coordinates": lambda w: (
        objectives.select_coordinates,
        {"X": TRIPLES, "y": TRIPLES[:, 0], "k": 1, "n_features": 4, "n_folds": 3},
    ),
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
    "monitoring.DriftDetector": lambda w: (
        lambda **given: monitoring.DriftDetector(**given).fit(w.arrays).predict(w.arrays),
        {"n_permutations": 9, "n_frequencies": 8},
    ),
    "monitoring.DriftDetector.fit": lambda w: (_detector().fit, {"reference": w.features}),
    "monitoring.DriftDetector.test": lambda w: (
        _detector().fit(w.features).test,
        {"new": w.features},
    ),
    "monitoring.DriftDetector.predict": lambda w: (
        _detector().fit(w.features).predict,
        {"new": w.features},
    ),
    "monitoring.DriftDetector.save": lambda w: (
        _detector().fit(w.features).save,
        {"url": w.new()},
    ),
    "monitoring.DriftDetector.load": lambda w: (
        monitoring.DriftDetector.load,
        {"url": _saved_detector(w.new())},
    ),
    "monitoring.drift_test": lambda w: (
        monitoring.drift_test,
        {"reference": w.arrays, "new": w.arrays, "n_features": 16, "n_permutations": 9},
    ),
    "random_features.RandomFourierFeatures": used(random_features.RandomFourierFeatures, "rows"),
    "random_features.RandomFourierFeatures.fit": lambda w: (
        random_features.RandomFourierFeatures(n_features=16).fit,
        {"X": w.features},
    ),
    "random_features.RandomFourierFeatures.transform": lambda w: (
        random_features.RandomFourierFeatures(n_features=16).fit(w.features).transform,
        {"X": w.features},
    ),
    "random_features.RandomFourierFeatures.get_feature_names_out": lambda w: (
        random_features.RandomFourierFeatures(n_features=16).fit(w.features).get_feature_names_out,
        {},
    ),
    "random_features.NystroemFeatures": lambda w: (
        lambda **values: random_features.NystroemFeatures(**values).fit_transform(w.features),
        {"n_features": 4},
    ),
    **{
        f"random_features.NystroemFeatures.{method}": lambda w, method=method, given=given: (
            getattr(random_features.NystroemFeatures(n_features=4).fit(w.features), method),
            {"X": w.features} if given else {},
        )
        for method, given in (("fit", 1), ("transform", 1), ("get_feature_names_out", 0))
    },
    "random_features.LearnedFourierFeatures": lambda w: (
        lambda **values: random_features.LearnedFourierFeatures(**values).fit(w.features, w.y),
        {"n_features": 4, "n_sweeps": 1},
    ),
    **{
        f"random_features.LearnedFourierFeatures.{method}": lambda w, method=method, given=given: (
            getattr(
                random_features.LearnedFourierFeatures(n_features=4, n_sweeps=1).fit(
                    w.features, w.y
                ),
                method,
            ),
            {name: getattr(w, {"X": "features"}.get(name, name)) for name in given},
        )
        for method, given in (("fit", "Xy"), ("transform", "X"), ("get_feature_names_out", ""))
    },
    "random_features.FourierSpec": lambda w: (
        random_features.FourierSpec,
        {"n_inputs": 3, "n_features": 16, "scale": 1.0},
    ),
    "registry.Registry": lambda w: (
        lambda **values: registry.Registry(**values).list(),
        {"url": w.registry.url},
    ),
    **{
        f"registry.Registry.{method}": lambda w, method=method: (getattr(_promoted(w), method), {})
        for method in ("current", "history", "list", "load_current", "rollback")
    },
    "registry.log_model": lambda w: (registry.log_model, {"model": w.regressor}),
    "registry.Registry.model_url": lambda w: (w.registry.model_url, {"name": "a" * 16}),
    "registry.Registry.promote": lambda w: (
        w.registry.promote,
        {"name": w.registry.current()},
    ),
    "registry.Registry.register": lambda w: (w.registry.register, {"model": w.regressor}),
    "retraining.DriftGate": lambda w: (retraining.DriftGate, {}),
    "retraining.Window": lambda w: (retraining.Window, {"bags": 5}),
    "retraining.Retraining": lambda w: (retraining.Retraining, _line(w)),
    "retraining.Retraining.labelled": lambda w: (
        retraining.Retraining(**_line(w)).labelled,
        {"store": w.store},
    ),
    "retraining.retrain": lambda w: (
        retraining.retrain,
        {"spec": retraining.Retraining(**_line(w))},
    ),
    "tuning.Candidate.estimator": lambda w: (
        tuning.Candidate(0, 1.0, w.regressor.features_, w.embedding).estimator,
        {"base": w.unfitted()},
    ),
    "tuning.Search.auto": lambda w: (tuning.Search.auto, {}),
    "tuning.Search": lambda w: (
        lambda **values: tuning.Search(**values).check(),
        {"embeddings": [w.embedding]},
    ),
    "tuning.Search.check": lambda w: (tuning.Search(embeddings=[w.embedding]).check, {}),
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


def _promoted(w: World) -> registry.Registry:
    """A registry of two champions, one after the other."""
    made = registry.Registry(w.new(""))
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
    EXAMPLES[f"hypotheses.{_statistic.__name__}"] = lambda w, kind=_statistic: (kind, {})
