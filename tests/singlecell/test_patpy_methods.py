"""The methods that patpy's users call on a sample representation."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd
import pytest

from bagbasis import DataError
from bagbasis.singlecell import BagbasisSamples, information_retention

ONE = pd.DataFrame({"m": [1]}, index=["a"])
SHIFT = np.repeat([0.0, 1, 2, 10, 11, 12], 20)[:, None]


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    obs = pd.DataFrame(
        {"sample": np.repeat(list("fedcba"), 20)}, index=[str(i) for i in range(120)]
    )
    obs["dx"] = np.repeat(["ill", "ill", "ill", "well", "well", "well"], 20)
    obs["age"] = np.repeat([1.0, 2, np.nan, 11, 12, 13], 20)
    cells = anndata.AnnData(np.zeros((120, 1)), obs)
    cells.obsm["X_pca"] = SHIFT + rng.normal(0, 0.1, (120, 1))
    single = BagbasisSamples("sample", method="mean_map")
    single.prepare_anndata(cells)
    return single


@pytest.mark.parametrize("call", ["embed", "to_adata", "calculate_distance_matrix"])
def test_without_cells_it_is_a_runtime_error(call):
    with pytest.raises(RuntimeError, match="prepare_anndata"):
        getattr(BagbasisSamples("sample"), call)()


def test_metadata_are_predicted_from_the_nearest_samples(samples):
    true, predicted = samples.predict_metadata("dx", n_neighbors=2)
    assert list(true.index) == list("fedcba")
    assert list(predicted) == list(true)
    true, predicted = samples.predict_metadata("age", n_neighbors=1, task="regression")
    assert list(true.index) == list("fecba")  # d has no age
    assert list(predicted[:2]) == [2, 1]
    table = pd.DataFrame({"n": [1, 2, pd.NA, 4, 5, 6]}, index=list("abcdef"), dtype="Int64")
    true, predicted = samples.predict_metadata("n", table, 1)
    assert list(true) == [6, 5, 4, 2, 1]
    assert predicted.dtype.kind == "i"
    assert samples.evaluate_representation("n", metadata=table)["n_observations"] == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.predict_metadata("d"), "no column 'd'"),
        (lambda m: m.predict_metadata("dx", task="regression"), "task='classification'"),
        (lambda m: m.predict_metadata("dx", task="rank"), "task is 'rank'"),
        (
            lambda m: m.predict_metadata("n", pd.DataFrame({"n": [1]}, index=["a"])),
            "'b' has no row",
        ),
        (lambda m: m.predict_metadata("n", ONE), "no column 'n'"),
        (
            lambda m: m.to_adata(pd.DataFrame({"n": range(7)}, index=list("abcdefa"))),
            "'a' has several rows",
        ),
        (lambda m: m.embed("UMAP"), "metric='precomputed'"),
    ],
)
def test_wrong_calls_are_refused(samples, call, message):
    with pytest.raises(DataError, match=message):
        call(samples)


def test_distances_in_the_plane_are_those_of_points_in_it(samples):
    points = np.random.default_rng(1).normal(size=(6, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    samples.calculate_distance_matrix = lambda: distances
    placed = samples.embed()
    np.testing.assert_allclose(np.linalg.norm(placed[:, None] - placed, axis=2), distances)


def test_samples_become_rows_of_an_anndata(samples):
    table = pd.DataFrame({"batch": range(6)}, index=list("abcdef"))
    made = samples.to_adata(table)
    assert list(made.obs_names) == list("fedcba")
    assert list(made.obs["batch"]) == [5, 4, 3, 2, 1, 0]
    np.testing.assert_array_equal(made.X, samples.sample_representation)
    distances = made.obsm[samples.DISTANCES_UNS_KEY]
    np.testing.assert_array_equal(distances, samples.calculate_distance_matrix())
    samples.method, samples.k = "knn", 5
    samples.sample_representation = None
    assert samples.to_adata().X.shape == (6, 2)


def test_missing_labels_of_pandas_are_left_out():
    x = np.array([0.0, 0.1, 0.2, 3.0, 3.1, 3.2, 9.0])
    labels = pd.array(["a", "a", "a", "b", "b", "b", pd.NA], dtype="string")
    assert information_retention(abs(x[:, None] - x), labels, n_neighbors=2) == 1


def test_masked_cells_are_refused(samples):
    """numpy drops the mask."""
    cells = samples.adata.copy()
    cells.obsm["X_pca"] = np.ma.masked_greater(cells.obsm["X_pca"], 9)
    with pytest.raises(DataError, match="X_pca: 60 values are masked"):
        BagbasisSamples("sample").prepare_anndata(cells)
