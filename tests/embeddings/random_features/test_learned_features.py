"""`LearnedFourierFeatures`: the evidence, sweeps of one pass, the prior, and what is learnt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from sklearn.base import clone

from bagbasis import DataError, LearnedFourierFeatures, ParameterError, RandomFourierFeatures
from bagbasis.embeddings import LearnedSpec
from bagbasis.embeddings.random_features.learned import LabelledRows
from bagbasis.embeddings.random_features.spectral_mixture import (
    FAMILIES,
    Diagonal,
    Full,
    Mixture,
    log_density,
)
from bagbasis.embeddings.random_features.spectrum_evidence import accept_in_turn, log_evidence
from tests.oracles import learned_spectrum as oracle


def problem(seed, n, m, d=2, q=1):
    """Rows, targets that a few frequencies make, current frequencies and others, in rows."""
    rng = np.random.default_rng(seed)
    rows, omega, proposed = (rng.standard_normal((k, d)) for k in (n, m, m))
    targets = np.sin(rows @ rng.standard_normal((d, q))) + 0.3 * rng.standard_normal((n, q))
    return rows, targets + 5, omega, proposed, np.log(rng.random(m))


def sums_of(rows, targets, omega):
    """Return sums of one pass."""
    return LabelledRows(rows, targets)(LearnedSpec(omega.T, 1.0), len(rows), "")


@settings(max_examples=8)
@given(st.integers(0, 99), st.integers(12, 30), st.integers(1, 5), st.integers(1, 3))
def test_evidence_is_that_of_a_multivariate_t(seed, n, m, q):
    """Differences between penalties and frequencies; a constant of the data is left out."""
    rows, targets, omega, proposed, _ = problem(seed, n, m, q=q)
    penalties = np.array([1e-3, 0.1, 30.0])
    ours = [log_evidence(sums_of(rows, targets, w), penalties) for w in (omega, proposed)]
    slow = [
        [oracle.log_evidence(rows, targets, w, p) for p in penalties] for w in (omega, proposed)
    ]
    np.testing.assert_allclose(np.ravel(ours) - ours[0][0], np.ravel(slow) - slow[0][0], atol=1e-7)


@pytest.mark.long
@settings(max_examples=8)
@given(st.integers(0, 99), st.integers(12, 40), st.integers(1, 8), st.integers(1, 3))
def test_a_sweep_of_one_pass_decides_as_sequential_metropolis_hastings(seed, n, m, q):
    """The sums of old and new frequencies together say all that a pass per proposal says."""
    rows, targets, omega, proposed, chances = problem(seed, n, m, q=q)
    both = sums_of(rows, targets, np.concatenate([omega, proposed])).scaled(2.0)
    ours = accept_in_turn(both, 0.05, chances)
    slow = oracle.metropolis_hastings(rows, targets, omega, proposed, 0.05, chances)
    np.testing.assert_array_equal(ours, slow)


def test_many_exchanges_keep_their_digits():
    """Gains are those of the evidence where features hardly differ: rounding does not grow."""
    rows, targets, omega, proposed, _ = problem(1, 2000, 50, d=2)
    both = sums_of(rows, targets, np.concatenate([omega, proposed])).scaled(2.0)
    m, penalty = len(omega), 1e-7 * len(rows)
    state = np.arange(m)
    gains = np.empty(m)
    before = log_evidence(both.of_frequencies(state), np.array([penalty]))[0]
    for j in range(m):
        state[j] += m
        after = log_evidence(both.of_frequencies(state), np.array([penalty]))[0]
        gains[j], before = after - before, after
    # all are accepted just below their gain; one just above its own is not
    assert accept_in_turn(both, penalty, gains - 1e-5).all()
    last = gains - 1e-5
    last[-1] = gains[-1] + 1e-5
    assert accept_in_turn(both, penalty, last).tolist() == [True] * (m - 1) + [False]


@pytest.mark.long
@pytest.mark.parametrize("covariance", FAMILIES)
def test_without_data_sweeps_keep_the_law_of_the_prior(covariance):
    """Frequencies that are always exchanged have the Student t that the prior says."""
    generator = np.random.default_rng(5)
    family = FAMILIES[covariance](0.5)
    omega, mixture = np.zeros((6, 1)), Mixture(family, 1.0, np.zeros(6, np.int64), [], [])
    drawn = []
    for _ in range(1000):
        mixture = mixture.with_components(omega, generator).with_labels(omega, generator)
        mixture, omega = mixture.propose(omega, generator)
        drawn.append(np.abs(omega[:, 0]))
    marginal = stats.t(3, scale=np.sqrt(3.0 / 3))  # Ψ₀ (κ₀ + 1) / (κ₀ ν₀)
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert np.mean(np.array(drawn) < marginal.ppf((1 + share) / 2)) == pytest.approx(
            share, abs=0.07
        )


def test_both_covariances_are_one_law_for_one_input():
    """Densities and the marginal of new components; the diagonal of d is d of one."""
    omega = np.random.default_rng(0).standard_normal((5, 1))
    first, full = Diagonal(0.2), Full(0.2)
    new = stats.t(3, scale=np.sqrt((1 + 1 / 0.2) / 3)).logpdf(omega[:, 0])
    np.testing.assert_allclose(first.log_prior(omega), new)
    np.testing.assert_allclose(full.log_prior(omega), new)
    shape, pair = np.eye(2) * (1 + 1 / 0.2) / 3, omega[:2].T
    whole = stats.multivariate_t([0, 0], shape, 3).logpdf(pair)
    np.testing.assert_allclose(full.log_prior(pair), np.atleast_1d(whole))
    mean, root = np.array([0.3]), np.array([1.7])
    expected = stats.norm(0.3, 1.7).logpdf(omega[:, 0])
    np.testing.assert_allclose(log_density(first, omega, mean, root), expected)
    np.testing.assert_allclose(log_density(full, omega, mean, root[:, None]), expected)


@pytest.mark.parametrize("covariance", FAMILIES)
def test_components_follow_their_members(covariance):
    """Means and covariances of many members are those of the sample."""
    generator = np.random.default_rng(3)
    members = generator.standard_normal((5000, 2)) * [0.5, 3.0] + [2.0, -1.0]
    family = FAMILIES[covariance](0.1)
    mean, root = family.draw(members, generator)
    np.testing.assert_allclose(mean, [2.0, -1.0], atol=0.2)
    spread = family.spread(root, generator.standard_normal((5000, 2)))
    np.testing.assert_allclose(spread.std(axis=0), [0.5, 3.0], rtol=0.1)


@pytest.mark.long
def test_what_is_learnt_predicts_better_than_a_gaussian_kernel():
    """Two of six inputs matter."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1500, 6))
    y = np.sin(2 * rows[:, 0]) + rows[:, 1] + 0.1 * rng.standard_normal(1500)
    learned = LearnedFourierFeatures(n_features=64, n_sweeps=20, seed=1)
    errors = []
    for features in (learned, RandomFourierFeatures(n_features=64, seed=1)):
        z = features.fit(rows[:1000], y[:1000]).transform(rows)
        z -= z.mean(axis=0)
        gram = z[:1000].T @ z[:1000] + 1e-4 * np.eye(64)
        psi = np.linalg.solve(gram, z[:1000].T @ (y[:1000] - y[:1000].mean()))
        errors.append(np.mean((y[1000:] - y[:1000].mean() - z[1000:] @ psi) ** 2))
    assert errors[0] < 0.5 * errors[1]
    again = clone(learned).fit(rows[:1000], y[:1000])
    assert again.spec_ == learned.spec_
    assert clone(learned).set_params(seed=2).fit(rows[:1000], y[:1000]).spec_ != learned.spec_


def test_without_sweeps_frequencies_are_those_of_a_gaussian_kernel():
    """They are `RandomFourierFeatures` with the same seed and width, to the bit."""
    rows, targets, *_ = problem(0, 50, 1, d=3)
    ours = LearnedFourierFeatures(n_features=16, scale=0.7, n_sweeps=0, seed=4).fit(rows, targets)
    theirs = RandomFourierFeatures(n_features=16, scale=0.7, seed=4).fit(rows)
    np.testing.assert_array_equal(ours.spec_.frequencies, theirs.spec_.frequencies())
    for dtype in (np.float32, np.float64):
        value = rows.astype(dtype)
        np.testing.assert_array_equal(ours.transform(value), theirs.transform(value))


def test_targets_that_say_nothing_leave_the_prior():
    """Constant targets are no reason to refuse a frequency."""
    rows, targets, *_ = problem(0, 50, 1)
    features = LearnedFourierFeatures(n_features=8, n_sweeps=3).fit(rows, np.ones_like(targets))
    assert np.isfinite(features.transform(rows)).all()


@pytest.mark.parametrize(
    ("params", "inputs", "words"),
    [
        ({"n_features": 7}, 2, "even"),
        ({"covariance": "full"}, 101, "up to 100 inputs, and there are 101: take 'diagonal'"),
        ({"n_features": 2_000_000}, 2, "take fewer features"),
    ],
)
def test_refusals_name_the_parameter(params, inputs, words):
    """Sizes that learning has no room for are refused before it begins."""
    rows = np.zeros((5, inputs))
    with pytest.raises(ParameterError, match=words):
        LearnedFourierFeatures(**params).fit(rows, np.arange(5))


def test_labels_are_needed():
    """Nothing is learnt without them, or from others than there are rows."""
    rows = np.zeros((5, 2))
    with pytest.raises(ParameterError, match="follow the labels"):
        LearnedFourierFeatures().fit(rows)
    for y in (np.ones(4), np.full(5, np.nan)):
        with pytest.raises(DataError, match="y has shape"):
            LearnedFourierFeatures().fit(rows, y)
