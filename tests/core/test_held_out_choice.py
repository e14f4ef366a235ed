"""The rule of one paired standard error, by hand and by its chance of a wrong choice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bagbasis.core.held_out_choice import as_good_as_best, error_of_best, simplest_within


def test_a_lead_of_less_than_one_paired_error_is_none():
    """Four differences with the mean .0875; the limit is Student's quantile times .092."""
    best = np.array([1.0, 5.0, 2.0, 8.0])
    gaps = np.array([0.3, 0.1, -0.15, 0.1])
    limit = stats.t(3).ppf(stats.norm.cdf(1))
    error = gaps.std(ddof=1) / 2
    assert gaps.mean() < limit * error
    assert simplest_within([best + gaps, best]) == 0
    assert simplest_within([best + gaps + 1.0, best]) == 1  # units vary by more, in both alike
    just = gaps - gaps.mean() + limit * error
    assert not as_good_as_best(
        [best + 0.9 * limit * error + gaps - gaps.mean(), best], n_errors=0.5
    )[0]
    assert as_good_as_best([best + just - 1e-3, best]).tolist() == [True, True]
    assert as_good_as_best([best + just + 1e-3, best]).tolist() == [False, True]


def test_order_is_of_simplicity_and_the_better_of_equals_is_taken():
    """Ranks may come in any order, and candidates of one rank are told apart by their errors."""
    noise = np.random.default_rng(0).normal(size=40)
    errors = [noise * 0, 0.01 * noise + 0.001, 0.01 * noise + 0.0005, noise * 0 + 1]
    assert simplest_within(errors) == 0
    assert simplest_within(errors, [3, 2, 1, 0]) == 2
    assert simplest_within(errors, [3, 1, 1, 0]) == 2
    assert simplest_within(errors, [1, 1, 1, 1]) in (0, 2)


def test_folds_that_share_training_data_know_less():
    """The error is larger by √(1 + K / (K − 1)): by half of five folds."""
    gaps = np.array([0.1, 0.2, 0.3, 0.0, 0.4])
    base, first = np.zeros(5), stats.t(4).ppf(stats.norm.cdf(1)) * gaps.std(ddof=1) / 5**0.5
    lead = gaps - gaps.mean() + 1.4 * first
    assert not as_good_as_best([base + lead, base])[0]
    assert as_good_as_best([base + lead, base], n_folds=5)[0]
    assert not as_good_as_best([base + lead + 0.2 * first, base], n_folds=5)[0]


def test_weights_and_clusters():
    """A unit of weight 0 is as one left out; units of one label are one."""
    rng = np.random.default_rng(1)
    errors = rng.normal(size=(6, 30)) + np.linspace(0.5, 0, 6)[:, None]
    weights = rng.random(30) * (rng.random(30) < 0.7)
    there = weights > 0
    np.testing.assert_array_equal(
        as_good_as_best(errors, weights=weights),
        as_good_as_best(errors[:, there], weights=7 * weights[there]),
    )
    twice = np.repeat(errors, 2, axis=1)
    labels = np.repeat([f"patient {i}" for i in range(30)], 2)
    np.testing.assert_array_equal(as_good_as_best(twice, clusters=labels), as_good_as_best(errors))
    lead = np.array([0.3, -0.1, 0.2, -0.05, 0.1, 0.05]) - 1 / 30
    many = np.repeat(lead, 4)
    assert not as_good_as_best([many, 0 * many])[0]
    assert as_good_as_best([many, 0 * many], clusters=np.repeat(np.arange(6), 4))[0]


def test_errors_that_are_not_finite_and_single_units():
    """What failed on a fold is not taken; of one unit nothing is known."""
    errors = np.array([[1.0, np.nan, 1.0], [1.0, 1.1, 1.2], [np.inf, 0.0, 0.0]])
    assert simplest_within(errors) == 1
    assert as_good_as_best(errors).tolist() == [False, True, False]
    assert simplest_within(errors, weights=[1, 0, 1]) == 0
    assert simplest_within(np.full((2, 3), np.nan)) == 0
    assert simplest_within([[0.5], [0.1]]) == 0
    assert simplest_within([[0.5, 0.5], [0.5, 0.5]]) == 0


def test_the_least_of_many_equal_candidates_is_rarely_taken():
    """Forty candidates are equally good: the least mean is any of them, the choice an early one."""
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(200, 40, 100))
    assert np.argmin(draws.mean(axis=2), axis=1).mean() > 15
    assert np.mean([simplest_within(errors) for errors in draws]) < 5
    better = rng.normal(size=(3, 100)) + np.array([1.0, 1.0, 0.0])[:, None]
    assert simplest_within(better) == 2


@pytest.mark.parametrize("k", [2, 5, 50])
def test_rank_does_not_change_with_scale(k):
    """Errors in other units, and the same errors with those of a constant, choose alike."""
    rng = np.random.default_rng(k)
    errors = rng.normal(size=(5, k))
    chosen = simplest_within(errors, n_folds=5)
    assert simplest_within(1e-9 * errors, n_folds=5) == chosen
    assert simplest_within(errors + 3.0, n_folds=5) == chosen


def by_loops(errors, weights, clusters):
    """Draw the same clusters, choose by those drawn, and take what the choice errs on the rest."""
    labels = np.unique(clusters)
    best = min(range(len(errors)), key=lambda j: np.average(errors[j], weights=weights))
    rng = np.random.default_rng(0)
    gaps = weight = 0.0
    for drawn in rng.integers(len(labels), size=(500, len(labels))):
        times = weights * [(labels[drawn] == cluster).sum() for cluster in clusters]
        chosen = min(range(len(errors)), key=lambda j: np.average(errors[j], weights=times))
        rest = times == 0
        gaps += ((errors[chosen] - errors[best]) * weights)[rest].sum()
        weight += weights[rest].sum()
    return np.average(errors[best], weights=weights) + max(0.0, gaps / weight)


@pytest.mark.parametrize("n_clusters", [4, 30])
def test_the_error_of_the_best_by_loops(n_clusters):
    rng = np.random.default_rng(2)
    errors, weights = 1 + rng.normal(size=(5, 30)), rng.uniform(0.5, 2, 30)
    clusters = rng.permutation(np.arange(30) % n_clusters)
    expected = by_loops(errors, weights, clusters)
    assert error_of_best(errors, weights=weights, clusters=clusters) == pytest.approx(expected)
    assert expected > np.average(errors, axis=1, weights=weights).min() + 0.01


def test_the_best_of_thirty_that_are_alike_has_the_error_of_all():
    """The least of their means is a fifth too small; without doubt about the best it is right."""
    rng = np.random.default_rng(3)
    draws = [1 + rng.normal(size=(30, 100)) for _ in range(50)]
    corrected = np.array([error_of_best(errors) for errors in draws])
    assert np.mean([errors.mean(axis=1).min() for errors in draws]) < 0.85
    assert abs(corrected.mean() - 1) < 3 * corrected.std(ddof=1) / 50**0.5 < 0.05
    clear = draws[0] + 10.0 * np.arange(30)[:, None]
    alone = draws[0].mean(axis=1).min()
    assert error_of_best(clear) == pytest.approx(clear[0].mean(), rel=1e-12)
    assert error_of_best(clear[:1]) == pytest.approx(clear[0].mean(), rel=1e-12)
    assert error_of_best(draws[0], clusters=np.zeros(100)) == pytest.approx(alone, rel=1e-12)
    broken = np.where(np.arange(30)[:, None] == 7, np.nan, draws[0])
    assert error_of_best(broken) == error_of_best(np.delete(draws[0], 7, axis=0))
    assert error_of_best(np.full((2, 4), np.inf)) == np.inf
