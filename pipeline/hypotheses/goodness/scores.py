"""Score functions ∇ log p of the densities that points are tested against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import softmax

from ...core.arrays import Floats, Integers, as_array
from ...core.errors import DataError, ParameterError, shown
from ...densities.series import Densities

DIFFERENCE_STEP = 1e-6  # fraction of a box's side: differences of a series then have nine digits


@dataclass(frozen=True, eq=False)
class Scored:
    """Points, with the values of a density at them that Stein's identity needs.

    Attributes
    ----------
    points : float64, shape (n, d)
    slopes : float64, shape (n, d)
        t = b s + ∇b with the score s; for a density without edges t = s.
    weights : float64, shape (n,)
        b, which is 0 at the edges of the density; 1 if there are no edges.
    """

    points: Floats
    slopes: Floats
    weights: Floats

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.points)

    def __getitem__(self, rows: slice | Integers) -> Scored:
        """Return some of the points."""
        return Scored(self.points[rows], self.slopes[rows], self.weights[rows])


class ScoreFunction(Protocol):
    """A density's score."""

    def __call__(self, points: Floats) -> Scored:
        """Return the slopes and weights at points (n, d)."""
        ...


@dataclass(frozen=True, eq=False)
class MixtureScore:
    """Score function of a mixture of normal distributions, or of one normal distribution.

    Parameters
    ----------
    means : shape (k, d), or (d,) of a single component
        Mean of each component.
    covariances : shape (k, d, d), (d, d) for all components, or a number (its multiple of I)
        Covariance of each component.
    weights : shape (k,), optional
        Weights of the components, which need not add up to 1. Default: equal weights.

    Raises
    ------
    DataError
        If shapes do not match, or a covariance is not positive definite.

    See Also
    --------
    fit_test : Test goodness of fit.
    SeriesScore : Score of an estimated density.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.hypotheses import MixtureScore
    >>> score = MixtureScore(means=[[-2.0], [2.0]])  # two normal distributions of variance 1
    >>> print(score(np.array([[-2.0], [0.5], [3.0]])).slopes.round(2).ravel())
    [ 0.    1.02 -1.  ]
    """

    means: ArrayLike
    covariances: ArrayLike = 1.0
    weights: ArrayLike | None = field(default=None, kw_only=True)
    _factors: Any = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        """Check the shapes, and expand the arrays to their full shapes."""
        means = np.atleast_2d(as_array("means", self.means, np.float64))
        k, d = means.shape if means.ndim == 2 else (0, 0)
        cov = as_array("covariances", self.covariances, np.float64)
        if not np.isfinite(cov).all():
            raise DataError("covariances hold NaN or infinity")
        if cov.ndim == 0:
            cov = cov * np.eye(d)
        weights = np.ones(k) if self.weights is None else self.weights
        weights = as_array("weights", weights, np.float64)
        if k == 0 or d == 0 or cov.shape[-2:] != (d, d) or cov.shape[:-2] not in ((), (1,), (k,)):
            raise DataError(
                f"means have shape {means.shape} and covariances {cov.shape}; expected (k, d) "
                "and (k, d, d), (d, d) or a number"
            )
        if weights.shape != (k,) or not (weights > 0).all() or not np.isfinite(weights).all():
            raise DataError(f"weights are {shown(weights)}; expected {k} numbers above 0")
        if not (np.isfinite(means).all() and np.isfinite(cov).all()):
            raise DataError("means or covariances hold NaN or infinity")
        full = np.broadcast_to(cov, (k, d, d))
        try:
            factors = [cho_factor(matrix, lower=True) for matrix in full]
        except LinAlgError as error:
            raise DataError(f"a covariance is not positive definite ({error})") from error
        for name, value in zip(
            ("means", "covariances", "weights", "_factors"), (means, full, weights, factors),
            strict=True,
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def __call__(self, points: Floats) -> Scored:
        """Return the slopes and weights at points (n, d).

        Raises
        ------
        DataError
            If the points have another dimension.
        """
        means, logs, pulls = np.asarray(self.means), [], []
        check_score_dims(points, means.shape[1])
        for mean, factor, weight in zip(
            means, self._factors, np.asarray(self.weights), strict=True
        ):
            pull = cho_solve(factor, (mean - points).T).T
            exponent = -0.5 * ((mean - points) * pull).sum(axis=1)
            logs.append(np.log(weight) + exponent - np.log(np.diag(factor[0])).sum())
            pulls.append(pull)
        shares = softmax(np.array(logs), axis=0)
        slopes = np.einsum("kn,knd->nd", shares, np.array(pulls))
        return Scored(points, slopes, np.ones(len(points)))


@dataclass(frozen=True, eq=False)
class SeriesScore:
    """Score function of an estimated series density, within its box.

    The score is weighted by b(x) = Π_j 4 u_j (1 − u_j), where u is the point in the unit cube.

    Parameters
    ----------
    density : Densities
        A batch with one density. The density has to be positive at all points, which many series
        are not. `Densities.valid`, or a mixture with a constant, makes a density positive.

    Raises
    ------
    ParameterError
        If ``density`` has more than one density.

    See Also
    --------
    fit_test : Test goodness of fit.
    MixtureScore : Score of a mixture of normal distributions.
    bagbasis.densities.Densities : Densities as series.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.densities import estimate_densities
    >>> from bagbasis.hypotheses import SeriesScore, fit_test
    >>> x, new = rng.beta(1, 1.5, (2, 400, 1))
    >>> score = SeriesScore(estimate_densities([x], smoothness=1.0, box=[(0.0, 1.0)]))
    >>> result = fit_test(new, score, statistic='fssd', n_draws=199)
    >>> result.name
    'fssd(n_locations=5, learn=0.0)'
    """

    density: Densities

    def __post_init__(self) -> None:
        """Raise if there is more than one density."""
        if not isinstance(self.density, Densities) or len(self.density) != 1:
            raise ParameterError(
                f"density is {shown(self.density)}; expected Densities of one, as densities[0]"
            )

    def __call__(self, points: Floats) -> Scored:
        """Return the slopes and weights at points (n, d).

        Raises
        ------
        DataError
            If a point is outside the box, has another dimension, or lies where the density is not
            positive.
        """
        lo, hi = np.array(self.density.box.lo), np.array(self.density.box.hi)
        check_score_dims(points, len(lo))
        p = self.density.at(points)[0]
        if not (p > 0).all():
            bad = int(np.argmin(p > 0))
            raise DataError(
                f"point {bad}: the density is {p[bad]:.3g} there; leave the point out, or take a "
                "series that is positive"
            )
        unit = (points - lo) / (hi - lo)
        heights = 4 * unit * (1 - unit)
        b = heights.prod(axis=1)
        slopes = np.empty_like(points)
        for j in range(points.shape[1]):
            ends = [points.copy(), points.copy()]
            for end, sign in zip(ends, (-1, 1), strict=True):
                end[:, j] = np.clip(end[:, j] + sign * DIFFERENCE_STEP * (hi - lo)[j], lo[j], hi[j])
            rise = self.density.at(ends[1])[0] - self.density.at(ends[0])[0]
            others = np.delete(heights, j, axis=1).prod(axis=1)
            slopes[:, j] = b * rise / (ends[1][:, j] - ends[0][:, j]) / p
            slopes[:, j] += others * 4 * (1 - 2 * unit[:, j]) / (hi - lo)[j]
        return Scored(points, slopes, b)


@dataclass(frozen=True, eq=False)
class GivenScore:
    """A user's score function of a density on the whole space.

    Parameters
    ----------
    function : callable
        Function from points (n, d) to ∇ log p, shape (n, d).
    """

    function: Callable[[Floats], ArrayLike]

    def __call__(self, points: Floats) -> Scored:
        """Return the slopes and weights at points (n, d).

        Raises
        ------
        DataError
            If the function does not return a score.
        """
        try:
            slopes = as_array("score", self.function(points.copy()), np.float64)
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise DataError(f"the score function fails: {error}") from error
        if slopes.shape != points.shape or not np.isfinite(slopes).all():
            raise DataError(
                f"the score function returns shape {slopes.shape} or values that are not finite; "
                f"expected finite ones of shape {points.shape}"
            )
        return Scored(points, slopes, np.ones(len(points)))


def check_score_dims(points: Floats, n_dims: int) -> None:
    """Raise DataError if the points have another dimension than the density."""
    if points.shape[1] != n_dims:
        raise DataError(f"points have dimension {points.shape[1]}, the density has {n_dims}")
