"""`bagbasis.search` against its slow twin: posteriors, draws, chances, rewards, choices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import ndtri
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LogisticRegression

from bagbasis import BagbasisError, DoubleBasisClassifier, MomentsEmbedding
from bagbasis.search import BagRegions, Field, PatternSearch, ProbitRegions, RegionClassifier
from tests.oracles import search as twin

NOISE = 0.05
EVERY = np.arange(3)


def world(seed, n=9, m=1, n_observed=4):
    """A field with observations, the same as a list, and weights of three regions."""
    rng = np.random.default_rng(seed)
    field = Field(rng.uniform(0, 3, (n, 2)), 1.5 * RBF(1.0), noise=NOISE, n_components=m)
    prior = field.covariance
    observed = [(int(p), rng.standard_normal(m)) for p in rng.integers(n, size=n_observed)]
    for place, values in observed:
        field = field.observe(place, values)
    weights = rng.normal(size=(3, n, m)) * (rng.random((3, n, 1)) < 0.5)
    return field, prior, observed, weights, rng


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 12))
def test_posterior(seed, m, n_observed):
    """One observation after the other, repeated ones too: one system of equations, as the twin
    and scikit-learn solve it."""
    field, prior, observed, _, _ = world(seed, 9, m, n_observed)
    mean, covariance = twin.posterior(prior, NOISE, observed)
    np.testing.assert_allclose(field.mean, mean, atol=1e-9)
    np.testing.assert_allclose(field.covariance, covariance, atol=1e-9)
    at = [place for place, _ in observed]
    values = np.array([values for _, values in observed])
    peer = GaussianProcessRegressor(1.5 * RBF(1.0), alpha=NOISE, optimizer=None)
    theirs = peer.fit(field.places[at], values).predict(field.places).reshape(mean.shape)
    np.testing.assert_allclose(field.mean, theirs, atol=1e-6)


def test_draws_have_the_posterior():
    """Means and covariances of draws, within their errors; of a singular prior, with a mean, too;
    the same by the seed."""
    places = np.repeat(np.random.default_rng(0).uniform(0, 2, (6, 2)), 2, axis=0)  # each twice
    field = Field(places, RBF(1.0) + WhiteKernel(0.3), noise=NOISE, n_components=2, prior_mean=2.0)
    prior = field.covariance
    observed = [(0, [1.0, 0.0]), (7, [3.0, 2.5]), (0, [1.2, 0.1])]
    for place, values in observed:
        field = field.observe(place, values)
    mean, covariance = twin.posterior(prior, NOISE, observed, 2.0)
    n = 20_000
    draws = field.draw(n, seed=1)
    np.testing.assert_array_equal(draws[0], field.draw(n, seed=1)[0])
    spread = np.sqrt(covariance.diagonal().clip(0) / n)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * spread[:, None] + 1e-6).all()
    for j in range(2):
        np.testing.assert_allclose(np.cov(draws[:, :, j].T), covariance, atol=0.04)
    np.testing.assert_allclose(prior[0, 1], 1.0)  # white noise is none of f


@pytest.mark.long
@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 2), st.sampled_from([0.2, 0.5, 0.7, 0.95]))
def test_closed_forms(seed, m, threshold):
    """Chances and rewards of probit-affine classifiers, against quadrature and drawn
    observations; and by correlation, as §7.3.2 has it."""
    field, prior, observed, weights, rng = world(seed, m=m)
    offsets = rng.normal(size=3)
    regions = ProbitRegions(weights, offsets)
    mean, covariance = twin.posterior(prior, NOISE, observed)
    expected = [twin.chance(weights[g], offsets[g], mean, covariance) for g in EVERY]
    result = regions.chances(field, EVERY, n_draws=0, rng=rng)
    np.testing.assert_allclose(result, expected, atol=1e-6)
    place, n = int(rng.integers(9)), 400
    rewards = regions.expected_rewards(
        field, np.array([place]), regions=EVERY, threshold=threshold, n_draws=(0, 0), rng=rng
    )[0]
    for g in EVERY:
        drawn = twin.reward(
            weights[g], offsets[g], prior, NOISE, observed, place, threshold, n, rng
        )
        assert abs(rewards[g] - drawn) < 5 * (0.25 / n) ** 0.5
        along = weights[g].T @ covariance
        seen = (along[:, place] ** 2).sum() / (covariance[place, place] + NOISE)
        rho = np.sqrt(seen / (1 + (along * weights[g].T).sum()))
        if threshold != 0.5 and rho > 1e-6:
            np.testing.assert_allclose(
                rewards[g], twin.reward_by_correlation(result[g], threshold, rho), atol=1e-6
            )


def test_check_values_of_a_low_threshold():
    """A single place with a single weight: for θ < ½ rewards rise and fall with ρ, although §7.3.2
    says that its conclusions hold for any θ."""
    T, threshold, result = 0.29, 0.3, []
    for rho in (0.32, 0.95):
        variance = rho**2 / (1 - rho**2)  # of L f with little noise: ρ² = v/(1 + v)
        field = Field([[0.0]], lambda a, b, v=variance: np.array([[v]]), noise=1e-12)
        regions = ProbitRegions([[1.0]], ndtri(T) * np.sqrt(1 + variance))
        first, rng = np.array([0]), np.random.default_rng(0)
        assert regions.chances(field, first, n_draws=0, rng=rng)[0] == pytest.approx(T)
        result.append(
            regions.expected_rewards(
                field, first, regions=first, threshold=threshold, n_draws=(0, 0), rng=rng
            )[0, 0]
        )
    np.testing.assert_allclose(result, [0.430, 0.341], atol=5e-4)


def test_arguments_by_keyword():
    """A call by place says which arguments are passed by keyword."""
    field, regions, rng = Field([[0.0]], RBF(1.0)), ProbitRegions([[1.0]]), np.random.default_rng(0)
    every, hint = np.array([0]), "; pass the others by keyword, such as "
    with pytest.raises(TypeError, match=f"{hint}n_draws="):
        regions.chances(field, every, 0, rng)
    with pytest.raises(TypeError, match=f"{hint}regions="):
        regions.expected_rewards(field, every, every, 0.5, (0, 0), rng)
    with pytest.raises(TypeError, match=f"{hint}place="):
        field.condition(np.zeros((1, 1, 1)), 0, field.gain(0), np.zeros(1), rng)
    with pytest.raises(TypeError, match=f"{hint}n_places="):
        ProbitRegions.of_means([[0]], 1, 1.0, 0.0)


class Drawn(ProbitRegions):
    """The same classifiers, without closed forms."""

    chances = RegionClassifier.chances
    expected_rewards = RegionClassifier.expected_rewards


@pytest.mark.long
def test_nested_monte_carlo_has_the_closed_forms(monkeypatch):
    """Within its error; a region that an observation hardly reaches is taken as it is."""
    field, _, _, weights, rng = world(5, m=2)
    weights[2] = 0
    weights[2, 0, 0] = 1  # of the one far place
    far = Field(
        np.vstack([[[50.0, 50.0]], field.places[1:]]), RBF(1.0), noise=NOISE, n_components=2
    )
    far = far.observe(3, [1.0, -0.5])
    exact, drawn = (kind(weights, [0.2, 0.7, 0.6]) for kind in (ProbitRegions, Drawn))
    np.testing.assert_allclose(
        drawn.chances(far, EVERY, n_draws=20_000, rng=rng),
        exact.chances(far, EVERY, n_draws=0, rng=rng),
        atol=0.015,
    )
    candidates, (n, n_inner) = np.array([1, 2, 4]), (400, 1_000)  # the fewer, the more blur
    unreached = drawn.expected_rewards(
        far, candidates, regions=EVERY[2:], threshold=0.6, n_draws=(2, 500), rng=rng
    )
    np.testing.assert_array_equal(
        unreached, exact.chances(far, EVERY[2:], n_draws=0, rng=rng)[0] > 0.6
    )
    monkeypatch.setattr("bagbasis.search.regions.MIN_VARIANCE", 0.0)
    result, expected = (
        kind.expected_rewards(
            far, candidates, regions=EVERY[:2], threshold=0.6, n_draws=(n, n_inner), rng=rng
        )
        for kind in (drawn, exact)
    )
    assert np.ptp(expected) > 0.2
    np.testing.assert_allclose(result, expected, atol=4 * (0.25 / n) ** 0.5)


@pytest.fixture(scope="module")
def model():
    """A classifier of bags (place, f): whether f grows from left to right."""
    rng = np.random.default_rng(0)
    bags, labels = [], []
    for _ in range(300):
        x, slope = rng.uniform(-1, 1, 12), rng.normal()
        bags.append(np.column_stack([x, slope * x + rng.normal() + 0.1 * rng.normal(size=12)]))
        labels.append("up" if slope > 0 else "down")
    box = [(-1.0, 1.0), (-6.0, 6.0)]
    return DoubleBasisClassifier(MomentsEmbedding(box=box), False, alpha=1e-3).fit(bags, labels)


def test_regions_of_a_model_of_bags(model, monkeypatch):
    """The bag of each region and draw, one by one; in small batches, too."""
    places = np.linspace(0, 4, 13)[:, None]
    regions = [range(0, 5), [4, 5, 6, 7], np.arange(6, 13)]
    judged = BagRegions(model, [np.array(r) for r in regions], label="up", coordinates=places)
    draws = np.random.default_rng(1).normal(size=(7, 13, 1))
    expected = [
        [
            model.predict_proba([np.column_stack([x - x.mean(), f[list(r), 0]])])[0, 1]
            for r in regions for x in [places[list(r), 0]]
        ]
        for f in draws
    ]  # fmt: skip
    np.testing.assert_allclose(judged.salience(draws, EVERY), expected, atol=1e-6)
    assert judged.salience(draws, np.array([], int)).shape == (7, 0)
    monkeypatch.setattr("bagbasis.search.regions.POINTS_PER_BATCH", 20)
    chosen = np.array([2, 0])
    np.testing.assert_allclose(
        judged.salience(draws, chosen), np.array(expected)[:, chosen], atol=1e-6
    )


def test_search_asks_where_most_is_expected(model):
    """The best of all places by the closed form; matches stay flagged for good, and a model of bags
    finds the slope that is there."""
    field, _, _, weights, rng = world(3)
    regions = ProbitRegions(weights, -0.5)
    search = PatternSearch(field, regions, threshold=0.6, n_candidates=None)
    remaining = np.flatnonzero(~search.flagged)
    rewards = regions.expected_rewards(
        field, np.arange(9), regions=remaining, threshold=0.6, n_draws=(0, 0), rng=rng
    )
    assert search.suggest() == rewards.sum(axis=1).argmax()

    places = np.linspace(0, 12, 37)[:, None]
    truth = np.where(places < 6, np.maximum(places - 3, 0), 3.0 - 0.5 * (places - 6))[:, 0]
    slopes = BagRegions(
        model, [np.arange(k, k + 7) for k in range(0, 31, 3)], label="up", coordinates=places
    )
    search = PatternSearch(
        Field(places, 4 * RBF(2.0), noise=1e-4), slopes, threshold=0.7, n_candidates=12, seed=4
    )
    assert not search.flagged.any()
    for _ in range(10):
        before = search.flagged.copy()
        place = search.suggest()
        search.observe(place, truth[place])
        assert (search.flagged >= before).all()
    rising = np.array([truth[r[-1]] - truth[r[0]] > 1 for r in slopes.regions])
    falling = np.array([truth[r[-1]] - truth[r[0]] < -0.5 for r in slopes.regions])
    assert search.flagged[rising].all()
    search.flagged[:] = True  # as at the end of a search that finds all: any place is as good
    assert 0 <= search.suggest() < len(places)
    assert search.chances()[rising].min() > 0.7 > 0.5 > search.chances()[falling].max()


PLACES = np.zeros((4, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: Field(PLACES[:, 0], RBF()), "places have shape"),
        (lambda m: Field([[np.nan]], RBF()), "place 0 has a coordinate"),
        (lambda m: Field(PLACES, lambda a, b: np.eye(3)), r"kernel gives shape \(3, 3\)"),
        (lambda m: Field(PLACES, lambda a, b: np.eye(4, k=1)), "not symmetric"),
        (lambda m: Field(PLACES, lambda a, b: -np.eye(4)), "not positive semi-definite"),
        (lambda m: Field(PLACES, lambda a: a), "kernel fails on places"),
        (lambda m: Field(PLACES, RBF()).observe(4, 0.0), "place is 4; expected an integer from 0"),
        (lambda m: Field(PLACES, RBF()).observe(0, [1.0, 2.0]), "expected 1 finite numbers"),
        (lambda m: Field(PLACES, RBF()).draw(0), "n_draws is 0"),
        (lambda m: ProbitRegions(np.ones(4)), "weights have shape"),
        (lambda m: ProbitRegions(np.ones((2, 4)), [1.0]), "offsets have shape"),
        (
            lambda m: ProbitRegions.of_means([[0, 4]], n_places=4, scale=1.0, offset=0.0),
            "region 0 has place 4 of 4",
        ),
        (lambda m: BagRegions(m, [[0]], label="left"), "label is 'left'; the model's classes"),
        (lambda m: BagRegions(m, [], label="up"), "there are no regions"),
        (lambda m: BagRegions(m, [[0], []], label="up"), "region 1 has shape"),
        (lambda m: BagRegions(m, [[0, -1]], label="up"), r"region 0 has places \[0, -1\]"),
        (lambda m: BagRegions(m, [[0, 4]], label="up", coordinates=PLACES), "5 places"),
        (lambda m: BagRegions(LogisticRegression(), [[0]], label="up"), "DoubleBasisClassifier"),
        (
            lambda m: PatternSearch(Field(PLACES, RBF()), BagRegions(m, [[0, 4]], label="up")),
            "region 0 has place 4; the field has 4 places",
        ),
        (
            lambda m: PatternSearch(Field(PLACES, RBF()), ProbitRegions(np.ones((2, 5)))),
            "weights have",
        ),
        (
            lambda m: PatternSearch(
                Field(PLACES, RBF()), ProbitRegions(np.ones((2, 4))), threshold=1.0
            ),
            "threshold is 1.0",
        ),
    ],
)  # fmt: skip
def test_refusals(call, message, model):
    """By name."""
    with pytest.raises(BagbasisError, match=message):
        call(model)
