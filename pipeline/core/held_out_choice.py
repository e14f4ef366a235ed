"""The rule for all choices by held-out error: the simplest candidate within one standard error.

The smallest of many noisy errors is often the smallest by chance. So a candidate counts as good as
the best one if it is worse by at most one standard error of the *paired* difference. Among these
candidates the simplest, or smoothest, is chosen (Breiman et al. 1984).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from .arrays import Floats

N_RESAMPLES = 500  # of units, for the error of the best candidate


def simplest_within(
    errors: ArrayLike,
    order: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    n_folds: int | None = None,
    n_errors: float = 1.0,
) -> int:
    """Return the index of the simplest candidate that is within one standard error of the best.

    Parameters
    ----------
    errors : shape (n_candidates, n_units)
        See `as_good_as_best`.
    order : shape (n_candidates,), optional
        Rank of each candidate by simplicity, the smallest is the simplest; among equal ranks the
        smaller mean error decides. Default: candidates are listed from the simplest on.
    weights, clusters, n_folds, n_errors
        See `as_good_as_best`.

    Examples
    --------
    >>> from bagbasis.core.held_out_choice import simplest_within
    >>> simplest_within([[0.5, 0.1, 0.4, 0.3], [0.4, 0.2, 0.3, 0.3]])
    0
    """
    errors = np.asarray(errors, np.float64)
    rank = np.arange(len(errors)) if order is None else np.asarray(order)
    within = as_good_as_best(
        errors, weights=weights, clusters=clusters, n_folds=n_folds, n_errors=n_errors
    )
    allowed = np.flatnonzero(within)
    means = _means(errors, _shares(errors.shape[1], weights))[allowed]
    return int(allowed[np.lexsort((means, rank[allowed]))[0]])


def as_good_as_best(
    errors: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    n_folds: int | None = None,
    n_errors: float = 1.0,
) -> NDArray[np.bool_]:
    """Return which candidates are within one standard error of the best, shape (n_candidates,).

    If several candidates are, more folds may separate them.

    Parameters
    ----------
    errors : shape (n_candidates, n_units)
        Held-out errors of all candidates on the same folds, bags or points. Errors of repeated
        folds are averaged for each unit first. A candidate with an error that is not finite counts
        only if all candidates have such an error.
    weights : shape (n_units,), optional
        Weights of the units in the mean errors, at least 0. Default: equal weights.
    clusters : shape (n_units,), optional
        Label of each unit; units with the same label depend on each other. Default: all units are
        independent.
    n_folds : int ≥ 2, optional
        Number of folds, if each unit's error is that of a model which was fitted to the other
        folds. Any two of these models share most of their training data, so that their errors vary
        together, and the standard error is larger by (1 + n_folds / (n_folds − 1))^½ (Nadeau and
        Bengio 2003). Default: the same models were judged on all units.
    n_errors : float > 0, default 1
        Number of standard errors by which a candidate may be worse than the best.

    Notes
    -----
    "One standard error" is the quantile of Student's distribution that has the probability of one
    standard error of a normal distribution: with five folds 1.14 estimated standard errors. A
    single unit has no standard error, so that all candidates are within it.

    Examples
    --------
    >>> from bagbasis.core.held_out_choice import as_good_as_best
    >>> as_good_as_best([[0.5, 0.1, 0.4, 0.3], [0.4, 0.2, 0.3, 0.3], [0.9, 0.8, 0.7, 0.9]])
    array([ True,  True, False])
    """
    errors = np.asarray(errors, np.float64)
    shares = _shares(errors.shape[1], weights)
    means = _means(errors, shares)
    finite = np.isfinite(means)
    if not finite.any():
        return np.ones(len(errors), dtype=np.bool_)
    best = int(np.argmin(means))
    gaps = np.subtract(
        errors, errors[best], out=np.zeros_like(errors), where=finite[:, None] & (shares > 0)
    )
    counted = shares > 0
    groups = None if clusters is None else np.asarray(clusters)[counted]
    gap, spread, n = mean_and_error(gaps[:, counted], shares[counted], groups)
    if n < 2:
        return finite
    if n_folds is not None:
        spread *= (1 + n_folds / (n_folds - 1)) ** 0.5
    within: NDArray[np.bool_] = finite & (gap <= stdtrit(n - 1, ndtr(n_errors)) * spread)
    return within


def error_of_best(
    errors: ArrayLike, *, weights: ArrayLike | None = None, clusters: ArrayLike | None = None
) -> float:
    """Return the mean error of the best candidate, corrected for being the least of several.

    Units are drawn with replacement, `N_RESAMPLES` times. Each draw takes the candidate that is
    best on its units, and the errors of this candidate on the units that were not drawn are not the
    least of several. Their mean is the result (bootstrap bias corrected cross-validation,
    Tsamardinos et al. 2018), but computed as a difference to the best candidate on the same units,
    so that the result is the mean error of a candidate which is best in all draws.

    Parameters
    ----------
    errors : shape (n_candidates, n_units)
        See `as_good_as_best`.
    weights, clusters
        See `as_good_as_best`. Clusters are drawn as wholes.

    Returns
    -------
    float
        At least the mean error of the best candidate; this error itself for a single cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.core.held_out_choice import error_of_best
    >>> errors = np.random.default_rng(0).normal(1, 1, (30, 100))  # of candidates that are alike
    >>> f'{errors.mean(axis=1).min():.2f} {error_of_best(errors):.2f}'
    '0.74 0.97'
    """
    errors = np.asarray(errors, np.float64)
    shares = _shares(errors.shape[1], weights)
    means = _means(errors, shares)
    finite = np.isfinite(means)
    if not finite.any():
        return float(means.min())
    errors, means = errors[finite], means[finite]
    counted = shares > 0
    places = np.arange(counted.sum())
    if clusters is not None:
        places = np.unique(np.asarray(clusters)[counted], return_inverse=True)[1]
    n = int(places.max()) + 1
    sizes = np.bincount(places, shares[counted])
    sums = np.stack([np.bincount(places, shares[counted] * row[counted]) for row in errors])
    each = np.random.default_rng(0).integers(n, size=(N_RESAMPLES, n))
    each += n * np.arange(N_RESAMPLES)[:, None]
    drawn = np.bincount(each.ravel(), minlength=n * N_RESAMPLES).reshape(N_RESAMPLES, n)
    chosen = (sums @ drawn.T / (drawn @ sizes)).argmin(axis=0)
    left_out = drawn == 0
    gaps = (sums[chosen] - sums[means.argmin()])[left_out].sum()
    weight = (left_out @ sizes).sum()
    return float(means.min() + (max(0.0, gaps / weight) if weight else 0.0))


def mean_and_error(
    values: Floats, weights: Floats, groups: NDArray[Any] | None = None
) -> tuple[Floats, Floats, int]:
    """Return weighted means of rows, their standard errors, and the number of independent units.

    Parameters
    ----------
    values : float64, shape (n_rows, n_units)
    weights : float64, shape (n_units,)
    groups : shape (n_units,), optional
        Group of each unit. Units of a group depend on each other; groups are independent.
    """
    means = np.average(values, axis=1, weights=weights)
    rest = weights * (values - means[:, None])
    if groups is not None:
        places = np.unique(groups, return_inverse=True)[1]
        rest = np.stack([np.bincount(places, row) for row in rest])
    n = rest.shape[1]
    errors = np.sqrt((rest**2).sum(axis=1) * n / max(1, n - 1)) / weights.sum()
    return means, errors, n


def _shares(n_units: int, weights: ArrayLike | None) -> Floats:
    """Return the fraction of each unit in the means."""
    values: Floats = np.ones(n_units) if weights is None else np.asarray(weights, np.float64)
    return values / float(values.sum())


def _means(errors: Floats, shares: Floats) -> Floats:
    """Return the mean error of each candidate; infinity where an error is not finite."""
    counted = errors[:, shares > 0]
    finite = np.isfinite(counted).all(axis=1)
    means = np.full(len(errors), np.inf)
    means[finite] = counted[finite] @ shares[shares > 0]
    return means
