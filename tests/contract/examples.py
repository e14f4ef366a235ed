"""A valid call of every public callable: the function, and the arguments that others replace."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
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
from tests.contract.data_examples import DATA_EXAMPLES, Example, calls
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


def _tuning(w: World) -> dict[str, Any]:
    return {
        "estimator": w.unfitted().set_params(validation_fraction=0.5),
        "X": w.larger,
        "search": models.Search([w.embedding], scale_multipliers=[1.0]),
        "target": "y",
    }


def _table(w: World) -> dict[str, Any]:
    return {"points": w.table, "url": w.new(), "id_column": "bag", "coordinates": ["u", "v"]}


def _table_ingest(**values: Any) -> BagStore:
    return ingest.TableIngest(**values).run()


@cache
def _champions(w: World) -> Path:
    made = operations.Registry(place := w.new(""))
    for model in (w.regressor, w.classifier):
        made.promote(made.register(model))
    return place


def _promoted(w: World) -> operations.Registry:
    """A copy of a registry of two champions, one after the other."""
    return operations.Registry(shutil.copytree(_champions(w), w.new("")))


def _line(w: World) -> dict[str, Any]:
    registry_url = str(w.new(""))
    return {
        "data_url": w.url,
        "registry_url": registry_url,
        "estimator": w.unfitted(),
        "target": "y",
        "holdout": 0.3,
    }


EXAMPLES: dict[str, Example] = {
    **DATA_EXAMPLES,
    **EMBEDDING_EXAMPLES,
    **MODEL_EXAMPLES,
    **RUN_EXAMPLES,
    **SEARCH_EXAMPLES,
    "DivergenceKernel": used(densities.DivergenceKernel, "bags"),
    **calls(
        "DivergenceKernel.",
        lambda w: densities.DivergenceKernel().fit(w.arrays),
        **dict.fromkeys(("fit", "fit_transform", "transform"), lambda w: {"X": w.arrays}),
    ),
    "PrecomputedNystroem": used(densities.PrecomputedNystroem, "matrix"),
    **calls(
        "PrecomputedNystroem.",
        lambda w: densities.PrecomputedNystroem().fit(w.distances),
        **dict.fromkeys(("fit", "transform"), lambda w: {"X": w.distances}),
    ),
    "PSDRepair": used(densities.PSDRepair, "matrix"),
    **calls(
        "PSDRepair.",
        lambda w: densities.PSDRepair().fit(w.distances),
        **dict.fromkeys(("fit", "fit_transform", "transform"), lambda w: {"X": w.distances}),
    ),
    **calls(
        "",
        lambda w: densities,
        divergence_matrix=lambda w: {"X": w.arrays},
        kernel_matrix=lambda w: {"D": w.distances},
        median_bandwidth=lambda w: {"X": w.arrays},
        median_scale=lambda w: {"D": w.distances},
    ),
    **calls(
        "",
        lambda w: models,
        evaluate=lambda w: {"model": w.regressor, "X": w.store},
        cross_val_score=lambda w: {
            "estimator": w.unfitted(), "X": w.store, "target": "y", "cv": 2,
        },
        judge_fit=lambda w: {"model": w.regressor, "X": w.store},
        explain=lambda w: {"model": w.regressor, "bag": w.arrays[0]},
        permutation_importance=lambda w: {
            "model": w.regressor, "X": w.arrays, "y": w.y, "n_repeats": 1,
        },
        tune=_tuning,
    ),
    **calls(
        "Explanation.",
        lambda w: models.explain(w.regressor, w.arrays[0]),
        "plot", "to_frame",
    ),
    **calls("Errors.", lambda w: w.errors, plot={}),
    **calls(
        "Importance.",
        lambda w: models.permutation_importance(w.regressor, w.arrays, w.y, n_repeats=1),
        plot={},
    ),
    **calls("Tuning.", cache(lambda w: models.tune(**_tuning(w))), plot={}),
    **calls(
        "HypothesisResult.",
        lambda w: hypotheses.two_sample_test(w.features, w.features + 0.1, n_permutations=9),
        report=lambda w: {"url": f"{w.new()}.html"},
        plot={},
    ),
    "TableIngest": lambda w: (_table_ingest, _table(w)),
    "TableIngest.run": lambda w: (ingest.TableIngest(**_table(w)).run, {}),
    **calls(
        "",
        lambda w: ingest,
        ingest_tables=_table,
        ingest_anndata=lambda w: {
            "cells": annotated(pd.DataFrame({"bag": [0, 0, 1]}), np.eye(3), ["f", "g", "h"]),
            "url": w.new(),
            "id_column": "bag",
            "coordinates": ["g"],
        },
        ingest_arrays=lambda w: {"arrays": w.arrays, "url": w.new(), "targets": w.y},
        ingest_catalogue=lambda w: {
            "path": w.catalogue, "url": w.new(), "id_column": "bag", "coordinates": ["u"],
        },
        ingest_patches=lambda w: {"points": w.catalogue_of_slides, "url": w.new()},
        ingest_fcs=lambda w: {"points": w.fcs, "url": w.new()},
        ingest_images=lambda w: {
            "images": [np.eye(4)] * 3, "url": w.new(), "targets": [0.0, 1.0, 2.0],
        },
        ingest_frame=lambda w: {
            "points": pd.DataFrame({"bag": [0, 0, 1], "u": [0.0, 1.0, 2.0]}),
            "url": w.new(),
            "id_column": "bag",
            "coordinates": ["u"],
        },
        ingest_npz=lambda w: {"path": w.npz, "url": w.new()},
    ),
    "IndependentSubspaces": lambda w: (
        lambda **values: hypotheses.IndependentSubspaces(**values).fit(TRIPLES),
        {"dims": [2, 1], "n_features": 4},
    ),
    **calls(
        "IndependentSubspaces.",
        lambda w: hypotheses.IndependentSubspaces(1, n_features=4).fit(TRIPLES),
        **dict.fromkeys(("fit", "transform"), lambda w: {"X": TRIPLES}),
    ),
    **calls(
        "DerivativeNorms.",
        lambda w: hypotheses.DerivativeNorms(np.ones(2), np.ones(2)),
        selected={"k": 1},
    ),
    **calls(
        "Registration.",
        lambda w: hypotheses.Registration(
            shift=(1.0, 0.0), angle=5.0, scale=1.0, dependence=0.5, measure="kcca"
        ),
        apply={"image": IMAGE, "shape": (12, 12)},
        places={"shape": (12, 12)},
    ),
    **calls(
        "",
        lambda w: hypotheses,
        derivative_norms=lambda w: {"model": w.regressor, "X": w.arrays, "n_draws": 1},
        register_images={
            "reference": IMAGE, "image": IMAGE, "max_shift": 0, "max_angle": 0, "n_features": 4,
        },
        select_coordinates={
            "X": TRIPLES, "y": TRIPLES[:, 0], "k": 1, "n_features": 4, "n_folds": 3,
        },
        MixtureScore={"means": [0.0, 1.0]},
        SeriesScore=lambda w: {"density": w.densities[0]},
        fit_test=lambda w: {
            "x": w.features, "score": hypotheses.MixtureScore([0.0] * 3), "n_draws": 9,
        },
        independence_test=lambda w: {"x": w.arrays, "y": w.y, "n_permutations": 9},
        two_sample_test=lambda w: {
            "a": w.features, "b": w.features + 0.1, "n_permutations": 9,
        },
    ),
    "DriftDetector": lambda w: (
        lambda **arguments: operations.DriftDetector(**arguments).fit(w.arrays).predict(w.arrays),
        {"n_permutations": 9, "n_frequencies": 8},
    ),
    **calls(
        "DriftDetector.",
        lambda w: _detector().fit(w.features),
        fit=lambda w: {"reference": w.features},
        save=lambda w: {"url": w.new()},
        load=lambda w: {"url": _saved_detector(w.new())},
        **dict.fromkeys(("test", "predict"), lambda w: {"new": w.features}),
    ),
    **calls("DriftResult.", lambda w: _detector().fit(w.features).test(w.features), plot={}),
    **calls(
        "DriftPrediction.", lambda w: _detector().fit(w.features).predict(w.features), plot={}
    ),
    "RandomFourierFeatures": used(bagbasis.RandomFourierFeatures, "rows"),
    "NystroemFeatures": lambda w: (
        lambda **values: bagbasis.NystroemFeatures(**values).fit_transform(w.features),
        {"n_features": 4},
    ),
    **{
        key: example
        for kind in (bagbasis.RandomFourierFeatures, bagbasis.NystroemFeatures)
        for key, example in calls(
            f"{kind.__name__}.",
            lambda w, kind=kind: kind(n_features=4).fit(w.features),
            get_feature_names_out={},
            **dict.fromkeys(("fit", "transform"), lambda w: {"X": w.features}),
        ).items()
    },
    "LearnedFourierFeatures": lambda w: (
        lambda **values: bagbasis.LearnedFourierFeatures(**values).fit(w.features, w.y),
        {"n_features": 4, "n_sweeps": 1},
    ),
    **calls(
        "LearnedFourierFeatures.",
        lambda w: bagbasis.LearnedFourierFeatures(n_features=4, n_sweeps=1).fit(w.features, w.y),
        fit=lambda w: {"X": w.features, "y": w.y},
        transform=lambda w: {"X": w.features},
        get_feature_names_out={},
    ),
    **calls(
        "",
        lambda w: embeddings,
        FourierSpec={"n_inputs": 3, "n_features": 16, "scale": 1.0},
    ),
    "Registry": lambda w: (
        lambda **values: operations.Registry(**values).list(), {"url": w.registry.url},
    ),
    **calls(
        "Registry.",
        _promoted,
        "current", "history", "list", "load_current", "rollback",
    ),
    **calls(
        "Registry.",
        lambda w: w.registry,
        model_url={"name": "a" * 16},
        promote=lambda w: {"name": w.registry.current()},
        register=lambda w: {"model": w.regressor},
    ),
    **calls(
        "",
        lambda w: operations,
        drift_test=lambda w: {
            "reference": w.arrays, "new": w.arrays, "n_features": 16, "n_permutations": 9,
        },
        log_model=lambda w: {"model": w.regressor},
        DriftGate={},
        Window={"bags": 5},
        Retraining=_line,
        retrain=lambda w: {"spec": operations.Retraining(**_line(w))},
    ),
    **calls(
        "Retraining.",
        lambda w: operations.Retraining(**_line(w)),
        labelled=lambda w: {"store": w.store},
    ),
    **calls(
        "Candidate.",
        lambda w: models.Candidate(
            embedding=0,
            scale_multiplier=1.0,
            features=w.regressor.features_,
            first=w.embedding,
        ),
        estimator=lambda w: {"base": w.unfitted()},
    ),
    "Search": lambda w: (
        lambda **values: models.Search(**values).check(), {"embeddings": [w.embedding]},
    ),
    **calls(
        "Search.",
        lambda w: models.Search(embeddings=[w.embedding]),
        "auto", "check",
    ),
}  # fmt: skip

_TESTS = hypotheses.TWO_SAMPLE, hypotheses.INDEPENDENCE, hypotheses.FIT
for _statistic in (kind for table in _TESTS for kind in table.values()):
    EXAMPLES[f"{_statistic.__name__}"] = lambda w, kind=_statistic: (kind, {})
