"""The number of components of a mixture, by EM and AIC, BIC or cross-validation."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

CRITERIA = ("aic", "bic")


def orders_by_criteria(points: ArrayLike, most: int, seed: int) -> dict[str, int]:
    """Return the number of components, 1 … most, of least AIC and of least BIC.

    Parameters
    ----------
    points : array_like, shape (n, d)
        More than ``most`` of them.

    Returns
    -------
    dict
        "aic" and "bic".
    """
    x = np.asarray(points, dtype=np.float64)
    scores = np.empty((most, len(CRITERIA)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the likelihood hardly moves any more
        for k in range(1, most + 1):
            mixture = GaussianMixture(k, random_state=seed).fit(x)
            scores[k - 1] = mixture.aic(x), mixture.bic(x)
    best = (scores.argmin(axis=0) + 1).tolist()
    return dict(zip(CRITERIA, best, strict=True))


def order_by_cross_validation(points: ArrayLike, most: int, n_folds: int, seed: int) -> int:
    """Return the number of components, 1 … most, of largest likelihood of the points left out.

    Parameters
    ----------
    points : array_like, shape (n, d)
        At least ``n_folds``. Orders above the points that a fold leaves are not tried.
    """
    x = np.asarray(points, dtype=np.float64)
    folds = list(KFold(n_folds, shuffle=True, random_state=seed).split(x))
    most = min(most, *(len(train) for train, _ in folds))
    scores = np.zeros(most)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the likelihood hardly moves any more
        for k in range(1, most + 1):
            for train, left_out in folds:
                mixture = GaussianMixture(k, random_state=seed).fit(x[train])
                scores[k - 1] += mixture.score_samples(x[left_out]).sum()
    return int(scores.argmax()) + 1
