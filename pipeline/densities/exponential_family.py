"""`ExponentialFamilyDensity`: a normal density times exp f, fitted by score matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, inv, solve

from ..core import (
    Integer,
    ListOf,
    OneOf,
    RandomSeed,
    Real,
    check_parameters,
    checked,
    component,
    documented,
)
from ..core.arrays import Floats, Integers
from ..core.containers import has_columns
from ..core.errors import DataError
from ..core.held_out_choice import as_good_as_best, simplest_within
from ..core.sklearn_bases import BaseEstimator, UnfittedError
from ..data.bags.bags import Bags, as_bags
from ..data.bags.coordinates import Names
from ..data.bags.point_rows import known_points, new_points
from ..data.labelled.labelled import LabelledBags
from ..data.store.sampling import MEDIAN_ROWS, RunSample, median_distance, spread_rows
from ..data.store.store import BagStore
from ..embeddings.random_features.base import SCALE_BOUNDS
from ..execution.passes import run_pass
from ..execution.progress import Progress
from ..execution.worker_threads import kernel_threads
from .fisher_sums import (
    FisherSpectrum,
    FisherSums,
    NormalBase,
    PointScale,
    PointSums,
    ScoreProblem,
    fisher_pass,
)
from .langevin import MAX_LANGEVIN_STEPS, run_chains

# Widths that "cv" tries, as multiples of the median distance between standardised points. Small
# widths are for densities with several modes; for the largest, f is nearly a polynomial.
_KERNEL_WIDTHS = (0.2, 0.35, 0.6, 1.0, 2.0)
_ALPHAS = tuple(10.0 ** np.arange(-9, 2))  # penalties on ‖θ‖² that "cv" tries; features have norm 1
# The smallest penalty that "cv" tries is MIN_ALPHA / n_points. With a smaller penalty, f is a steep
# polynomial where there are few points, and held-out points do not show it. For 100 points with two
# modes, the divergence was hundreds of times that of a normal distribution.
MIN_ALPHA = 1e-3
_SAMPLED_BAGS = 4096  # bags from which centre, scale and median distance are computed

PointsLike = BagStore | Bags | Sequence[ArrayLike] | NDArray[np.floating]
"""An array of points (n, d), or bags whose points are pooled."""


@dataclass(frozen=True, kw_only=True)
class Width:
    """Held-out errors of fits with one kernel width.

    Attributes
    ----------
    bandwidth : float
        Width of the Gaussian kernel, in standard deviations of the coordinates.
    alphas : tuple of float
        Penalties.
    divergences : tuple of float
        Score-matching loss on held-out points for each penalty. It is half the Fisher divergence
        from the density of the points, less a constant that is the same for all models. A flat
        density has the value 0.
    standard_errors : tuple of float
        Standard errors of the divergences over folds.

    See Also
    --------
    ExponentialFamilyDensity : Density estimate by score matching.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.densities import ExponentialFamilyDensity
    >>> density = ExponentialFamilyDensity(n_features=50).fit(rng.normal(size=(300, 1)))
    >>> widths = density.widths_  # one for each bandwidth that was tried
    >>> widths[0].bandwidth > 0
    True
    """

    bandwidth: float
    alphas: tuple[float, ...]
    divergences: tuple[float, ...]
    standard_errors: tuple[float, ...]


@component
class ExponentialFamilyDensity(BaseEstimator):
    """Density estimate by score matching, without a normalising constant.

    The estimate is p(x) ∝ q(x) exp f(x). Here q is the normal density with the mean and covariance
    of the points, and f lies in the span of random features of a Gaussian kernel. Score matching
    finds f by one linear system, from sums of one pass over the points. Width and penalty are
    chosen by the Fisher divergence on held-out folds: the smoothest density within one standard
    error of the best is taken. Use it for points in up to about ten dimensions.

    Parameters
    ----------
    n_features
        Number D of random features of f. For each width, a fit takes time proportional to n D² and
        memory for D² numbers per fold.
    bandwidth
        Width of the Gaussian kernel, in standard deviations of the coordinates. "median" is the
        median distance between points; "cv" chooses among a few multiples of it.
    alpha
        Penalty α/2 ‖θ‖², which is added to the mean loss over points. If several values are given,
        one is chosen. "cv" compares one value per decade up to 10. The smallest value is 1e-9, or
        1e-3 over the number of points if this is larger.
    n_folds
        Number of folds that are held out in turn.
    seed
        Seed for drawing the frequencies.

    Attributes
    ----------
    bandwidth_ : float
        Width of the Gaussian kernel.
    alpha_ : float
        Penalty.
    coefficients_ : float64, shape (D,)
        Coefficients θ of the random features.
    widths_ : list of Width
        Held-out Fisher divergences of all compared widths and penalties. The list is empty if one
        width and one penalty were given.
    n_features_in_ : int
        Number of coordinates d of a point.
    n_points_ : int
        Number of points.

    See Also
    --------
    estimate_densities : Estimate the density of each bag.
    bagbasis.neural.TANDensity : Autoregressive density of points.
    Width : Features and held-out error for one kernel width.

    Notes
    -----
    The references are Szabó (exponential families of infinite dimension) and Sriperumbudur,
    Fukumizu, Gretton, Hyvärinen and Kumar 2017. Far from all points, p is proportional to q except
    for a bounded factor, so that p can be normalised.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.densities import ExponentialFamilyDensity
    >>> x = rng.normal(size=(300, 1))
    >>> density = ExponentialFamilyDensity(n_features=50).fit(x)
    >>> density.log_density_gradient([[-1.0], [1.0]]).shape
    (2, 1)
    """

    n_features: Annotated[int, Integer(2, 20_000, even=True)] = field(default=500, kw_only=False)
    bandwidth: Annotated[float | str, Real(*SCALE_BOUNDS) | OneOf("cv", "median")] = "cv"
    alpha: Annotated[
        float | Sequence[float] | str, Real(gt=0) | ListOf(Real(gt=0), 1) | OneOf("cv")
    ] = "cv"
    n_folds: Annotated[int, Integer(2, 100)] = 5
    seed: RandomSeed = 0

    @checked
    def fit(self, X: PointsLike, y: object = None, *, progress: Progress | None = None) -> Self:
        """Fit the density of points.

        Parameters
        ----------
        X : array or table (n, d), Bags, list of arrays, or BagStore
            Points. The points of bags are pooled, and each fold consists of whole bags.
        y : object
            Ignored, like in scikit-learn's density estimators.
        progress : callable (bags done, bags in all), optional
            Function that is called with the progress.

        Raises
        ------
        DataError
            If there are fewer bags (for an array, fewer points) than folds, or a coordinate is
            constant or determined by other coordinates.
        """
        parameters = check_parameters(self)
        data = self._as_data(X)
        alphas = parameters["alpha"]
        chosen = isinstance(alphas, str)
        alphas = _ALPHAS if chosen else tuple(np.atleast_1d(alphas).tolist())
        decided = len(alphas) == 1 and parameters["bandwidth"] != "cv"
        n_folds = 1 if decided else parameters["n_folds"]
        if data.n_bags < n_folds:
            raise DataError(
                f"{data.n_bags} points or bags are fewer than the {n_folds} folds; give a list of "
                "more bags, or the points as one array"
            )
        seen = np.concatenate(
            [bags.points for bags in data.sample(RunSample.of_about(_SAMPLED_BAGS))]
        )
        seen = seen.astype(np.float64)
        scale = PointScale.of(seen)
        widths = _widths(parameters["bandwidth"], scale(seen))
        n = parameters["n_features"] // 2
        spectra = tuple(
            FisherSpectrum.draw(data.n_dims, n, width, parameters["seed"]) for width in widths
        )
        sums = run_pass(data, fisher_pass(scale, spectra, n_folds), progress=progress)
        if chosen:
            alphas = tuple(alpha for alpha in alphas if alpha * sums.n.sum() > 0.99 * MIN_ALPHA)
        with kernel_threads():
            tried = [] if decided else range(len(widths))
            values = [_fold_values(alphas, sums, i, spectra[i]) for i in tried]
            self.widths_ = [_width(widths[i], alphas, values[i], sums.n) for i in tried]
            best, penalty = (0, 0) if decided else choose(np.array(values), alphas, sums.n)
            total = _total(sums, best)
            base = NormalBase.of(total)
            problem = ScoreProblem.of(total, base, spectra[best])
            self.alpha_ = alphas[penalty]
            self.coefficients_ = _solutions(problem, (self.alpha_,))[0]
        self.bandwidth_ = widths[best]
        self.n_features_in_ = data.n_dims
        self._names: Names = data.coordinate_names
        self.n_points_ = int(total.n)
        self._density = _Density(scale, base, spectra[best], self.coefficients_)
        return self

    def log_density(self, X: ArrayLike) -> Floats:
        """Return log p at points, shape (n,), up to an unknown constant.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Points; in one dimension, shape (n,) is accepted, too.

        Raises
        ------
        DataError
            If the points have another dimension or are not finite.
        """
        x, _ = self._points(X)
        with kernel_threads():
            return self._fitted().log_density(x)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean of −½‖∇ log p‖² − Δ log p over points, higher for a better fit.

        The score is the negative loss of score matching, so that scikit-learn's searches can use
        it. It is not a log-likelihood, because the constant of p is unknown. Half the Fisher
        divergence from the density of the points is a constant less this score. The score depends
        on the units of the coordinates. Standardise coordinates of different sizes first; otherwise
        the coordinate with the smallest spread dominates.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Points, at least one; in one dimension, shape (n,) is accepted, too.
        y : object
            Ignored.

        Raises
        ------
        DataError
            If there are no points, or the points have another dimension or are not finite.
        """
        x, _ = self._points(X)
        if not len(x):
            raise DataError("X has no points to score")
        with kernel_threads():
            return self._fitted().matching(x)

    def log_density_gradient(self, X: ArrayLike) -> Floats:
        """Return ∇ log p at points, shape (n, d), for example for goodness-of-fit tests.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Points; in one dimension, shape (n,) is accepted, too.

        Raises
        ------
        DataError
            If the points have another dimension or are not finite.
        """
        x, order = self._points(X)
        with kernel_threads():
            slopes = self._fitted().gradient(x)
        return slopes if order is None else slopes[:, np.argsort(order)]

    @documented
    @checked
    def sample(
        self,
        n: Annotated[int, Integer(1, 10**8)],
        *,
        n_steps: Annotated[int, Integer(1, MAX_LANGEVIN_STEPS)] = 500,
        seed: RandomSeed = 0,
    ) -> Floats:
        """Draw points from the density, shape (n, d); each point has its own Langevin chain.

        Chains start at points drawn from q and resampled with weights exp f. Steps are accepted or
        rejected by the Metropolis rule, so that p is the stationary distribution.

        Parameters
        ----------
        n
            Number of points.
        n_steps
            Number of steps of each chain.
        seed
            Seed for drawing the points.
        """
        with kernel_threads():
            return self._fitted().sample(n, n_steps, seed)

    def _as_data(self, X: PointsLike) -> LabelledBags:
        """Return the data as bags; each row of an array or table is a bag of one point."""
        if isinstance(X, BagStore):
            return LabelledBags(X)
        if _is_points(X):
            points, names = new_points(self, X, ensure_min_samples=2)  # type: ignore[arg-type]
            return LabelledBags(Bags.trusted(points, np.arange(len(points) + 1), names=names))
        bags = as_bags(X)
        if len(bags) == 0:
            raise DataError("no points to fit a density to")
        return LabelledBags(bags)

    def _fitted(self) -> _Density:
        if not hasattr(self, "_density"):
            raise UnfittedError("the density is not fitted: call fit first")
        return self._density

    @property
    def coordinate_names(self) -> list[str] | None:
        """Names of the coordinates of the fitted points; None if the points had no names."""
        names = getattr(self, "_names", None)
        return None if names is None else list(names)

    def _points(self, X: ArrayLike) -> tuple[Floats, Integers | None]:
        """Return points with coordinates in the fitted order, and the order of ``X``'s columns."""
        self._fitted()
        return known_points(self, X, self._names, "the density was fitted on")


@dataclass(frozen=True, eq=False)
class _Density:
    """A fitted density of standardised points."""

    scale: PointScale
    base: NormalBase
    spectrum: FisherSpectrum
    theta: Floats

    def log_density(self, x: Floats) -> Floats:
        return self._log(self.scale(x))

    def gradient(self, x: Floats) -> Floats:
        return self._slope(self.scale(x)) / self.scale.scale

    def matching(self, x: Floats) -> float:
        """Return the mean of −½‖∇ log p‖² − Δ log p over points."""
        z, scale = self.scale(x), self.scale.scale
        # the Laplacian of sines and cosines is −‖ω‖² times them
        squares = ((self.spectrum.doubled / scale[:, None]) ** 2).sum(axis=0)
        curvature = -self.spectrum.features(z)[0] @ (squares * self.theta)
        laplacian = curvature - float((np.diag(self.base.precision) / scale**2).sum())
        return float(np.mean(-0.5 * (self.gradient(x) ** 2).sum(axis=1) - laplacian))

    def sample(self, n: int, n_steps: int, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        covariance: Floats = inv(self.base.precision)
        begun = rng.multivariate_normal(self.base.mean, covariance, 8 * n, method="cholesky")
        weights = np.log(-np.log(rng.random(8 * n)))  # log w − log E: Gumbel trick
        keys = (self.spectrum.features(begun)[0] @ self.theta - weights).reshape(n, 8)
        first = begun.reshape(n, 8, -1)[np.arange(n), keys.argmax(axis=1)]
        z = run_chains(self._log, self._slope, first, covariance, n_steps, rng)
        return z * self.scale.scale + self.scale.centre

    def _log(self, z: Floats) -> Floats:
        return self.base.log_density(z) + self.spectrum.features(z)[0] @ self.theta

    def _slope(self, z: Floats) -> Floats:
        psi = self.spectrum.features(z)[1]
        return self.base.score(z) + (psi * self.theta) @ self.spectrum.doubled.T


def _is_points(X: object) -> bool:
    """Return whether ``X`` is a matrix, vector or table of points, not a list of bags."""
    if not isinstance(X, np.ndarray):
        return has_columns(X) or (hasattr(X, "dtype") and np.ndim(X) == 1)  # type: ignore[arg-type]
    return X.ndim < 3 and (X.dtype != object or X.size == 0 or np.ndim(X.flat[0]) == 0)


def _widths(bandwidth: float | str, z: Floats) -> tuple[float, ...]:
    if not isinstance(bandwidth, str):
        return (float(bandwidth),)
    median = median_distance(spread_rows(z, MEDIAN_ROWS))
    return tuple(median * factor for factor in (_KERNEL_WIDTHS if bandwidth == "cv" else (1.0,)))


def _total(sums: FisherSums, chosen: int) -> PointSums:
    first, *others = (sums.fold(fold, chosen) for fold in range(len(sums.n)))
    for other in others:
        first = first + other
    return first


def _fold_values(
    alphas: tuple[float, ...], sums: FisherSums, chosen: int, spectrum: FisherSpectrum
) -> Floats:
    """Return the loss on each fold of a fit to all other folds, shape (n_alphas, n_folds)."""
    total, values = _total(sums, chosen), []
    for fold in range(len(sums.n)):
        held_out = sums.fold(fold, chosen)
        training = total - held_out
        base = NormalBase.of(training)
        thetas = _solutions(ScoreProblem.of(training, base, spectrum), alphas)
        problem = ScoreProblem.of(held_out, base, spectrum)
        values.append([problem.value(theta) for theta in thetas])
    return np.array(values).T


def _width(width: float, alphas: tuple[float, ...], values: Floats, sizes: Floats) -> Width:
    """Return the mean loss over all points and its standard error over folds, per penalty."""
    mean = np.average(values, axis=1, weights=sizes)
    error = np.std(values, axis=1, ddof=1) / values.shape[1] ** 0.5
    return Width(
        bandwidth=width,
        alphas=alphas,
        divergences=tuple(mean.tolist()),
        standard_errors=tuple(error.tolist()),
    )


def choose(values: Floats, alphas: tuple[float, ...], sizes: Floats) -> tuple[int, int]:
    """Return the positions of the chosen width and penalty.

    The widest kernel with the largest penalty is taken if its loss is within one standard error of
    the best. The losses of narrow kernels vary much between samples, so that narrow kernels may be
    best by chance. Otherwise, the widest kernel within one standard error is taken, with its
    largest penalty within half a standard error. For a fixed width, losses vary little.

    Parameters
    ----------
    values : shape (n_widths, n_alphas, n_folds)
        Losses on held-out folds, for widths in ascending order.
    sizes : shape (n_folds,)
        Number of points of each fold.
    """
    n_widths, n_alphas, n_folds = values.shape
    flat, largest = values.reshape(-1, n_folds), int(np.argmax(alphas))
    within = as_good_as_best(flat, weights=sizes, n_folds=n_folds).reshape(n_widths, n_alphas)
    if within[-1, largest]:
        return n_widths - 1, largest
    width = int(np.flatnonzero(within.any(axis=1))[-1])
    return width, simplest_within(values[width], -np.array(alphas), weights=sizes, n_errors=0.5)


def _solutions(problem: ScoreProblem, alphas: tuple[float, ...]) -> list[Floats]:
    """Return −(G + αI)⁻¹ b for each α; several α share one eigendecomposition."""
    if len(alphas) == 1:
        gram = problem.gram + alphas[0] * np.eye(len(problem.gram))
        return [-solve(gram, problem.linear, assume_a="pos")]
    values, vectors = eigh(problem.gram)
    turned = vectors.T @ problem.linear
    return [-vectors @ (turned / (np.maximum(values, 0) + alpha)) for alpha in alphas]
