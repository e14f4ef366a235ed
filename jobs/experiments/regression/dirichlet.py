"""`DirichletParameters`: the parameters of a Dirichlet distribution, by 2BE and by likelihood.

004, §3.5.3 and Figure 3.20.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from bagbasis.data.bags.bags import offsets_of
from bagbasis.datasets import Dirichlet
from bagbasis.datasets.dirichlet import ALPHA_RANGE

from ....core.arrays import Floats
from ...terminal import Callback
from ..kit.experiment import Params
from ..kit.kernel_kernel import N_ROUNDS
from ..kit.learning import mean_squares
from ..kit.over_sizes import OverSizes
from ..kit.plots import Curves
from ..kit.timing import least_in_turn

N_CATEGORIES = 3  # the paper does not say how many
_MAX_STEPS, _MAX_HALVINGS = 100, 40  # of Newton's method, and of one step
_TOLERANCE = 1e-8  # of a parameter, relative


class DirichletParameters(OverSizes):
    """The paper does not say how many categories: here three."""

    name = "dirichlet"
    title = "Dirichlet parameters of small samples"
    source = "004, §3.5.3"
    pictures = (Curves(file="parameters.png", x="n_points", y="methods.*.mse", log="xy"),)
    classical = "MLE"

    def dataset(self, n_points: int, seed: int) -> Dirichlet:
        return Dirichlet(n_points=n_points, seed=seed, n_categories=N_CATEGORIES)

    def classical_params(self) -> dict[str, Any]:
        return {"n_categories": N_CATEGORIES, "n_rounds": N_ROUNDS}

    def measure_classical(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Newton's method for all bags at once, and clipped to the range that alpha comes from."""
        n, n_bags = p["n_points"], p["n_classical"]
        dataset = self.dataset(n, 2 * self.seed + 1)
        blocks = [dataset.proportions(i) for i in range(-(-n_bags // dataset.block_bags))]
        proportions = np.concatenate([points for points, _, _ in blocks])[: n_bags * n]
        alpha = np.concatenate([targets for _, _, targets in blocks])[:n_bags]
        estimates = fit_dirichlets(proportions, offsets_of(np.full(n_bags, n)))
        n_batch = min(self.settings.n_queries, n_bags)
        single, batch = (offsets_of(np.full(count, n)) for count in (1, n_batch))
        calls = {
            "batch": lambda: fit_dirichlets(proportions[: batch[-1]], batch),
            "single": lambda: fit_dirichlets(proportions[:n], single),
        }
        seconds = least_in_turn(calls, N_ROUNDS)
        seconds["batch"] /= n_batch
        progress(n_bags, n_bags)
        return {
            "methods": {
                "MLE": {**mean_squares(estimates, alpha), "seconds": seconds},
                "MLE, clipped": mean_squares(np.clip(estimates, *ALPHA_RANGE), alpha),
            }
        }


def fit_dirichlets(proportions: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return the alpha of largest likelihood of each bag, shape (n_bags, d).

    Minka, Estimating a Dirichlet distribution (2000), as the peer of 004, §3.5.3: the Hessian is
    a diagonal and a matrix of rank one, so that a step takes O(d). The likelihood is concave; a
    step that leaves the positive alphas or lowers it is halved, and one that stays so, as where
    alpha is too large for the digits of the Hessian, ends it. Begins at the moments' estimate.

    Parameters
    ----------
    proportions : float64, shape (n_points, d)
        Positive, with sum 1 in each row.
    offsets : int64, shape (n_bags + 1,)
        Bag i has rows ``offsets[i]:offsets[i + 1]``, at least two of them.
    """
    n = np.diff(offsets)[:, None]
    mean_logs = np.add.reduceat(np.log(proportions), offsets[:-1]) / n
    means = np.add.reduceat(proportions, offsets[:-1]) / n
    variances = np.add.reduceat(proportions**2, offsets[:-1]) / n - means**2
    alpha = _by_moments(means, np.maximum(variances, np.finfo(np.float64).tiny))
    moving = np.arange(len(alpha))
    for _ in range(_MAX_STEPS):
        before = alpha[moving]
        after = _step(before, mean_logs[moving])
        alpha[moving] = after
        moving = moving[(np.abs(after - before) > _TOLERANCE * before).any(axis=1)]
        if not len(moving):
            break
    return alpha


def log_likelihood(alpha: Floats, mean_logs: Floats) -> Floats:
    """Return log likelihoods per point, shape (n_bags,), from the means of log proportions."""
    total = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    return np.asarray(total + ((alpha - 1) * mean_logs).sum(axis=1))


def _by_moments(means: Floats, variances: Floats) -> Floats:
    """Estimate alpha: means times the geometric mean of the categories' precisions."""
    precisions = np.maximum(means * (1 - means) / variances - 1, 1e-3)
    alpha: Floats = means * np.exp(np.log(precisions).mean(axis=1, keepdims=True))
    return alpha


def _step(alpha: Floats, mean_logs: Floats) -> Floats:
    total = alpha.sum(axis=1, keepdims=True)
    gradient = digamma(total) - digamma(alpha) + mean_logs
    diagonal, shared = -polygamma(1, alpha), polygamma(1, total)
    with np.errstate(divide="ignore", invalid="ignore"):  # of a step that is not finite, see below
        common = (gradient / diagonal).sum(axis=1, keepdims=True)
        common /= 1 / shared + (1 / diagonal).sum(axis=1, keepdims=True)
        step = (gradient - common) / diagonal
    least = log_likelihood(alpha, mean_logs)
    least -= 1e-12 * np.abs(least)
    after: Floats = alpha - step
    worse = np.arange(len(alpha))
    for _ in range(_MAX_HALVINGS):
        positive = (after[worse] > 0).all(axis=1)
        accepted = np.zeros(len(worse), dtype=bool)
        inside = worse[positive]
        accepted[positive] = log_likelihood(after[inside], mean_logs[inside]) >= least[inside]
        worse = worse[~accepted]
        if not len(worse):
            return after
        step[worse] /= 2
        after[worse] = alpha[worse] - step[worse]
    after[worse] = alpha[worse]
    return after
