"""004, §3.5.3 at small scale: 2BE against maximum likelihood and Kernel-Kernel."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize

from bagbasis.jobs.experiments.kit.over_sizes import at_sizes
from bagbasis.jobs.experiments.regression.dirichlet import fit_dirichlets, log_likelihood
from tests.jobs.experiments.contract import Contract, make, result


class TestDirichletParameters(Contract):
    name = "dirichlet"
    sizes: ClassVar = {
        "n_train": 1000,
        "n_test": 300,
        "n_classical": 300,
        "candidates": {"n_choose": 500, "n_features": 256},
    }

    def test_lowest_error_at_every_n(self, results):
        """The 2BE beats Kernel-Kernel and maximum likelihood, clearest with few points. Over seeds
        0 to 3 it has 0.80 to 0.88 of KK's error at 10 points per bag and 0.66 to 0.72 at 50, 0.11
        to 0.15 and 0.59 to 0.65 of that of maximum likelihood, and at 10 points half of it
        clipped."""
        small, large = at_sizes(results)
        for size in (small, large):
            assert size.mse("2BE") < 0.95 * size.mse("KK")
            assert size.mse("KK") < 0.4 * size.mse("constant")
            assert size.first == size.methods["2BE"]
        assert small.mse("2BE") < 0.3 * small.mse("MLE")
        assert small.mse("2BE") < 0.7 * small.mse("MLE, clipped")
        assert large.mse("2BE") < 0.8 * large.mse("MLE")
        assert large.mse("2BE") < 0.5 * small.mse("2BE")
        assert large.mse("MLE, clipped") <= large.mse("MLE") < 0.25 * small.mse("MLE")

    def test_tables(self, report):
        """All bags for all methods; the clipped likelihood has an error and no time of its own."""
        errors, batches, single = report["tables"]
        methods = ["2BE", "±", "KK", "MLE", "MLE, clipped", "constant", "lowest"]
        assert errors["columns"] == ["points per bag", *methods]
        for table in (batches, single):
            assert table["columns"] == ["points per bag", "2BE", "KK", "MLE", "fastest"]
            assert all(min(row[1:-1]) > 0 for row in table["rows"])


@pytest.mark.parametrize(
    ("seconds", "fastest"),
    [
        ((1e-5, 1e-5), "it is the fastest at every n, in both ways."),
        ((1e-5, 1.0), "at n = 10 (batches), at n = 10 (one bag per call)."),
    ],
)
def test_remarks_of_known_errors_and_times(seconds, fastest):
    """Who is lowest, who is level and where likelihood is fastest come from the numbers."""

    def results(n_points, clipped, took):
        mse = {"2BE": 0.5, "KK": 0.6, "constant": 0.1}
        learned = {"methods": {k: {"mse": v, "se": 0.02} for k, v in mse.items()}, "choices": {}}
        ways = [f"{m}_{way}" for m in ("2be", "kk") for way in ("batch", "single")]
        learned |= {"2be_first": {}, "seconds": dict.fromkeys(ways, 1e-3)}
        mle = {"mse": 0.9, "se": 0.02, "seconds": {"batch": took, "single": took}}
        classical = {"methods": {"MLE": mle, "MLE, clipped": {"mse": clipped, "se": 0.02}}}
        return [
            result(learned, measure="learned", n_points=n_points),
            result(classical, measure="classical", n_points=n_points),
        ]

    sizes = at_sizes([*results(10, 0.53, seconds[0]), *results(50, 0.3, seconds[1])])
    errors, _, speed = make("dirichlet").remarks(sizes)
    assert (
        "Lowest of all: 2BE at n = 10; MLE, clipped at n = 50; within two of its standard errors "
        "of the 2BE: MLE, clipped at n = 10." in errors
    )
    assert fastest in speed


@pytest.mark.parametrize("d", [2, 3, 5])
def test_largest_likelihood(d):
    """No other alpha is likelier: a general minimiser finds the same, for small and ragged bags,
    at the ends of the range of 004 too."""
    rng = np.random.default_rng(d)
    alpha = rng.uniform(0.3, 10, (6, d))
    alpha[0], alpha[1] = 0.3, 10
    sizes = [4, 5, 10, 50, 300, 20]
    points = [rng.dirichlet(a, n) for a, n in zip(alpha, sizes, strict=True)]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    found = fit_dirichlets(np.concatenate(points), offsets)
    for i, (a, b) in enumerate(pairwise(offsets)):
        logs = np.log(np.concatenate(points)[a:b]).mean(axis=0)[None]
        best = minimize(
            lambda x, logs=logs: -log_likelihood(np.exp(x)[None], logs)[0], np.zeros(d), tol=1e-12
        )
        np.testing.assert_allclose(found[i], np.exp(best.x), rtol=2e-3)
        assert log_likelihood(found[i : i + 1], logs)[0] >= -best.fun - 1e-9


def test_likelihood_of_many_points_and_of_points_that_hardly_differ():
    """With many points the estimate is near the truth; of two nearly equal ones parameters grow
    large, and stay finite and positive."""
    rng, alpha = np.random.default_rng(0), np.array([[0.1, 5.0, 10.0], [2.0, 0.5, 1.0]])
    points = np.concatenate([rng.dirichlet(a, 40_000) for a in alpha])
    found = fit_dirichlets(points, np.array([0, 40_000, 80_000]))
    np.testing.assert_allclose(found, alpha, rtol=0.05)
    near = np.array([[0.2, 0.3, 0.5], [0.2 + 1e-6, 0.3, 0.5 - 1e-6]])
    found = fit_dirichlets(near, np.array([0, 2]))
    assert np.isfinite(found).all()
    assert found.min() > 1e4
