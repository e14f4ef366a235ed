"""λ nodes of the homogeneous density distances against exact κ."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from bagbasis.embeddings.hdd_measures import DISTANCES, TOTAL_MASS, lambda_nodes
from tests.oracles.hdd import CHECK_POINTS, CHECK_VALUES, kappa, kappa_of_nodes

LOG_RATIOS = np.linspace(0.02, 11.0, 4001)
# the largest relative error that `hdd_nodes` says of one to eight nodes
CLAIMED = {
    "js": (6.0e-2, 6.3e-3, 1.2e-3, 2.0e-4, 3.4e-5, 5.6e-6, 1.1e-6, 3.3e-7),
    "tv": (9.9e-1, 9.5e-1, 8.4e-1, 6.4e-1, 4.0e-1, 3.0e-1, 2.4e-1, 1.9e-1),
    "chi2": (1.4e-1, 2.2e-2, 5.0e-3, 1.6e-3, 4.1e-4, 9.8e-5, 2.2e-5, 5.0e-6),
}
X, Y = np.array(CHECK_POINTS, dtype=np.float64).T


@pytest.mark.parametrize("distance", DISTANCES)
def test_exact_kappa_at_the_check_points(distance):
    """The oracle itself has the check values, and κ(1, 0) is the mass of the measure."""
    np.testing.assert_allclose(kappa(distance, X, Y), CHECK_VALUES[distance], rtol=4e-5)
    assert kappa(distance, 1.0, 1e-300) == pytest.approx(TOTAL_MASS[distance])


def density_of_measure(distance, rate):
    """dμ/dλ of the table in `hdd_measures`."""
    over_cosh = 2 * np.exp(-np.pi * rate) / (1 + np.exp(-2 * np.pi * rate))
    return {
        "js": over_cosh / (1 + 4 * rate**2),
        "tv": 4 / np.pi / (1 + 4 * rate**2),
        "chi2": 2 * over_cosh,
    }[distance]


@pytest.mark.parametrize("order", [0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize(("distance", "rtol"), [("js", 1e-5), ("chi2", 1e-4), ("tv", 0.3)])
def test_another_order(distance, rtol, order):
    """κ_α of the α-HDDs (000, §4.3.2) is its integral over μ, and the fitted nodes give it."""
    x, y = X[:3], Y[:3]
    cosines = [
        quad(lambda rate: density_of_measure(distance, rate), 0, np.inf, weight="cos", wvar=log)[0]
        for log in np.log(x / y)
    ]
    integral = TOTAL_MASS[distance] * (x**order + y**order)
    integral -= 2 * (x * y) ** (0.5 * order) * cosines
    exact = kappa(distance, x, y, order)
    np.testing.assert_allclose(exact, integral, rtol=1e-7)
    nodes = lambda_nodes(distance, 8)
    np.testing.assert_allclose(kappa_of_nodes(*nodes, x, y, order), exact, rtol=rtol)


def test_orders_of_hellinger_and_l2():
    """The square root's distance is Hellinger's at order 1 and L2 at order 2, up to the mass."""
    np.testing.assert_allclose(kappa("l2", X, Y, 1.0), 2 * kappa("hellinger", X, Y))
    np.testing.assert_allclose(kappa("hellinger", X, Y, 2.0), 0.5 * (X - Y) ** 2)


@pytest.mark.parametrize("distance", CLAIMED)
@pytest.mark.parametrize("n", range(1, 9))
def test_errors_claimed_of_fitted_nodes(distance, n):
    """The error next to each set of nodes is its error on a finer grid of ratios x / y, and the
    weights sum to κ(1, 0)."""
    lambdas, weights = lambda_nodes(distance, n)
    exact = kappa(distance, np.exp(LOG_RATIOS), 1.0)
    error = np.abs(kappa_of_nodes(lambdas, weights, np.exp(LOG_RATIOS), 1.0) / exact - 1).max()
    assert error == pytest.approx(CLAIMED[distance][n - 1], rel=0.06)
    assert len(lambdas) == len(weights) == n
    assert list(lambdas) == sorted(lambdas)
    assert min(weights) > 0
    assert sum(weights) == pytest.approx(TOTAL_MASS[distance], rel=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("distance", ["js", "tv", "chi2"])
@pytest.mark.parametrize(
    ("kind", "n", "rtol"), [("quantile", 20_000, 6e-3), ("random", 50_000, 0.05)]
)
def test_quantile_and_random_nodes_converge(distance, kind, n, rtol):
    """Many mid-quantiles of μ, or many draws from it, give κ: these are the right measures."""
    values = kappa_of_nodes(*lambda_nodes(distance, n, kind), X, Y)
    np.testing.assert_allclose(values, kappa(distance, X, Y), rtol=rtol)


PRINTED = {
    "js": lambda rate: np.exp(-np.pi * rate) * 2 / (1 + np.exp(-2 * np.pi * rate)) / (1 + rate**2),
    "tv": lambda rate: 2 / np.pi / (1 + 4 * rate**2),
    "tv of 000": lambda rate: 2 / np.pi / (1 + rate**2),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_measures_are_told_apart(name):
    """The measures printed in the papers miss κ(2, 1) by far more than ours are allowed to."""

    def integrand(rate):
        return PRINTED[name](rate) * kappa_of_nodes([rate], [1.0], 2.0, 1.0)

    printed = quad(integrand, 0, 400, limit=4000)[0]
    ours = kappa_of_nodes(*lambda_nodes(name[:2], 20_000, "quantile"), 2.0, 1.0)
    exact = kappa(name[:2], 2.0, 1.0)
    assert abs(printed / exact - 1) > 0.2
    assert abs(ours / exact - 1) < 1e-3


def test_hellinger_and_l2_are_one_node():
    """λ = 0 with mass ½ or 1, however many are asked for."""
    assert lambda_nodes("hellinger", 5) == ((0.0,), (0.5,))
    assert lambda_nodes("l2", 5, "random", 1) == ((0.0,), (1.0,))


def test_random_nodes_are_those_of_the_seed():
    """The same seed draws the same nodes, another one others."""
    assert lambda_nodes("js", 5, "random", 3) == lambda_nodes("js", 5, "random", 3)
    assert lambda_nodes("js", 5, "random", 3) != lambda_nodes("js", 5, "random", 4)
