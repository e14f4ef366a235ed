"""NFSIC, KSD and FSSD: formulas, gradients, merging, null distributions, and scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bagbasis import BagbasisError, DataError
from bagbasis.densities import Densities
from bagbasis.hypotheses import NFSIC, MixtureScore, SeriesScore, independence_test
from bagbasis.hypotheses.dependence import nfsic
from bagbasis.hypotheses.dependence.nfsic import Locations, LocationSums, learn_locations
from bagbasis.hypotheses.goodness import stein
from bagbasis.hypotheses.goodness.scores import GivenScore
from bagbasis.hypotheses.goodness.stein import SteinMoments, SteinSums, stein_features
from bagbasis.hypotheses.nulls.orders import permuted_orders
from bagbasis.hypotheses.nulls.wild_bootstrap import wild_signs
from tests.oracles import dependence

WIDTHS = (1.7, 1.1)
NORMAL = MixtureScore([0.0, 0.0])


def pair(n, seed=0, slope=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, slope * X[:, :1] ** 2 + rng.normal(size=(n, 1))


def independent(n, seed, **parameters):
    """The test of a normal pair."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    statistic = NFSIC(n_locations=5, **parameters)
    return independence_test(x, y, statistic=statistic, n_permutations=19, seed=seed)


def differences(function, theta, step=1e-6):
    """Central differences of a function of a vector."""
    steps = step * np.eye(len(theta))
    return np.array([(function(theta + h) - function(theta - h)) / (2 * step) for h in steps])


class TestNFSIC:
    def test_formula(self):
        X, Y = pair(11)
        at = Locations.drawn(X, Y, 3, WIDTHS, seed=1)
        K, L = at.kernels(X, Y)
        expected = dependence.nfsic(K.T, L.T, 1e-5)
        assert LocationSums.of(K, L).statistic(1e-5) == pytest.approx(expected)
        order = np.concatenate(list(permuted_orders(np.arange(11), 2, 0)))
        result = nfsic.nfsic_of_orders(K, L, iter([order]), 1e-5)
        assert result[1] == pytest.approx(dependence.nfsic(K.T, L[order[1]].T, 1e-5))

    @pytest.mark.long
    def test_contributions(self):
        """By location û_j (Σ̂ + γI)⁻¹_jk û_k, term by term; they and the rows are in the result."""
        X, Y = pair(300)
        r = independence_test(X, Y, statistic=NFSIC(n_locations=3), standardize=False)
        at = r.details["locations"]
        K, L = (
            np.array([[np.exp(-((row - v) ** 2).sum() / (2 * width**2)) for row in z] for v in vs])
            for z, vs, width in ((X, at["v"], at["x_bandwidth"]), (Y, at["w"], at["y_bandwidth"]))
        )
        u = np.array([np.cov(k, ell)[0, 1] for k, ell in zip(K, L, strict=True)])
        terms = np.array([(k - k.mean()) * (ell - ell.mean()) for k, ell in zip(K, L, strict=True)])
        inverse = np.linalg.inv(
            (terms - u[:, None]) @ (terms - u[:, None]).T / 300 + 1e-5 * np.eye(3)
        )
        np.testing.assert_allclose(r.details["differences"], u)
        shares = [sum(300 * u[j] * inverse[j, k] * u[k] for k in range(3)) for j in range(3)]
        np.testing.assert_allclose(r.details["contributions"], shares)
        assert sum(r.details["contributions"]) == pytest.approx(r.statistic)
        np.testing.assert_array_equal(r.sampled_rows["x"], X)
        assert "\nlocations" not in r.report()
        assert "sampled_rows" not in r.to_dict()

    def test_sums_merge_and_subtract(self):
        X, Y = pair(400)
        K, L = Locations.drawn(X, Y, 10, WIDTHS, seed=1).kernels(X, Y)
        parts = [LocationSums.of(K[a:b], L[a:b]) for a, b in ((0, 7), (7, 200), (200, 400))]
        whole = LocationSums.of(K, L)
        merged = parts[0] + parts[1] + parts[2]
        assert merged.statistic() == pytest.approx(whole.statistic(), rel=1e-9)
        rest = (whole - parts[2]).statistic()
        assert rest == pytest.approx((parts[0] + parts[1]).statistic(), rel=1e-9)

    def test_gradient(self):
        """By central differences, in all locations and both bandwidths."""
        X, Y = pair(40)
        at = Locations.drawn(X, Y, 3, WIDTHS, seed=2)
        theta = np.concatenate(
            [at.v.ravel(), at.w.ravel(), np.log([at.x_bandwidth, at.y_bandwidth])]
        )

        def value(theta):
            single = Locations(
                theta[:6].reshape(3, 2), theta[6:9].reshape(3, 1), *np.exp(theta[9:])
            )
            return LocationSums.of(*single.kernels(X, Y)).statistic(1e-3)

        result, gradient = nfsic.nfsic_gradient(at, X, Y, 1e-3)
        assert result == pytest.approx(value(theta))
        np.testing.assert_allclose(gradient, differences(value, theta), rtol=1e-5, atol=1e-7)

    @pytest.mark.long
    def test_law_without_dependence(self):
        """χ²(J): mean J, variance 2 J and a fraction .05 above the quantile, of 1,000 samples."""
        at = Locations.drawn(*pair(1000), 3, WIDTHS, seed=3)
        values = np.array([
            LocationSums.of(*at.kernels(*pair(500, seed, slope=0.0))).statistic()
            for seed in range(1000)
        ])  # fmt: skip
        assert values.mean() == pytest.approx(3, abs=3 * (6 / 1000) ** 0.5)
        assert values.var() == pytest.approx(6, rel=0.25)
        above = (values > stats.chi2(3).ppf(0.95)).mean()
        assert above == pytest.approx(0.05, abs=3 * (0.05 * 0.95 / 1000) ** 0.5)

    @pytest.mark.long
    def test_level_of_learnt_locations(self):
        """Independent pairs are found dependent as often as α says."""
        p = np.array([
            independent(400, seed, learn=0.5).p_value for seed in range(40)
        ])  # fmt: skip
        for alpha in (0.05, 0.2):
            assert (p <= alpha).mean() <= alpha + 2 * (alpha * (1 - alpha) / len(p)) ** 0.5

    def test_learnt_locations_find_more(self):
        """Locations for y = x₁² + noise; they are the same for the same rows."""
        X, Y = pair(600)
        start = Locations.drawn(X[:300], Y[:300], 2, WIDTHS, seed=4)
        learnt = learn_locations(start, X[:300], Y[:300])
        held_out = X[300:], Y[300:]
        before, after = (
            LocationSums.of(*at.kernels(*held_out)).statistic() for at in (start, learnt)
        )
        assert after > 1.15 * before
        np.testing.assert_array_equal(learnt.v, learn_locations(start, X[:300], Y[:300]).v)


class TestStein:
    @pytest.mark.parametrize("d", [1, 3])
    def test_kernel_term_by_term(self, d):
        rng = np.random.default_rng(d)
        scored = stein.Scored(*(rng.normal(size=(6, d)) for _ in range(2)), rng.random(6))
        result = stein.stein_kernel(scored, scored[:4], 0.7)
        for i in range(6):
            for j in range(4):
                x, y = ((scored.points[k], scored.slopes[k], scored.weights[k]) for k in (i, j))
                expected = dependence.stein_kernel(x[0], y[0], x[1], y[1], x[2], y[2], 0.7)
                assert result[i, j] == pytest.approx(expected)

    def test_statistics_and_tiles(self, monkeypatch):
        X = np.random.default_rng(0).normal(size=(13, 2))
        scored, signs = NORMAL(X), wild_signs(13, 5, 0.0, seed=1)
        whole = SteinSums.of(scored, 1.0, signs)
        H = stein.stein_kernel(scored, scored, 1.0)
        np.fill_diagonal(H, 0)
        assert whole.statistic == pytest.approx(H.sum() / (13 * 12))
        np.testing.assert_allclose(whole.signed, [w @ H @ w / (13 * 12) for w in signs])
        monkeypatch.setattr("bagbasis.hypotheses.kernels.kernels.tiles.__defaults__", (4,))
        tiled = SteinSums.of(scored, 1.0, signs)
        np.testing.assert_allclose(tiled.rows, whole.rows)
        np.testing.assert_allclose(tiled.signed, whole.signed)

    def test_features(self):
        """FSSD² is the mean over pairs; its τ are the Stein kernel's halves; sums merge."""
        rng = np.random.default_rng(1)
        scored = MixtureScore([[0.0, 0.0], [2.0, 1.0]])(rng.normal(size=(30, 2)))
        tau = stein_features(scored, rng.normal(size=(3, 2)), 1.2)
        whole = SteinMoments.of(tau)
        parts = SteinMoments.of(tau[:11]), SteinMoments.of(tau[11:])
        assert whole.statistic() == pytest.approx(dependence.fssd(tau))
        assert (parts[0] + parts[1]).statistic() == pytest.approx(whole.statistic(), rel=1e-11)
        assert (whole - parts[1]).statistic() == pytest.approx(parts[0].statistic(), rel=1e-10)
        expected = np.linalg.eigvalsh(tau.T @ tau / len(tau))
        np.testing.assert_allclose(whole.weights(), expected, atol=1e-12)

    def test_gradient(self):
        rng = np.random.default_rng(2)
        scored = stein.Scored(rng.normal(size=(20, 2)), rng.normal(size=(20, 2)), rng.random(20))
        v = rng.normal(size=(2, 2))

        def value(theta):
            return stein.fssd_gradient(scored, theta[:4].reshape(2, 2), np.exp(theta[4]))[0]

        theta = np.append(v.ravel(), np.log(0.9))
        moments = SteinMoments.of(stein_features(scored, v, 0.9))
        ratio = moments.statistic() / (moments.standard_error() * 20**0.5 + 1e-3)
        assert value(theta) == pytest.approx(ratio)
        gradient = stein.fssd_gradient(scored, v, 0.9)[1]
        np.testing.assert_allclose(gradient, differences(value, theta), rtol=1e-5, atol=1e-8)

    @pytest.mark.parametrize("length", [0.0, 3.0])
    def test_signs_forget(self, length):
        """Correlations e^{−lag / length}, means of 0."""
        signs = wild_signs(50, 4000, length, seed=3)
        assert set(np.unique(signs)) == {-1.0, 1.0}
        for lag in (1, 4):
            result = (signs[:, :-lag] * signs[:, lag:]).mean()
            expected = np.exp(-lag / length) if length else 0.0
            assert result == pytest.approx(expected, abs=0.01)
        assert abs(signs.mean()) < 0.05

    @pytest.mark.long
    def test_zero_on_average_where_the_law_is_right(self):
        """KSD², FSSD² over 200 samples of a mixture, and of a series with edges."""
        rng = np.random.default_rng(4)
        mixture = MixtureScore([[-1.0], [2.0]], 0.5, weights=[1.0, 3.0])
        series = Densities([[1.0, 0.4, -0.3]], [[0], [1], [2]], basis="cosine", box=[(0.0, 2.0)])
        drawn = series.sample(200 * 50, seed=5)[0].reshape(200, 50, 1)
        centres = np.array([-1.0, 2.0])[(rng.random((200, 50)) < 0.75).astype(int)]
        mixed = (centres + 0.5**0.5 * rng.normal(size=(200, 50)))[:, :, None]
        at = np.array([[0.3], [1.5]])
        for score, samples in ((mixture, mixed), (SeriesScore(series), drawn)):
            values = [
                [SteinSums.of(score(x), 0.5, np.empty((0, 50))).statistic,
                 SteinMoments.of(stein_features(score(x), at, 0.5)).statistic()]
                for x in samples
            ]  # fmt: skip
            mean, spread = np.mean(values, axis=0), np.std(values, axis=0)
            assert (abs(mean) < 4 * spread / 200**0.5).all()

    @pytest.mark.long
    def test_fssd_law(self):
        """n FSSD² is Σ ω (χ² − 1) for points of the right distribution: its variance is 2 Σ ω²."""
        rng = np.random.default_rng(6)
        v = rng.normal(size=(2, 2))
        moments = [
            SteinMoments.of(stein_features(NORMAL(rng.normal(size=(300, 2))), v, 1.0))
            for _ in range(1000)
        ]
        values = np.array([300 * moment.statistic() for moment in moments])
        weights = np.mean([moment.weights() for moment in moments], axis=0)
        assert values.var() == pytest.approx(2 * (weights**2).sum(), rel=0.2)
        assert abs(values.mean()) < 4 * values.std() / 1000**0.5

    def test_learnt_locations_find_more(self):
        """A normal density has another variance than it should; the same for the same points."""
        rng = np.random.default_rng(7)
        X = rng.normal(size=(800, 2)) * [1.0, 1.3]
        v = rng.normal(size=(2, 2))
        learnt, width = stein.learn_stein_locations(NORMAL(X[:400]), v, 1.0)
        before, after = (
            stein.fssd_gradient(NORMAL(X[400:]), *at)[0] for at in ((v, 1.0), (learnt, width))
        )
        assert after > 1.2 * before


class TestScores:
    def test_mixture(self):
        """∇ log p by differences."""
        means, covariances = [[0.0, 1.0], [2.0, -1.0]], [[[1, 0.3], [0.3, 2]], [[0.5, 0], [0, 1]]]
        score = MixtureScore(means, covariances, weights=[1.0, 2.0])

        def log_p(x):
            parts = zip((1, 2), means, covariances, strict=True)
            return np.log(sum(w * stats.multivariate_normal(m, c).pdf(x) for w, m, c in parts))

        for x in np.random.default_rng(0).normal(size=(5, 2)):
            np.testing.assert_allclose(
                score(x[None]).slopes[0], differences(log_p, x), rtol=1e-6, atol=1e-8
            )

    @pytest.mark.parametrize("basis", ["cosine", "legendre"])
    def test_series(self, basis):
        """b s + ∇b by differences of b p, also next to an edge."""
        indices = [[0, 0], [1, 0], [0, 1], [1, 1]]
        density = Densities([[1.0, 0.3, 0.2, -0.1]], indices, basis=basis, box=[(0, 2), (-1, 1)])

        def weighted(x):
            u = (x - [0, -1]) / 2
            return density.at(x[None])[0, 0] * (4 * u * (1 - u)).prod()

        for x in ([0.7, 0.3], [1.9999999, -0.5], [1.2, -0.9]):
            scored = SeriesScore(density)(np.array([x]))
            slopes = differences(weighted, np.array(x), 1e-8) / density.at([x])[0, 0]
            np.testing.assert_allclose(scored.slopes[0], slopes, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda: MixtureScore([[0.0]], [[[-1.0]]]), "not positive definite"),
            (lambda: MixtureScore([[0.0, 1.0]], [[1.0]]), "expected"),
            (lambda: MixtureScore([[0.0]], 1.0, weights=[0.0]), "above 0"),
            (lambda: MixtureScore([[np.nan]]), "NaN"),
            (lambda: MixtureScore([0.0])(np.zeros((2, 3))), "dimension 3"),
            (lambda: SeriesScore("x"), "expected Densities"),
            (lambda: GivenScore(lambda x: x[:, :0])(np.zeros((2, 1))), "shape"),
            (lambda: GivenScore(lambda x: x @ x)(np.zeros((2, 1))), "fails"),
        ],
    )
    def test_refusals(self, make, text):
        with pytest.raises(BagbasisError, match=text):
            make()

    def test_points_that_a_series_does_not_have(self):
        density = Densities([[1.0]], [[0]], basis="cosine", box=None)
        with pytest.raises(DataError, match="point 1: the density is 0"):
            SeriesScore(density)(np.array([[0.5], [1.5]]))
