"""What an earlier commit wrote is read, fitted, predicted and retrained as it did itself.

``tests/kept/written-by-0.1.0.zip`` holds stores, models of every kind, registries with retraining
states two rounds old, and in ``expected.npz`` what that commit computed from them.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    HDDEmbedding,
    HistogramEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    features,
    load_model,
)
from bagbasis.jobs.commands.retrain_report import write_round
from bagbasis.operations import DriftGate, Registry, Retraining, Window, retrain
from tests.oracles.labelled import labelled_bags

ARCHIVE = Path(__file__).parent / "kept" / "written-by-0.1.0.zip"
EMBEDDINGS = {
    "projection": ProjectionEmbedding(n_per_dim=3),
    "ball": ProjectionEmbedding(basis="trigonometric", max_norm=3),
    "hdd": HDDEmbedding("js", n_per_dim=3),
    "hdd_tv": HDDEmbedding("tv", n_per_dim=3, marginals=1),
    "mean_map": MeanMapEmbedding(n_features=8),
    "histogram": HistogramEmbedding(n_bins=3),
    "moments": MomentsEmbedding(standardize=False),
}
SOLVED = {"alpha": 0.1, "precision": "float64"}
# Sums have the same bits on one processor; another one's BLAS orders them otherwise.
CLOSE = {"rtol": 1e-8, "atol": 1e-9}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the earlier commit wrote."""
    folder = tmp_path_factory.mktemp("written")
    shutil.unpack_archive(ARCHIVE, folder)
    return folder


@pytest.fixture(scope="module")
def expected(written: Path) -> Any:
    """What the earlier commit computed, by name."""
    with np.load(written / "expected.npz") as values:
        return dict(values)


def random_features() -> RandomFourierFeatures:
    """The second basis of every model in the archive."""
    return RandomFourierFeatures(n_features=16, scale=0.7, seed=3)


@pytest.mark.parametrize("name", ["numbers", "pairs"])
def test_stores_are_read(written, expected, name):
    """Every point of every bag, bit by bit; nothing is damaged."""
    store = BagStore.open(written / f"{name}.zarr")
    store.verify()
    bags = store.read(0, store.n_bags)
    np.testing.assert_array_equal(bags.points, expected[f"{name}/points"])
    np.testing.assert_array_equal(bags.offsets, expected[f"{name}/offsets"])


def test_stores_are_appended_to(written, tmp_path):
    """A store of an earlier version grows as one of this version does."""
    shutil.copytree(written / "numbers.zarr", tmp_path / "numbers.zarr")
    store = BagStore.open(tmp_path / "numbers.zarr")
    more = store.append([np.full((3, 2), 0.5)], np.array([[1.0, 0.0]]), ids=["one more"])
    more.verify()
    assert more.n_bags == 61


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings_are_the_same(written, expected, name):
    """Features of a store, for each embedding."""
    store = BagStore.open(written / "numbers.zarr")
    np.testing.assert_allclose(
        np.asarray(features(store, EMBEDDINGS[name])), expected[f"{name}/embedding"], rtol=1e-5,
        atol=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_models_are_loaded_and_predict(written, expected, name):
    """A saved model of each embedding predicts what it predicted."""
    model = load_model(written / "models" / name)
    bags = BagStore.open(written / "numbers.zarr").read(0, 60)
    np.testing.assert_array_equal(model.model_.solution.coef, expected[f"{name}/coef"])
    np.testing.assert_allclose(model.predict(bags), expected[f"{name}/prediction"], **CLOSE)


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_fits_are_the_same(written, expected, name):
    """A fit to the same store has the same coefficients."""
    store = BagStore.open(written / "numbers.zarr")
    model = DoubleBasisRegressor(EMBEDDINGS[name], random_features(), **SOLVED)
    model.fit(store, target="y", holdout=0.2)
    np.testing.assert_allclose(model.model_.solution.coef, expected[f"{name}/coef"], **CLOSE)


def test_classes_densities_and_several_targets(written, expected):
    """Models of the other kinds predict what they predicted."""
    numbers = BagStore.open(written / "numbers.zarr").read(0, 60)
    classes = load_model(written / "models" / "classes")
    np.testing.assert_array_equal(classes.predict(numbers), expected["classes/prediction"])
    np.testing.assert_allclose(classes.predict_proba(numbers), expected["classes/proba"], **CLOSE)
    both = load_model(written / "models" / "two_targets")
    np.testing.assert_allclose(
        both.predict(numbers), expected["two_targets/prediction"], rtol=1e-4, atol=1e-5
    )  # its features are float32
    pairs = BagStore.open(written / "pairs.zarr").read(0, 60)
    densities = load_model(written / "models" / "densities")
    np.testing.assert_allclose(densities.predict(pairs), expected["densities/prediction"], **CLOSE)


ESTIMATORS = {
    "regression": DoubleBasisRegressor(EMBEDDINGS["projection"], random_features(), **SOLVED),
    "classification": DoubleBasisClassifier(EMBEDDINGS["projection"], random_features(), **SOLVED),
    "densities": TripleBasisRegressor(
        EMBEDDINGS["projection"],
        random_features(),
        response_embedding=ProjectionEmbedding(n_per_dim=3),
        **SOLVED,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("task", ESTIMATORS)
def test_retraining_goes_on(written, expected, tmp_path, task):
    """The third round of a line whose first two the earlier commit made."""
    folder = tmp_path / "line"
    shutil.copytree(written / "retraining" / task, folder)
    store = BagStore.open(folder / "bags.zarr")
    bags, y = labelled_bags(15, seed=store.n_bags, most=12)
    if task == "densities":
        store.append(bags, responses=[1 - bag for bag in bags])
    else:
        codes = np.digitize(y, [-0.3, 0.4]).astype(float)
        store.append(bags, codes if task == "classification" else y)
    written_to: list[str] = []
    done = retrain(
        Retraining(
            data_url=f"{folder}/bags.zarr",
            registry_url=f"{folder}/registry",
            estimator=ESTIMATORS[task],
            holdout=0.2,
            evaluate_bags=40,
            tolerance=10.0,
            window=Window(bags=90),
            drift=DriftGate(n_bags=30, n_permutations=19),
        ),
        publish=lambda report, rounds: written_to.append(
            write_round(str(tmp_path), report, rounds)
        ),
    )
    assert len(written_to) == 1  # the picture has the rounds of the earlier commit, too
    assert done.decision == str(expected[f"retraining/{task}/decision"])
    assert done.report["number"] == 3
    model = Registry(f"{folder}/registry").load_current()
    np.testing.assert_allclose(
        model.model_.solution.coef, expected[f"retraining/{task}/coef"], **CLOSE
    )
    np.testing.assert_allclose(
        model.predict(labelled_bags(20, seed=999, most=12)[0]),
        expected[f"retraining/{task}/prediction"],
        **CLOSE,
    )
