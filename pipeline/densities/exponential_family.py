"""`ExponentialFamilyDensity`: exp f times a normal density, fitted by score matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import add
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, inv, solve

from ..core import (
    Function,
    Integer,
    ListOf,
    None_,
    OneOf,
    Real,
    Seed,
    check_parameters,
    checked,
    component,
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
from ..execution.passes import Reduction, run_pass
from ..execution.progress import Progress
from ..execution.worker_threads import kernel_threads
from .fisher_sums import (
    FisherCollector,
    FisherSpectrum,
    FisherSums,
    NormalBase,
    PointScale,
    PointSums,
    ScoreProblem,
    fisher_cost,
)
from .langevin import MAX_STEPS, run_chains

# Widths that "cv" tries, in median distances of standardised points: from a fifth of them, where
# densities have several modes, to twice, where f is nearly a polynomial.
WIDTHS = (0.2, 0.35, 0.6, 1.0, 2.0)
ALPHAS = tuple(10.0 ** np.arange(-9, 2))  # penalties that "cv" tries, on ‖θ‖² of features of norm 1
# The least of them is this over the points. With less f is a steep polynomial where points are few,
# which the points of no fold see: of 100 points of two modes its divergence was hundreds of times
# that of a normal distribution.
MIN_ALPHA = 1e-3
SAMPLED_BAGS = 4096  # bags whose points show where the data are, and how far apart

PointsLike = BagStore | Bags | Sequence[ArrayLike] | NDArray[np.floating]
"""Points (n, d) themselves, or bags of which all points are taken together."""


@dataclass(frozen=True)
class Width:
    """Features of one kernel width and the held-out error of a fit with them.

    Attributes
    ----------
    bandwidth : float
        Width of the Gaussian kernel, in standard deviations of the coordinates.
    alphas : tuple of float
    divergences : tuple of float
        By penalty: the held-out Fisher divergence from the density of the points, halved and less
        a constant that is the same for all models. 0 would be a density that is flat.
    standard_errors : tuple of float
        Standard errors of the divergences, over folds.

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

    p(x) ∝ q(x) exp f(x): q is the normal density of the points' mean and covariance, f lies in the
    span of random features of a Gaussian kernel. Score matching finds f by one linear system, from
    sums of one pass over the points; width and penalty are chosen by the Fisher divergence of
    folds that are held out, from the same sums: the smoothest density that is as good as the best
    by one standard error. For points in up to about ten dimensions.

    Parameters
    ----------
    n_features : even int from 2 to 20,000, default 500
        Number D of random features of f. A fit takes time n D² for each width, and memory for D²
        numbers per fold and width.
    bandwidth : float from 1e-30 to 1e+30 or {"cv", "median"}, default "cv"
        Width of the Gaussian kernel, in standard deviations of the coordinates. "cv": chosen from
        a few multiples of the median distance; "median": that distance.
    alpha : float > 0 or list of float > 0 or "cv", default "cv"
        Penalty α/2 ‖θ‖², which is added to the mean over points; if there are several, one is
        chosen. "cv" compares one value per decade up to 10, from 1e-9 or, if that is more, 1e-3
        over the number of points.
    n_folds : int from 2 to 100, default 5
    seed : int from 0 to 2^64 − 1, default 0
        Seed for drawing the frequencies.

    Attributes
    ----------
    bandwidth_ : float
    alpha_ : float
    coefficients_ : float64, shape (D,)
        θ.
    widths_ : list of Width
        The held-out Fisher divergence of all that was tried; empty where one width and one penalty
        were given.
    n_features_in_ : int
        d.
    n_points_ : int

    See Also
    --------
    estimate_densities : Estimate the density of each bag.
    bagbasis.neural.TANDensity : Autoregressive density of points.
    Width : Features and held-out error for one kernel width.

    Notes
    -----
    Szabó (exponential families of infinite dimension); Sriperumbudur, Fukumizu, Gretton, Hyvärinen
    and Kumar 2017. Far from all points the density is q's, so that it can be normalised.

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
    seed: Annotated[int, Seed] = 0

    @checked(progress=Function | None_)
    def fit(self, X: PointsLike, y: object = None, progress: Progress | None = None) -> Self:
        """Fit the density of points.

        Parameters
        ----------
        X : array or table (n, d), Bags, list of arrays, or BagStore
            Points; of bags all points together, with whole bags in folds.
        y : object
            Ignored, as scikit-learn's estimators of densities ignore it.
        progress : callable (bags done, bags in all), optional

        Raises
        ------
        DataError
            Fewer bags (of an array: points) than folds, or coordinates that are constant or
            determine each other.
        """
        parameters = check_parameters(self)
        data = self._as_data(X)
        alphas = parameters["alpha"]
        chosen = isinstance(alphas, str)
        alphas = ALPHAS if chosen else tuple(np.atleast_1d(alphas).tolist())
        decided = len(alphas) == 1 and parameters["bandwidth"] != "cv"
        n_folds = 1 if decided else parameters["n_folds"]
        if data.n_bags < n_folds:
            raise DataError(
                f"{data.n_bags} points or bags are fewer than the {n_folds} folds; give a list of "
                "more bags, or the points as one array"
            )
        seen = np.concatenate(
            [bags.points for bags in data.sample(RunSample.of_about(SAMPLED_BAGS))]
        )
        seen = seen.astype(np.float64)
        scale = PointScale.of(seen)
        widths = _widths(parameters["bandwidth"], scale(seen))
        n = parameters["n_features"] // 2
        spectra = tuple(
            FisherSpectrum.draw(data.n_dims, n, width, parameters["seed"]) for width in widths
        )
        collector = partial(FisherCollector.of, scale, spectra, n_folds)
        cost = fisher_cost(len(widths), n_folds, 2 * n)
        sums = run_pass(data, Reduction(collector, add, cost, name="scores"), progress=progress)
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
        """Return log p at points, shape (n,), up to a constant that is not known.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Points; in one dimension, shape (n,) is accepted, too.

        Raises
        ------
        DataError
            Points of another dimension, or not finite.
        """
        x, _ = self._points(X)
        with kernel_threads():
            return self._fitted().log_density(x)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return how well the density fits points: the mean of −½‖∇ log p‖² − Δ log p.

        It is the negative loss of score matching, higher for better densities, so that
        scikit-learn's searches can use it. It is not a log-likelihood, because the constant of p is
        unknown. The Fisher divergence from the density of the points, halved, is a constant
        less this value. The value is in the units of the coordinates: standardise coordinates of
        different sizes first, or the narrowest one decides.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Points, at least one; in one dimension, shape (n,) is accepted, too.
        y : object
            Ignored.

        Raises
        ------
        DataError
            No points, points of another dimension, or not finite.
        """
        x, _ = self._points(X)
        if not len(x):
            raise DataError("X has no points to score")
        with kernel_threads():
            return self._fitted().matching(x)

    def log_density_gradient(self, X: ArrayLike) -> Floats:
        """Return ∇ log p at points, shape (n, d), which is what tests of fit need.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Points; in one dimension, shape (n,) is accepted, too.

        Raises
        ------
        DataError
            Points of another dimension, or not finite.
        """
        x, order = self._points(X)
        with kernel_threads():
            slopes = self._fitted().gradient(x)
        return slopes if order is None else slopes[:, np.argsort(order)]

    @checked(n=Integer(1, 10**8), n_steps=Integer(1, MAX_STEPS), seed=Seed)
    def sample(self, n: int, *, n_steps: int = 500, seed: int = 0) -> Floats:
        """Draw points, shape (n, d), each by a Langevin chain of its own.

        Chains start at points of q that are chosen again with weights exp f, and steps are taken
        or refused so that p stays as it is (Metropolis).

        Parameters
        ----------
        n : int from 1 to 100,000,000
        n_steps : int from 1 to 1,000,000, default 500
            Number of steps of each chain.
        seed : int from 0 to 2^64 − 1, default 0
        """
        with kernel_threads():
            return self._fitted().sample(n, n_steps, seed)

    def _as_data(self, X: PointsLike) -> LabelledBags:
        """Return bags whose points are taken; each row of an array or table is a bag of its own."""
        if isinstance(X, BagStore):
            return LabelledBags(X)
        if _is_points(X):
            points, names = new_points(self, X, ensure_min_samples=2)  # type: ignore[arg-type]
            return LabelledBags(Bags.trusted(points, np.arange(len(points) + 1), names))
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
        """Names of the coordinates of the points fitted; None where they had none."""
        names = getattr(self, "_names", None)
        return None if names is None else list(names)

    def _points(self, X: ArrayLike) -> tuple[Floats, Integers | None]:
        """Return points with their coordinates in the fitted order, and where ``X`` has them."""
        self._fitted()
        return known_points(self, X, self._names, "the density was fitted on")


@dataclass(frozen=True, eq=False)
class _Density:
    """A fitted density in units of its own."""

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
        # the Laplacian multiplies sines and cosines by −‖ω‖²
        squares = ((self.spectrum.doubled / scale[:, None]) ** 2).sum(axis=0)
        curvature = -self.spectrum.features(z)[0] @ (squares * self.theta)
        laplacian = curvature - float((np.diag(self.base.precision) / scale**2).sum())
        return float(np.mean(-0.5 * (self.gradient(x) ** 2).sum(axis=1) - laplacian))

    def sample(self, n: int, n_steps: int, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        covariance: Floats = inv(self.base.precision)
        begun = rng.multivariate_normal(self.base.mean, covariance, 8 * n, method="cholesky")
        weights = np.log(-np.log(rng.random(8 * n)))  # the largest log w − log E is drawn by w
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
    return tuple(median * factor for factor in (WIDTHS if bandwidth == "cv" else (1.0,)))


def _total(sums: FisherSums, chosen: int) -> PointSums:
    first, *others = (sums.fold(fold, chosen) for fold in range(len(sums.n)))
    for other in others:
        first = first + other
    return first


def _fold_values(
    alphas: tuple[float, ...], sums: FisherSums, chosen: int, spectrum: FisherSpectrum
) -> Floats:
    """Return the objective on each fold of a fit to the others, shape (n_alphas, n_folds)."""
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
    """Return the means over all points of the objective on folds of these sizes."""
    mean = np.average(values, axis=1, weights=sizes)
    error = np.std(values, axis=1, ddof=1) / values.shape[1] ** 0.5
    return Width(width, alphas, tuple(mean.tolist()), tuple(error.tolist()))


def choose(values: Floats, alphas: tuple[float, ...], sizes: Floats) -> tuple[int, int]:
    """Return the places of a width and its penalty.

    The widest width with the largest penalty is taken if it is within one standard error of the
    best: narrow kernels have divergences that vary much between samples, and win by chance. If it
    is not, the widest width that is within one, and its largest penalty within half of one: with
    one width divergences vary little.

    Parameters
    ----------
    values : shape (n_widths, n_alphas, n_folds)
        Widths ascending.
    sizes : shape (n_folds,)
    """
    n_widths, n_alphas, n_folds = values.shape
    flat, largest = values.reshape(-1, n_folds), int(np.argmax(alphas))
    within = as_good_as_best(flat, weights=sizes, n_folds=n_folds).reshape(n_widths, n_alphas)
    if within[-1, largest]:
        return n_widths - 1, largest
    width = int(np.flatnonzero(within.any(axis=1))[-1])
    return width, simplest_within(values[width], -np.array(alphas), weights=sizes, n_errors=0.5)


def _solutions(problem: ScoreProblem, alphas: tuple[float, ...]) -> list[Floats]:
    """Return −(G + αI)⁻¹ b of each α; of several by one eigendecomposition."""
    if len(alphas) == 1:
        gram = problem.gram + alphas[0] * np.eye(len(problem.gram))
        return [-solve(gram, problem.linear, assume_a="pos")]
    values, vectors = eigh(problem.gram)
    turned = vectors.T @ problem.linear
    return [-vectors @ (turned / (np.maximum(values, 0) + alpha)) for alpha in alphas]
