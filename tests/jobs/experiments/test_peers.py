"""Ours beside other packages, at small scale: the same work, and how well it is done."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge

import bagbasis.jobs.experiments.peers
import bagbasis.jobs.experiments.peers_falkon
from bagbasis import Bags, BagStore, ProjectionEmbedding
from bagbasis.divergences import divergence_matrix
from bagbasis.errors import ConfigError
from bagbasis.jobs.experiments.data.two_sample_data import blobs
from bagbasis.jobs.experiments.experiment import Point, Result, measured
from bagbasis.jobs.experiments.gmm_components import mixtures
from bagbasis.jobs.experiments.peers import SETTINGS, Peers
from bagbasis.jobs.experiments.peers_falkon import fit_falkon, kernel
from bagbasis.jobs.experiments.peers_mmd import hyppo_statistic, mmd_of_statistic
from bagbasis.jobs.experiments.peers_projection import direct_coefficients
from bagbasis.jobs.experiments.peers_regression import (
    PEERS,
    bag_features,
    fit_dask,
    fit_sklearn,
    fourier,
    gap_error,
    read_features,
)
from bagbasis.jobs.experiments.peers_report import cells, crossing, regression_table
from bagbasis.jobs.experiments.peers_transport import (
    distance_matrix,
    sliced_distance,
    transport_distance,
)
from tests.jobs.experiments.running import results_of, small_run
from tests.jobs.running import assert_picture, refused, settings


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    return small_run("peers", tmp_path_factory.mktemp("peers"))


@pytest.fixture(scope="module")
def results(out_dir):
    """All points that were measured."""
    return results_of(out_dir)[1]


@pytest.fixture(scope="module")
def fits(results):
    """RMSE of the peers of regression, and ours."""
    found = {r.point.params["peer"]: r.values for r in measured(results, "regression")}
    errors = {peer: v["peer_quality"] for peer, v in found.items()}
    [ours] = {v["quality"] for v in found.values()}
    [constant] = {v["constant"] for v in found.values()}
    return {**errors, "ours": ours, "constant": constant}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """300 mixtures of 40 points."""
    bags, y = mixtures(5, 40, 300)
    url = tmp_path_factory.mktemp("store") / "bags.zarr"
    store = BagStore.create(url, 2, ["k"], box=[(-10, 10)] * 2)
    store.append(bags, targets={"k": y})
    return store


def test_regressions_do_the_same_work(fits):
    """All learn, and with the same projection, σ and penalty they err alike. Over seeds 0 to 3
    ours is .97 to 1.03 × RBFSampler's error and 1.04 to 1.08 × KernelRidge's, and FALKON's is
    .99 to 1.02 × Nystroem's."""
    assert set(fits) == {*PEERS, "ours", "constant"}
    for peer in (*PEERS, "ours"):
        assert fits[peer] < 0.75 * fits["constant"]
    for peer in ("RBFSampler + Ridge", "dask.array"):
        assert fits["ours"] == pytest.approx(fits[peer], rel=0.1)
    assert fits["ours"] == pytest.approx(fits["KernelRidge"], rel=0.15)
    assert fits["FALKON"] == pytest.approx(fits["Nystroem + Ridge"], rel=0.06)


def test_projection_is_finufft_s(results):
    """The same coefficients in one to three dimensions, of small bags and of a large one. Over
    seeds 0 to 3 errors are at most 8·10⁻⁷ and 6·10⁻⁵."""
    found = measured(results, "projection")
    assert {(r.point.params["n_points"], r.point.params["d"]) for r in found} == set(
        SETTINGS["small"].projections
    )
    for r in found:
        for size in r.values["sizes"]:
            assert size["quality"] < 3e-6
            assert size["peer_quality"] < 2e-4


def test_mmd_is_in_hyppo_s_statistic(results):
    """The MMD² that hyppo's statistic comes from is ours of all pairs, and random features are
    near it. Over seeds 0 to 3 ours differs by 5·10⁻⁶ at most, random features by .09."""
    for r in measured(results, "mmd"):
        pairs, features = r.values["all pairs"], r.values["random features"]
        assert pairs["peer_quality"] < 1e-9
        assert pairs["quality"] < 1e-4
        assert features["quality"] < 0.3
        assert r.values["mmd"] > 0


def test_distances_of_bags_predict(results):
    """All methods have an error, transport has a price a pair, and JS beats the constant."""
    [found] = measured(results, "transport")
    methods = found.values["methods"]
    assert set(found.values["pairs"]) | set(found.values["pairs"]["projection"]) == set(methods)
    for name, method in methods.items():
        assert np.isfinite(method["rmse"])
        assert (method["seconds_a_pair"] is not None) == ("Wasserstein" in name)
    assert methods["JS embedding"]["rmse"] < found.values["constant"]


@pytest.mark.parametrize("kept", [2**31, 0])
def test_falkon_is_the_nystroem_solution(kept, monkeypatch):
    """Conjugate gradients end where the normal equations (KᵀK + α K_MM) β = Kᵀ y are solved,
    whether kernel values are kept or not; with one block or several."""
    monkeypatch.setattr(bagbasis.jobs.experiments.peers_falkon, "KEPT_BYTES", kept)
    monkeypatch.setattr(bagbasis.jobs.experiments.peers_falkon, "ROWS_A_BLOCK", 250)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.sin(X[:, 0]) + X[:, 1] + 2
    gamma, alpha = 0.3, 6.0
    model = fit_falkon(X, y, 60, gamma, alpha, 100, 0)
    K, own = kernel(X, model.centres, gamma), kernel(model.centres, model.centres, gamma)
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
    np.testing.assert_allclose(kernel(X, Y, 0.7), 1 + np.exp(-0.7 * squares), rtol=1e-12)


def test_dask_fit_is_a_ridge_regression(store):
    """By blocks it finds what scikit-learn's Ridge finds from the same features in memory."""
    here = SimpleNamespace(compute=lambda sums: dask.compute(*sums), gather=lambda sums: sums)
    found = fit_dask(here, store.url, store.n_bags, 64, 0.5, 0.3)
    embeddings = read_features(store.url, 0, store.n_bags)
    z = fourier(embeddings, found.frequencies, found.phases)
    ridge = Ridge(alpha=0.3).fit(z, mixtures(5, 40, 300)[1])
    np.testing.assert_allclose(found.predict(embeddings), ridge.predict(z), atol=1e-8)


def test_features_of_others_are_ours(store):
    """The numpy projection from the store is `ProjectionEmbedding`'s, which peers begin with."""
    ours = ProjectionEmbedding(dtype="float64", box=[(-10, 10)] * 2).fit_transform(store.read())
    np.testing.assert_allclose(read_features(store.url, 0, store.n_bags), ours, atol=1e-6)
    model = fit_sklearn(store.url, store.n_bags, RBFSampler(n_components=16, random_state=0), 1.0)
    assert model.predict(ours).shape == (store.n_bags,)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_direct_coefficients(d, monkeypatch):
    """In any dimension, by blocks of points as at once, and as our embedding in double."""
    monkeypatch.setattr("bagbasis.jobs.experiments.peers_projection.DIRECT_ROWS", 64)
    points = np.random.default_rng(d).random((150, d))
    embedding = ProjectionEmbedding(n_per_dim=4, box=[(0, 1)] * d, dtype="float64")
    direct = direct_coefficients(points, 4)
    np.testing.assert_allclose(direct, bag_features(points, 4), atol=1e-14)
    np.testing.assert_allclose(direct, embedding.fit_transform([points])[0], atol=1e-9)


def test_mmd_of_statistic_of_sets_of_two_sizes():
    """The normalisation that is undone is that of n and m points."""
    rng = np.random.default_rng(0)
    X, Y = blobs(rng, 60, 1.0), blobs(rng, 90, 4.0)
    truth = divergence_matrix([X], [Y], "mmd", bandwidth=1.0)[0, 0]
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


def test_crossing():
    """Between two sizes in logarithms; at the first where finufft always wins, None where never."""

    def result(*ratios):
        sizes = [{"s": 10**i, "ratio": r} for i, r in enumerate(ratios, 1)]
        return Result(Point("p", {}), {"sizes": sizes}, 0.0)

    assert crossing(result(4.0, 2.0, 0.5)) == pytest.approx(10**2.5)
    assert crossing(result(0.5, 0.1)) == 10
    assert crossing(result(3.0, 2.0)) is None


def test_losses_are_said():
    """Who is faster, and who errs less, is named with the size; others are not."""
    params = {"measure": "regression", "n_train": 50, "D": 8}
    times = {"ours": 2.0, "low": 1.0, "high": 3.0, "constant": 3.0, "gap_error": 0.25}
    results = [
        Result(Point(peer, {**params, "peer": peer}), {**times, **values}, 0.0)
        for peer, values in {
            "dask.array": {"peer": 4.0, "ratio": 2.0, "quality": 1.5, "peer_quality": 1.5},
            "FALKON": {"peer": 1.0, "ratio": 0.5, "quality": 1.5, "peer_quality": 1.4},
        }.items()
    ]
    remarks = regression_table(results, 20).remarks
    assert "We lose in time to FALKON at N = 50." in remarks
    [worse] = [remark for remark in remarks if "larger error" in remark]
    assert "beside FALKON at N = 50;" in worse
    assert "up to 0.2500" in worse
    none = regression_table(results[:1], 20).remarks
    assert none[-1] == "We lose to none of them here, in time or error."


def test_gap_error():
    """Of equal errors on equal bags there is none; else it is what resampled bags say."""
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


def test_one_round_has_no_range():
    """A range is shown where there are several pairs."""
    values = {"ours": 2.0, "peer": 4.0, "ratio": 2.0, "low": 2.0, "high": 2.0}
    assert cells(values, 1e3) == [2000.0, 4000.0, 2.0, "one pair"]
    assert cells({**values, "high": 2.5})[-1] == "2 to 2.5"


def test_missing_package_is_named(monkeypatch, tmp_path):
    """One line says what to install, before anything is measured."""

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(bagbasis.jobs.experiments.peers, "version", missing)
    line = refused(2, "experiment", "peers", *settings(out_dir=tmp_path))
    assert "needs pip install 'bagbasis[peers]' (there is no finufft)" in line


def test_cluster_is_refused(monkeypatch, tmp_path):
    """Ours would run on its workers, the peers here."""
    monkeypatch.setattr(bagbasis.jobs.experiments.peers, "current_client", lambda: object())
    experiment = Peers("small", 0, tmp_path)
    with pytest.raises(ConfigError, match="leave out --cluster"):
        experiment.measure(experiment.points()[0], lambda done, total: None)


def test_points_know_the_peer_s_version(tmp_path, monkeypatch):
    """Another hyppo is measured again; large sets have no full kernel matrix."""
    points = Peers("paper", 0, tmp_path).points()
    kernels = [p for p in points if p.params.get("peer") == "KernelRidge"]
    assert [p.params["n_train"] for p in kernels] == [10_000]
    monkeypatch.setattr(bagbasis.jobs.experiments.peers, "version", lambda name: "0")
    others = Peers("paper", 0, tmp_path).points()
    changed = {p.params["measure"] for p, q in zip(points, others, strict=True) if p != q}
    assert changed == {"projection", "mmd", "transport"}


def test_tables_and_pictures(out_dir):
    """A table a piece of work, all alike; pictures are drawn."""
    report, results = results_of(out_dir)
    for table in report["tables"]:
        assert len(table["columns"]) == 8
        assert table["columns"][4:6] == ["peer / ours", "range"]
    regression, projection, mmd, transport = report["tables"]
    assert [row[1] for row in regression["rows"]] == list(PEERS)
    assert len(projection["rows"]) == sum(map(len, SETTINGS["small"].projections.values()))
    assert len(mmd["rows"]) == 2 * len(SETTINGS["small"].sizes)
    assert len(transport["rows"]) == 6
    assert any("beside Nystroem + Ridge" in remark for remark in regression["remarks"])
    assert report["pictures"] == ["regression.png", "projection.png", "distances.png"]
    for name in report["pictures"]:
        assert_picture(out_dir / name)
    assert [r.point for r in results] == Peers("small", 0, out_dir).points()
