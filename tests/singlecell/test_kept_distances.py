"""Distances that are kept in ``adata.uns`` are those of these cells, or they are made again."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd
import pytest

from bagbasis.singlecell import BagbasisSamples

N = 200
RNG = np.random.default_rng(0)


@pytest.fixture
def cells():
    values = {
        "sample": np.repeat(["a", "b", "c", "d"], N // 4),
        "donor": np.repeat(["p", "q"], N // 2),
    }
    columns = {  # texts as anndata can write them
        key: pd.Categorical(texts, pd.Index(sorted(set(texts)), dtype=object))
        for key, texts in values.items()
    }
    obs = pd.DataFrame(columns, index=pd.Index([str(i) for i in range(N)], dtype=object))
    var = pd.DataFrame(index=pd.Index(["g"], dtype=object))
    near = np.random.default_rng(0).normal(size=(N, 2))
    far = near + np.repeat([0, 9, 0, 9], N // 4)[:, None]
    return anndata.AnnData(np.zeros((N, 1)), obs, var, obsm={"X_pca": near, "X_scVI": far})


def distances(cells, key="sample", **arguments):
    single = BagbasisSamples(key, **{"layer": "X_scVI", "k": 5, **arguments})
    single.prepare_anndata(cells)
    return single, single.calculate_distance_matrix()


def without_kept(cells):
    fresh = cells.copy()
    fresh.uns.clear()
    return fresh


def reread(cells, folder):
    cells.write_h5ad(folder / "cells.h5ad")
    return anndata.read_h5ad(folder / "cells.h5ad")


OTHERS = {
    "layer": {"layer": "X_pca"},
    "X": {"layer": None, "method": "mean_map"},
    "k": {"k": 25},
    "sample key": {"key": "donor"},
}


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("other", OTHERS)
def test_other_parameters_have_other_distances(cells, other, written, tmp_path):
    _, first = distances(cells)
    if written:
        cells = reread(cells, tmp_path)
    cells.X[:] = RNG.normal(size=(N, 1))
    single, second = distances(cells, **OTHERS[other])
    np.testing.assert_array_equal(second, distances(without_kept(cells), **OTHERS[other])[1])
    assert second.shape == (len(single.samples),) * 2
    assert second.shape != first.shape or not np.array_equal(first, second)


@pytest.mark.long
def test_a_seed_of_mixtures_has_its_own_distances(cells):
    first, second = (distances(cells, method="mixture", seed=seed)[1] for seed in (1, 2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda c: c[::-1].copy(),
        lambda c: c[: N // 2].copy(),
        lambda c: c[::-1][: N // 2].copy(),
        lambda c: c[np.r_[0:40, 50:N]].copy(),
        lambda c: c[np.r_[1, 0, 2:N]].copy(),
    ],
    ids=["reversed", "subset", "reversed subset", "fewer cells", "order within a sample"],
)
def test_other_cells_have_other_distances(cells, change, written, tmp_path):
    distances(cells)
    changed = change(cells)
    if written:
        changed = reread(changed, tmp_path)
    first, result = distances(changed)
    np.testing.assert_array_equal(result, distances(without_kept(changed))[1])
    assert len(result) == len(first.samples)


def test_cells_with_new_coordinates_or_samples_have_new_distances(cells):
    _, first = distances(cells)
    cells.obsm["X_scVI"] = cells.obsm["X_pca"]
    _, second = distances(cells)
    assert not np.array_equal(first, second)
    cells.obs["sample"] = np.roll(cells.obs["sample"].to_numpy(), 25)
    assert not np.array_equal(distances(cells)[1], second)


def test_distances_without_a_source_are_made_again(cells):
    cells.uns["X_bagbasis_knn_distances"] = np.full((4, 4), 7.0)  # of an earlier version
    np.testing.assert_array_equal(distances(cells)[1], distances(without_kept(cells))[1])


@pytest.mark.parametrize("method", ["knn", "js"])
def test_the_same_distances_are_kept(cells, method, tmp_path):
    _, first = distances(cells, method=method)
    single, again = distances(cells, method=method)
    assert again is first
    assert (single.sample_representation is None) == (method == "knn")
    marked = reread(cells, tmp_path)
    key = single.DISTANCES_UNS_KEY
    marked.uns[key] = marked.uns[key] + 1
    np.testing.assert_array_equal(distances(marked, method=method)[1], first + 1)
    single.calculate_distance_matrix(force=True)
    assert cells.uns[key] is not first


def test_retention_of_a_subset_is_judged_on_the_subset(cells):
    cells.obs["label"] = np.repeat(["x", "y", "x", "y"], N // 4)
    distances(cells)
    half, _ = distances(cells[: N // 2].copy())
    assert half.evaluate_representation("label", n_neighbors=1)["n_observations"] == 2
