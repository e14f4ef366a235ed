"""What 2BE and the Kernel-Kernel estimator are compared by."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, Box, KernelSmoother
from bagbasis.densities import kde_at
from bagbasis.jobs.experiments.kit import kernel_kernel
from bagbasis.jobs.experiments.kit.kernel_kernel import (
    QUERIES_PER_CALL,
    Candidates,
    KernelDensityEmbedding,
    LeanSmoother,
    fit_double_basis,
    fit_kernel_kernel,
    measure_times,
    smooth,
)
from bagbasis.jobs.experiments.kit.learning import mean_squares

CANDIDATES = Candidates(
    n_per_dim=[1, 6],
    multipliers=[1.0, 1000.0],
    alphas_a_bag=[-7.0, 0.0],
    bandwidths=[0.1, 1.0],
    n_features=64,
    n_choose=200,
    choose_features=32,
)
MIDPOINTS = (np.arange(60) + 0.5) / 60


@pytest.fixture(scope="module")
def labelled():
    """Bags in the unit interval, and the spread of the densities that they come from."""
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.02, 0.3, 700)
    points = [np.clip(rng.normal(0.5, s, (40, 1)), 0, 1) for s in spread]
    return Bags.from_list(points), np.log(spread)


@pytest.mark.parametrize("bandwidth", [1e-3, 0.3, 5.0])
def test_lean_smoother_predicts_the_same(labelled, bandwidth, monkeypatch):
    """One bag per call and batches agree with `KernelSmoother`, even where weights underflow; rows
    are read in parts."""
    monkeypatch.setattr(kernel_kernel, "ROWS_PER_READ", 150)
    bags, y = labelled
    training = bags[:400], np.column_stack([y, y**2])[:400]
    smoother = KernelSmoother(KernelDensityEmbedding(0.1), bandwidth=bandwidth).fit(*training)
    expected = smoother.predict(bags[400:])
    assert np.ptp(expected[:, 0]) > (0.1 if bandwidth < 1 else 1e-3)
    assert len(expected) > QUERIES_PER_CALL
    np.testing.assert_allclose(smooth(smoother, bags[400:]), expected, rtol=1e-3)
    lean = LeanSmoother(smoother, training)
    for i in (0, 7):
        one = lean.predict(bags[400 + i : 401 + i])
        np.testing.assert_allclose(one, expected[i], rtol=1e-3)


@pytest.mark.long
def test_choices(labelled):
    """Each takes the candidate that can learn: one function, a kernel that is flat, and density
    estimates that are as wide as the box cannot."""
    bags, y = labelled
    train, few, test = (bags[:500], y[:500]), (bags[:200], y[:200]), (bags[500:], y[500:])
    double = fit_double_basis(train, few, CANDIDATES, 0)
    assert (double.choice["n_per_dim"], double.choice["multiplier"]) == (6, 1.0)
    assert double.model.coef_.shape == (64,)
    kernel = fit_kernel_kernel(train, few, CANDIDATES)
    assert kernel.choice["density_bandwidth"] == 0.1
    for predicted in (double.model.predict(test[0]), smooth(kernel.model, test[0])):
        assert mean_squares(predicted, test[1])["mse"] < 0.2 * test[1].var()
    found = measure_times(double.model, kernel.model, train, test[0], 50)
    assert found.pop("n_queries") == 50
    assert set(found) == {f"{m}_{way}" for m in ("2be", "kk") for way in ("batch", "single")}
    assert all(seconds > 0 for seconds in found.values())


@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize("bandwidth", [0.05, 0.2])
def test_distance_is_that_of_kernel_density_estimates(n_dims, bandwidth):
    """Euclidean distances of embeddings are L2 distances of the exact estimates, to the functions
    that are left out."""
    rng = np.random.default_rng(0)
    bags = Bags.from_list([rng.beta(a, 2, size=(30, n_dims)) for a in (0.5, 1.0, 3.0, 6.0)])
    spec = KernelDensityEmbedding(bandwidth).resolve(n_dims, Box.unit(n_dims), None)
    rows = np.empty((len(bags), spec.n_features))
    assert spec.embed(bags, rows) == 0
    found = np.linalg.norm(rows[:, None] - rows, axis=2)
    at = np.stack(np.meshgrid(*[MIDPOINTS] * n_dims, indexing="ij"), axis=-1).reshape(-1, n_dims)
    values = kde_at(bags, at, bandwidth)
    squares = ((values[:, None] - values) ** 2).mean(axis=2)
    np.testing.assert_allclose(found, np.sqrt(squares), rtol=0.01)
