"""Every experiment runs: a small run, what it leaves behind, and that it is not made again."""

from __future__ import annotations

import json

import pytest
from sklearn import ensemble

from bagbasis import (
    HDDEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    SlicedWassersteinEmbedding,
)
from bagbasis.jobs.experiments.kit import experiment as kit_experiment
from bagbasis.jobs.experiments.kit.runner import read_report, run_experiment
from bagbasis.jobs.experiments.networks import recurrent
from bagbasis.jobs.experiments.registered import EXPERIMENTS
from bagbasis.jobs.experiments.regression import embeddings, interval_coverage, real_bags
from bagbasis.jobs.files import plain
from bagbasis.jobs.terminal import Terminal
from bagbasis.models import Search
from tests.jobs.experiments.contract import make
from tests.jobs.running import assert_picture

# The least to compute of all: `make test` runs these two, `make test-experiments` the others.
CHEAPEST = ("learned-spectrum", "radiation")
COMPILED = {  # what takes longer to compile than to run
    "interpreted": ("peers",),
    "with_networks": (
        "bag-densities", "embeddings", "recurrent", "transformation-networks",
    ),
}  # fmt: skip
FEW = {"n_train": 200, "n_test": 50, "candidates": {"n_choose": 100, "n_features": 64}}
IMAGES = {
    "n_train": 10, "n_test": 5, "n_points": 30, "n_classes": 3, "n_features": 50,
    "choose_features": 50, "n_repeats": 1,
}  # fmt: skip

# Of each experiment, settings instead of those of scale small.
SIZES = {
    "active-search": {"n_repeats": 1, "n_queries": 5},
    "anomalies": {"n_train": 60, "n_test": 60, "n_repeats": 1, "n_trees": 10},
    "bag-densities": {
        "dims": [2], "n_train": 40, "n_test": 6, "n_points": 20, "n_steps": 5, "n_hidden": 4,
    },
    "dependence-objectives": {
        "n_rows": [100], "n_draws": 1, "n_points": [300], "n_mixtures": 1, "outliers": [0.2],
    },
    "dirichlet": {**FEW, "n_points": [10, 50], "n_classical": 20},
    "embeddings": {
        "n_train": 40, "n_test": 20, "n_features": 16, "n_trees": 5, "network_steps": 4
    },
    "fastmmd": {
        "n_points": 150, "power_ratio": 16.0, "ratios": [16.0], "n_spread": 5, "n_tests": 4,
        "n_null": 4, "n_trials": 3, "sizes": [125, 250], "dims": [4, 32], "size_of_dims": 150,
        "frequencies_of_dims": 128, "bandwidths": [0.1, 10.0], "n_tests_of_nulls": 1,
        "n_shuffles": 20, "n_frequencies": [16, 64], "n_repeats": 1,
    },
    "gmm-components": {
        "n_train": [60, 120], "n_test": 50, "n_features": 64, "n_choose": 60,
        "choose_features": 64, "multipliers": [2.0], "kl": {200: [20, 20]}, "n_em": {200: 2},
    },
    "gmm-order": {**FEW, "n_points": [10, 50], "n_classical": 2},
    "goodness-of-fit": {"n_tests": 1},
    "halo-mass": {
        "n_train": 60, "n_test": 30, "n_gram": 20, "n_features": 50, "n_trees": 5, "n_repeats": 1
    },
    "images": {
        "tasks": {"digits": {"n_train": [60, 120], "n_choose": 60, "n_features": 64,
                             "choose_features": 64, "n_per_dim": 4}}
    },
    "independence": {"n_tests": 1},
    "interval-coverage": {"n_draws": {"30": 2, "300": 0}, "n_test": 40},
    "js-gram": {"n_mixtures": 4, "n_points": 100, "n_features": 50},
    "kernel-choice": {"n_tests": 1},
    "levels": {"n_tests": 1, "n_permutations": 19},
    "marginals": IMAGES,
    "peers": {
        "n_train": {300: 1}, "n_test": 200, "n_rounds": 1, "sizes": [150],
        "projections": [[200, 1, [10]], [20000, 2, [8]]],
        "transport": {"n_train": 12, "n_test": 4, "n_points": 10, "D": 20},
    },
    "radiation": {"n_repeats": 1, "n_train": 1000, "n_quiet": 2000, "n_test": 200},
    "real-bags": {
        "sets": ["musk 1", "workers"], "most_bags": 40, "n_folds": 2, "n_tuned_repeats": 1,
        "n_trees": 10,
    },
    "rectify-2lpt": {
        "train_boxes": 2, "test_boxes": 1, "n_rounds": 1, "n_features": 50, "timed": [20, 60],
    },
    "rectify-residuals": {"train_boxes": 4, "test_boxes": 1, "n_features": 64},
    "recurrent": {
        "values": ["as they are"], "units": [4], "parts": ["full"], "n_train": 16,
        "n_validation": 4, "n_test": 4, "trial_steps": 2,
        "n_steps": 4, "n_digits": 60, "n_digits_tested": 20, "digit_steps": 4, "digit_units": 6,
    },
    "rff-error": {"n_features": [50, 100], "n_repeats": 5},
    "scaling": {
        "ladders": {
            "N": [512, 1024], "D": [128, 256], "n": [16], "d": [1], "s": [4],
        },
        "n_rounds": 1, "graph_bags": [1000, 1_000_000_000], "graph_features": [256],
        "simulated": [[1, 0.1]], "simulated_tasks": 4, "idle_seconds": 0.1,
        "on_workers": {"N": 512}, "workers": [1],
        "memory": {"N": 256, "D": 256, "n": 256}, "memory_bags": [384],
        "memory_features": [128],
    },
    "scenes": IMAGES,
    "score-matching": {"n_tests": 1, "n_fitted": 200, "n_held_out": 100},
    "synthetic-mapping": {**FEW, "n_train": [300, 600], "n_test": 50, "most_pairs": 10_000},
    "tasks-with-floors": {
        "tasks": ["spread", "rare class"], "n_train": [60], "n_test": 60, "n_trees": 10,
    },
    "transformation-networks": {
        "n_train": 200, "n_test": 100, "n_steps": 4, "n_hidden": 4, "n_components": 2,
        "conditionals": ["single_ind"], "transformations": ["L none"],
    },
    "traps": {"n_bags": 8, "n_tests": 1},
    "two-samples-at-many-scales": {
        "n_tests": 1, "n_permutations": 19, "n_blocks": {"60": 2, "120": 1},
        "n_points": {
            "mixture, std 1.3": [60, 120], "mixture, std 2": [60], "perturbed, d = 1": [60],
            "perturbed, d = 2": [60], "mixture, std 1": [60], "uniform, d = 2": [60],
        },
    },
}  # fmt: skip


def with_sizes(values, sizes):
    """Values of a scale with others instead of some of them, in sections of it, too.

    A section with keys that the scale does not have, such as other sizes, replaces it.
    """
    inner = {
        k: with_sizes(values[k], v)
        for k, v in sizes.items()
        if isinstance(v, dict) and v.keys() <= values[k].keys()
    }
    return {**values, **sizes, **inner}


@pytest.fixture
def light(monkeypatch):
    """Boosting in 5 rounds, intervals of two folds, one recurrent unit, two of the data sets of
    embeddings with short rows and no choice before the search, and pictures of few dots."""
    short = (
        MomentsEmbedding(),
        MeanMapEmbedding(n_features=16),
        HDDEmbedding("js", n_per_dim=3),
        SlicedWassersteinEmbedding(n_directions=8),
    )
    search = Search(short, linear=[MomentsEmbedding(covariance=False)])
    monkeypatch.setattr(embeddings.Search, "auto", lambda n_dims=1: search)
    few = ("digits", "mixture counting")
    monkeypatch.setattr(interval_coverage, "INTERVAL_FOLDS", 2)
    monkeypatch.setattr(recurrent, "UNITS", ("sru",))
    monkeypatch.setattr(embeddings, "DATA", {name: embeddings.DATA[name] for name in few})
    for name in ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"):
        monkeypatch.setattr(ensemble, name, of_five_rounds(getattr(ensemble, name)))


def of_five_rounds(boosting):
    """The estimator with few trees, however many are asked for."""
    return lambda **params: boosting(**{**params, "max_iter": 5})


@pytest.mark.long
@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in CHEAPEST else pytest.mark.experiments)
        for name in EXPERIMENTS
    ],
)
def test_experiment(name, tmp_path, monkeypatch, request, capsys):
    """Points are those declared, tables have numbers, every picture is drawn; a second run finds
    points, stores and models, and its report is the same."""
    if name == "real-bags":  # the whole search takes a minute for each fold
        search = Search([MomentsEmbedding(covariance=False)], scale_multipliers=[1.0])
        monkeypatch.setattr(real_bags.Search, "auto", lambda n_dims: search)
    for fixture, names in COMPILED.items():
        if name in names:
            request.getfixturevalue(fixture)
    scales = kit_experiment.scales(name)
    small = with_sizes(scales["small"], SIZES.get(name, {}))
    monkeypatch.setattr(kit_experiment, "scales", lambda _: {**scales, "small": small})
    experiment = make(name, tmp_path)
    run_experiment(experiment, Terminal())
    report, results = read_report(tmp_path)
    declared = [(point.label, plain(point.params)) for point, _ in experiment.points()]
    assert declared == [(r.point.label, r.params) for r in results]
    for table in report["tables"]:
        assert table["rows"]
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}
    assert report["pictures"]
    for picture in report["pictures"]:
        assert_picture(tmp_path / picture)
    monkeypatch.setattr("bagbasis.jobs.experiments.kit.runner.measure_point", None)
    monkeypatch.setattr("bagbasis.jobs.experiments.kit.runner.save_figure", lambda _, path: path)
    for kind in {type(picture) for picture in experiment.pictures}:
        monkeypatch.setattr(kind, "draw", lambda *_: None)  # of the same frame, once more
    capsys.readouterr()
    run_experiment(make(name, tmp_path), Terminal())
    assert capsys.readouterr().out.count("measured before") == len(results)
    assert json.loads((tmp_path / "result.json").read_text()) == report
