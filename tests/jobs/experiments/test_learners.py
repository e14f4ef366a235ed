"""What 2BE and the Kernel-Kernel estimator are compared by."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, KernelSmoother
from bagbasis.jobs.experiments.kernel_density_embedding import KernelDensityEmbedding
from bagbasis.jobs.experiments.learners import (
    QUERIES_A_CALL,
    Candidates,
    fit_double_basis,
    fit_kernel_kernel,
    mean_squares,
    smoothed,
    smoothed_one,
    times,
)

CANDIDATES = Candidates(
    n_per_dim=(1, 6),
    multipliers=(1.0, 1000.0),
    alphas_a_bag=(-7.0, 0.0),
    bandwidths=(0.1, 1.0),
    n_features=64,
    n_choose=200,
    choose_features=32,
)


@pytest.fixture(scope="module")
def labelled():
    """Bags in the unit interval, and the spread of the densities that they come from."""
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.02, 0.3, 700)
    points = [np.clip(rng.normal(0.5, s, (40, 1)), 0, 1) for s in spread]
    return Bags.from_list(points), np.log(spread)


@pytest.mark.parametrize("bandwidth", [1e-3, 0.3, 5.0])
def test_lean_smoother_predicts_the_same(labelled, bandwidth):
    """One bag a call and batches agree with `KernelSmoother`, even where weights underflow."""
    bags, y = labelled
    smoother = KernelSmoother(KernelDensityEmbedding(0.1), bandwidth=bandwidth)
    smoother.fit(bags[:400], np.column_stack([y, y**2])[:400])
    expected = smoother.predict(bags[400:])
    assert np.ptp(expected[:, 0]) > (0.1 if bandwidth < 1 else 1e-3)
    assert len(expected) > QUERIES_A_CALL
    np.testing.assert_allclose(smoothed(smoother, bags[400:]), expected, rtol=1e-3)
    for i in (0, 7):
        one = smoothed_one(smoother, bags[400 + i : 401 + i])
        np.testing.assert_allclose(one, expected[i], rtol=1e-3)


def test_choices(labelled):
    """Each takes the candidate that can learn: one function, a kernel that is flat, and density
    estimates that are as wide as the box can not."""
    bags, y = labelled
    train, few, test = (bags[:500], y[:500]), (bags[:200], y[:200]), (bags[500:], y[500:])
    double = fit_double_basis(train, few, CANDIDATES, 0)
    assert (double.choice["n_per_dim"], double.choice["multiplier"]) == (6, 1.0)
    assert double.model.coef_.shape == (1, 64)
    kernel = fit_kernel_kernel(train, few, CANDIDATES)
    assert kernel.choice["density_bandwidth"] == 0.1
    assert kernel.model.training_.n_bags == 500
    for predicted in (double.model.predict(test[0]), smoothed(kernel.model, test[0])):
        assert mean_squares(predicted, test[1])["mse"] < 0.2 * test[1].var()
    found = times(double.model, kernel.model, test[0], 50)
    assert found.pop("n_queries") == 50
    assert set(found) == {f"{m}_{way}" for m in ("2be", "kk") for way in ("batch", "single")}
    assert all(seconds > 0 for seconds in found.values())


def test_mean_squares():
    """Squares are averaged over targets, then over bags; the error is that of the latter mean."""
    truth = np.zeros((4, 2))
    predicted = np.array([[1, 1], [1, 1], [2, 0], [0, np.sqrt(12)]])
    squares = np.array([1, 1, 2, 6])
    found = mean_squares(predicted, truth)
    assert found == pytest.approx({"mse": 2.5, "se": squares.std() / 2})
    assert mean_squares(np.ones(3), np.zeros(3)) == {"mse": 1, "se": 0}
