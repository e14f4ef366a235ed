"""Ours compared with other packages, at small scale: the same work, and how well it is done."""

from __future__ import annotations

from types import SimpleNamespace

import dask
import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge

from bagbasis import Bags, BagStore, ProjectionEmbedding
from bagbasis.datasets import GMMComponents
from bagbasis.densities import divergence_matrix
from bagbasis.jobs.experiments.data.samples import blobs
from bagbasis.jobs.experiments.kit.learning import draw_from
from bagbasis.jobs.experiments.speed import falkon, peers_measures
from bagbasis.jobs.experiments.speed.falkon import falkon_kernel, fit_falkon
from bagbasis.jobs.experiments.speed.peers_measures import (
    direct_coefficients,
    distance_matrix,
    hyppo_statistic,
    mmd_of_statistic,
    sliced_distance,
    transport_distance,
)
from bagbasis.jobs.experiments.speed.peers_regression import (
    bag_features,
    fit_dask,
    fit_sklearn,
    fourier,
    gap_error,
    read_features,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """300 mixtures of 40 points."""
    bags, y = draw_from(GMMComponents(n_points=40, seed=5), 300)
    url = tmp_path_factory.mktemp("store") / "bags.zarr"
    store = BagStore.create(url, 2, target_names=["k"], box=[(-10, 10)] * 2)
    store.append(bags, targets={"k": y})
    return store


@pytest.mark.parametrize("saved", [2**31, 0])
def test_falkon_is_the_nystroem_solution(saved, monkeypatch):
    """Conjugate gradients end where the normal equations (KᵀK + α K_MM) β = Kᵀ y are solved,
    whether kernel values are kept or not; with one block or several."""
    monkeypatch.setattr(falkon, "KEPT_BYTES", saved)
    monkeypatch.setattr(falkon, "FALKON_ROWS", 250)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.sin(X[:, 0]) + X[:, 1] + 2
    gamma, alpha = 0.3, 6.0
    model = fit_falkon(X, y, 60, gamma, alpha, 100, 0)
    K, own = (
        falkon_kernel(X, model.centres, gamma),
        falkon_kernel(model.centres, model.centres, gamma),
    )
    direct = np.linalg.solve(K.T @ K + alpha * own, K.T @ (y - y.mean()))
    np.testing.assert_allclose(model.predict(X), K @ direct + y.mean(), atol=1e-6)
    few = fit_falkon(X, y, 60, gamma, alpha, 20, 0)
    np.testing.assert_allclose(few.predict(X), model.predict(X), atol=1e-6)
    single = fit_falkon(X.astype(np.float32), y, 60, gamma, alpha, 20, 0)
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), model.predict(X), atol=1e-3)


def test_falkon_s_kernel():
    """1 + exp(−γ‖a − b‖²), by the definition."""
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    squares = ((X[:, None] - Y) ** 2).sum(axis=2)
    np.testing.assert_allclose(falkon_kernel(X, Y, 0.7), 1 + np.exp(-0.7 * squares), rtol=1e-12)


def test_dask_fit_is_a_ridge_regression(store):
    """By blocks it finds what scikit-learn's Ridge finds from the same features in memory."""
    here = SimpleNamespace(compute=lambda sums: dask.compute(*sums), gather=lambda sums: sums)
    result = fit_dask(here, store.url, store.n_bags, 64, 0.5, 0.3)
    embeddings = read_features(store.url, 0, store.n_bags)
    z = fourier(embeddings, result.frequencies, result.phases)
    assert z.dtype == np.float32
    ridge = Ridge(alpha=0.3).fit(z.astype(float), store.targets(0, store.n_bags)[:, 0])
    np.testing.assert_allclose(result.predict(embeddings), ridge.predict(z), atol=2e-3)


def test_features_of_others_are_ours(store, tmp_path):
    """The numpy projection from the store is `ProjectionEmbedding`'s, which peers begin with: in
    float32, of bags of one size at once and of ragged ones."""
    ours = ProjectionEmbedding(dtype="float64", box=[(-10, 10)] * 2)
    expected = ours.fit_transform(store.read())
    result = read_features(store.url, 0, store.n_bags)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, atol=1e-5)
    bags = [store.read(0, 1)[0], store.read(1, 2)[0][:7]]
    ragged = BagStore.create(tmp_path / "ragged.zarr", 2, target_names=["k"], box=[(-10, 10)] * 2)
    ragged.append(Bags.from_list(bags), targets={"k": np.zeros(2)})
    result = read_features(ragged.url, 0, 2)
    np.testing.assert_allclose(result, ours.fit_transform(bags), atol=1e-5)
    model = fit_sklearn(store.url, store.n_bags, RBFSampler(n_components=16, random_state=0), 1.0)
    assert model.predict(expected).shape == (store.n_bags,)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_direct_coefficients(d, monkeypatch):
    """In any dimension, by blocks of points as at once, and as our embedding in double."""
    monkeypatch.setattr(peers_measures, "DIRECT_ROWS", 64)
    points = np.random.default_rng(d).random((150, d))
    embedding = ProjectionEmbedding(n_per_dim=4, box=[(0, 1)] * d, dtype="float64")
    direct = direct_coefficients(points, 4)
    np.testing.assert_allclose(direct, bag_features(points, 4), atol=1e-14)
    np.testing.assert_allclose(direct, embedding.fit_transform([points])[0], atol=1e-9)


@pytest.mark.usefixtures("interpreted")
def test_mmd_of_statistic_of_sets_of_two_sizes():
    """The normalisation that is undone is that of n and m points."""
    rng = np.random.default_rng(0)
    X, Y = blobs(rng, 60, 1.0), blobs(rng, 90, 4.0)
    truth = divergence_matrix([X], [Y], divergence="mmd", bandwidth=1.0)[0, 0]
    assert mmd_of_statistic(hyppo_statistic(X, Y), X, Y) == pytest.approx(truth, rel=1e-9)


def test_transport_distances():
    """A shifted bag is as far as the shift, squared; over directions half of that. Matrices are
    symmetric and have a row a bag."""
    X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    shift = np.array([3.0, 4.0], dtype=np.float32)
    bags = Bags.from_list([X, X + shift, X])
    exact = distance_matrix(bags, None, transport_distance())
    np.testing.assert_allclose(exact, [[0, 25, 0], [25, 0, 25], [0, 25, 0]], atol=1e-4)
    sliced = distance_matrix(bags[:1], bags, sliced_distance(0))
    assert sliced.shape == (1, 3)
    assert sliced[0, 1] == pytest.approx(12.5, rel=0.3)


def test_gap_error():
    """It is zero for equal errors on equal bags; otherwise resampled bags decide."""
    rng = np.random.default_rng(0)
    y, shared = rng.normal(size=400), rng.normal(size=400)
    ours, peer = y + shared, y + 0.9 * shared + 0.2 * rng.normal(size=400)
    assert gap_error(ours, y + shared, y) == 0
    gaps = []
    for _ in range(2000):
        rows = rng.integers(0, 400, 400)
        rmse = [np.sqrt(np.mean((p[rows] - y[rows]) ** 2)) for p in (ours, peer)]
        gaps.append(rmse[0] - rmse[1])
    assert gap_error(ours, peer, y) == pytest.approx(np.std(gaps), rel=0.15)
