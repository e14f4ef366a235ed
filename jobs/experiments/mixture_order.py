"""How many components has a mixture, by EM and an information criterion: the classical way."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

CRITERIA = ("aic", "bic")


def orders_by_criteria(points: ArrayLike, most: int, seed: int) -> dict[str, int]:
    """The number of components, 1 … most, of least AIC and of least BIC.

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
