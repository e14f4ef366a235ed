"""Null distributions in closed form: close for few units, heavy tails and ties, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import DataError
from bagbasis.hypotheses import independence_test, two_sample_test
from bagbasis.hypotheses.dependence.nfsic import NFSIC_RIDGE, LocationSums, nfsic_of_orders

N_TESTS = 200
ERROR = (0.05 * 0.95 / N_TESTS) ** 0.5  # of a rate of 5 %


def cauchy(rng, n):
    return rng.standard_cauchy(n)


def rare(rng, n):
    """Four ones, the others zeros."""
    return (rng.permutation(n) < 4).astype(float)


@pytest.mark.parametrize(
    ("statistic", "few", "refused"),
    [("me", 12, True), ("me", 20, False), ("scf", 20, True), ("scf", 30, False)],
)
def test_few_units_beside_many(statistic, few, refused):
    """Refused where the mean of the few is not a normal number; permutations hold anywhere."""
    rng = np.random.default_rng(0)
    samples = cauchy(rng, few), cauchy(rng, 150)
    assert two_sample_test(*samples, statistic=statistic, n_permutations=19).null == "permutation"
    if refused:
        with pytest.raises(DataError, match=f"have {few} and 150 units.* take null='permutation'"):
            two_sample_test(*samples, statistic=statistic, null="chi_square")
    else:
        assert 0 < two_sample_test(*samples, statistic=statistic, null="chi_square").p_value <= 1


def test_few_bags_beside_many():
    rng = np.random.default_rng(1)
    samples = [[rng.normal(size=(9, 1)) for _ in range(n)] for n in (12, 60)]
    with pytest.raises(DataError, match=r"take null='permutation'"):
        two_sample_test(*samples, statistic="me", null="chi_square")


@pytest.mark.parametrize(
    ("statistic", "null", "draw"), [("dcov", "spectral", cauchy), ("nfsic", "chi_square", rare)]
)
def test_pairs_that_a_law_is_not_of(statistic, null, draw):
    """A few of Cauchy's numbers have nearly all distances; of rare ones too few are alike."""
    rng = np.random.default_rng(0)
    x, y = draw(rng, 100), draw(rng, 100)
    with pytest.raises(DataError, match=r"take null='permutation'"):
        independence_test(x, y, statistic=statistic, null=null)
    arguments = {"statistic": statistic, "null": "permutation", "n_permutations": 19}
    assert independence_test(x, y, **arguments).p_value >= 0.05
    normal = rng.normal(size=(2, 100))
    assert 0 < independence_test(*normal, statistic=statistic, null=null).p_value <= 1


@pytest.mark.long
def test_rates_of_few_pairs():
    """`mmd_linear` of 12 units against 60 has six estimates, whose null is Student's t: near
    α, where a normal distribution rejects at 10 %."""

    def p_value(seed):
        rng = np.random.default_rng([4, seed])
        samples = [rng.normal(size=(n, 2)) for n in (12, 60)]
        return two_sample_test(*samples, statistic="mmd_linear", seed=seed).p_value

    rate = np.mean([p_value(seed) <= 0.05 for seed in range(2 * N_TESTS)])
    assert abs(rate - 0.05) < 2.5 * ERROR / 2**0.5


@pytest.mark.long
@pytest.mark.parametrize("statistic", ["me", "nfsic"])
def test_rates_of_heavy_tails(statistic):
    """Neither far above α, nor next to never: five standard errors of 200 tests."""

    def p_value(seed):
        rng = np.random.default_rng([3, seed])
        if statistic == "me":
            x, y = cauchy(rng, 20), cauchy(rng, 150)
            result = two_sample_test(x, y, statistic="me", null="chi_square", seed=seed)
        else:
            x, y = cauchy(rng, 100), cauchy(rng, 100)
            result = independence_test(x, y, statistic="nfsic", null="chi_square", seed=seed)
        return result.p_value

    rate = np.mean([p_value(seed) <= 0.05 for seed in range(N_TESTS)])
    assert 0.01 <= rate < 0.05 + 5 * ERROR


@pytest.mark.long
@pytest.mark.parametrize("draw", [cauchy, lambda rng, n: rng.poisson(0.5, n).astype(float)])
def test_law_of_nfsic_by_orders(draw):
    """Its mean is that of λ̂ over orders, with Σ̂ as it is, or larger."""
    rng = np.random.default_rng(2)
    K, L = (np.exp(-((draw(rng, 100)[:, None] - np.arange(3)) ** 2)) for _ in range(2))
    sums = LocationSums.of(K, L)
    inverse = np.linalg.inv(sums.covariances()[1] + NFSIC_RIDGE * np.eye(3))
    moved = [LocationSums.of(K, L[rng.permutation(100)]).covariances()[0] for _ in range(4000)]
    of_orders = np.mean([100 * u @ inverse @ u for u in moved])
    null = sums.null()
    assert null.name == "chi_square"
    assert null.values.mean() > 0.95 * of_orders
    assert null.values.mean() < 1.1 * max(of_orders, 3.3)
    orders = np.array([rng.permutation(100) for _ in range(400)])
    of_law = np.quantile(null.values, 0.95)
    assert (nfsic_of_orders(K, L, iter([orders])) > of_law).mean() < 0.08


@pytest.mark.long
def test_nfsic_of_counts():
    """With 300 counts of few values, Σ̂ alone has p ≤ .05 in a seventh of the tests."""
    values = []
    for seed in range(100):
        x, y = np.random.default_rng([3, seed]).poisson(0.3, (2, 300)).astype(float)
        arguments = {"statistic": "nfsic", "null": "chi_square", "seed": seed}
        values.append(independence_test(x, y, **arguments).p_value)
    assert (np.array(values) <= 0.05).mean() <= 0.05
