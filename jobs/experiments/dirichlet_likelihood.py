"""Maximum likelihood estimates of many Dirichlet distributions at once, by Newton's method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

MOST_STEPS, MOST_HALVINGS = 100, 40
TOLERANCE = 1e-8  # of a parameter, relative

Floats = NDArray[np.float64]


def fit_dirichlets(proportions: Floats, offsets: NDArray[np.int64]) -> Floats:
    """The alpha of largest likelihood of each bag, shape (n_bags, d).

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
    for _ in range(MOST_STEPS):
        before = alpha[moving]
        after = _step(before, mean_logs[moving])
        alpha[moving] = after
        moving = moving[(np.abs(after - before) > TOLERANCE * before).any(axis=1)]
        if not len(moving):
            break
    return alpha


def log_likelihood(alpha: Floats, mean_logs: Floats) -> Floats:
    """A point of each bag, shape (n_bags,), from the means of its log proportions."""
    total = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    return np.asarray(total + ((alpha - 1) * mean_logs).sum(axis=1))


def _by_moments(means: Floats, variances: Floats) -> Floats:
    """Means times a precision, the geometric mean of those of the categories."""
    precisions = np.maximum(means * (1 - means) / variances - 1, 1e-3)
    return means * np.exp(np.log(precisions).mean(axis=1, keepdims=True))


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
    after = alpha - step
    worse = np.arange(len(alpha))
    for _ in range(MOST_HALVINGS):
        positive = (after[worse] > 0).all(axis=1)
        kept = np.zeros(len(worse), dtype=bool)
        inside = worse[positive]
        kept[positive] = log_likelihood(after[inside], mean_logs[inside]) >= least[inside]
        worse = worse[~kept]
        if not len(worse):
            return after
        step[worse] /= 2
        after[worse] = alpha[worse] - step[worse]
    after[worse] = alpha[worse]
    return after
