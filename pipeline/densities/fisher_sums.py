"""`FisherSums`: sufficient statistics of points for score matching; they add and subtract.

A function f = θᵀφ(z) of paired features φ = [c sin ωᵀz, c cos ωᵀz] has the derivatives
∂_j φ = ω_j ψ with ψ = [c cos ωᵀz, −c sin ωᵀz], and Δφ = −‖ω‖² φ. The means of products of gradients
are therefore means of ψψᵀ times products of frequencies. No derivative has to be formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import ndtri
from scipy.stats import qmc

from ..core.arrays import Floats, Integers
from ..core.errors import DataError
from ..core.sums import Sums
from ..data.labelled.labelled import Batch
from ..execution.costs import SECONDS_PER_PRODUCT, Cost
from ..execution.passes import Reduction, in_place_reduction
from ..execution.products import gram_matrix

POINTS_PER_STEP = 2**13  # points whose features are in memory at a time: some tens of MiB
_SECONDS_PER_SINE = 2e-8  # for a sine and its cosine in float64 on one core


@dataclass(frozen=True, eq=False)
class PointScale:
    """Standardisation z = (x − centre) / scale of coordinates; kernel widths are in units of z."""

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, points: Floats) -> PointScale:
        """Return the scale in which each coordinate of the points has mean 0 and variance 1.

        Raises
        ------
        DataError
            If a coordinate is constant.
        """
        scale = points.std(axis=0)
        tiny = scale <= 1e-12 * np.abs(points).max(axis=0)
        if tiny.any():
            raise DataError(
                f"coordinate {int(tiny.argmax())} of the points is constant: they have no density; "
                "leave it out"
            )
        return cls(points.mean(axis=0), scale)

    def __call__(self, points: Floats) -> Floats:
        """Return points in units of z."""
        return (points - self.centre) / self.scale


@dataclass(frozen=True, eq=False)
class FisherSpectrum:
    """Frequencies and amplitudes of features that approximate a Gaussian kernel.

    Attributes
    ----------
    omega : float64, shape (d, L)
        Frequencies ω as columns.
    amplitudes : float64, shape (L,)
        Amplitudes c, whose squares add up to 1.
    """

    omega: Floats
    amplitudes: Floats

    @classmethod
    def draw(cls, n_dims: int, n_frequencies: int, width: float, seed: int) -> FisherSpectrum:
        """Return frequencies for a kernel of this width; a pure function of the arguments.

        The frequencies are normal quantiles of a Halton sequence, scrambled by the seed. Their
        distribution is wider than the spectrum of the kernel, and weights correct for this. Score
        matching needs means of ‖ω‖⁴, which a few frequencies in the tails would dominate otherwise.
        """
        wider = 1 + 2 / n_dims  # variance for which weights vary little in any dimension
        halton = qmc.Halton(n_dims, scramble=True, rng=np.random.default_rng(seed))
        places = np.clip(halton.random(n_frequencies), 1e-15, 1 - 1e-15)
        omega = wider**0.5 * ndtri(places).T
        weights = np.exp(-0.5 * (1 - 1 / wider) * (omega**2).sum(axis=0))
        return cls(omega / width, np.sqrt(weights / weights.sum()))

    @property
    def doubled(self) -> Floats:
        """Frequency of each feature, shape (d, 2 L)."""
        return np.concatenate([self.omega, self.omega], axis=1)

    def features(self, z: Floats) -> tuple[Floats, Floats]:
        """Return φ and ψ of points z, both of shape (n, 2 L)."""
        angle = z @ self.omega
        sine, cosine = self.amplitudes * np.sin(angle), self.amplitudes * np.cos(angle)
        return np.concatenate([sine, cosine], axis=1), np.concatenate([cosine, -sine], axis=1)


@dataclass(frozen=True, eq=False)
class FisherSums(Sums):
    """Sums over points z, for several folds and several spectra.

    Attributes
    ----------
    n : float64, shape (n_folds,)
        Number of points.
    first : shape (n_folds, d)
        Σ z.
    second : shape (n_folds, d, d)
        Σ z zᵀ.
    features : shape (n_folds, n_spectra, D)
        Σ φ.
    mixed : shape (n_folds, n_spectra, d, D)
        Σ z ψᵀ.
    slopes : shape (n_folds, n_spectra, D)
        Σ ψ.
    products : shape (n_folds, n_spectra, D, D)
        Σ ψ ψᵀ, the lower triangle.
    """

    n: Floats
    first: Floats
    second: Floats
    features: Floats
    mixed: Floats
    slopes: Floats
    products: Floats

    @classmethod
    def zeros(cls, n_folds: int, n_spectra: int, n_dims: int, n_features: int) -> FisherSums:
        """Return the sums over no points."""
        f, c, d, D = n_folds, n_spectra, n_dims, n_features
        shapes = [(f,), (f, d), (f, d, d), (f, c, D), (f, c, d, D), (f, c, D), (f, c, D, D)]
        return cls(*(np.zeros(shape) for shape in shapes))

    def fold(self, fold: int, chosen: int) -> PointSums:
        """Return the sums of one fold for one spectrum."""
        return PointSums(
            float(self.n[fold]),
            self.first[fold],
            self.second[fold],
            self.features[fold, chosen],
            self.mixed[fold, chosen],
            self.slopes[fold, chosen],
            self.products[fold, chosen],
        )

    def add(self, points: Floats, fold: int, spectra: Sequence[FisherSpectrum]) -> None:
        """Add points z, shape (n, d), to the sums of a fold, in place."""
        for start in range(0, len(points), POINTS_PER_STEP):
            z = points[start : start + POINTS_PER_STEP]
            self.n[fold] += len(z)
            self.first[fold] += z.sum(axis=0)
            self.second[fold] += z.T @ z
            for chosen, spectrum in enumerate(spectra):
                phi, psi = spectrum.features(z)
                self.features[fold, chosen] += phi.sum(axis=0)
                self.mixed[fold, chosen] += z.T @ psi
                self.slopes[fold, chosen] += psi.sum(axis=0)
                self.products[fold, chosen] += gram_matrix(np.ascontiguousarray(psi.T))


@dataclass(frozen=True, eq=False)
class PointSums(Sums):
    """`FisherSums` of one fold and one spectrum."""

    n: float
    first: Floats
    second: Floats
    features: Floats
    mixed: Floats
    slopes: Floats
    products: Floats


@dataclass(frozen=True, eq=False)
class NormalBase:
    """Normal density q, which is multiplied by exp f; mean and precision are in units of z."""

    mean: Floats
    precision: Floats

    @classmethod
    def of(cls, sums: PointSums) -> NormalBase:
        """Return the normal density with the mean and covariance of the points.

        Raises
        ------
        DataError
            If the covariance of the points is singular.
        """
        mean = sums.first / sums.n
        covariance = sums.second / sums.n - np.outer(mean, mean)
        try:
            factor = cho_factor(covariance, lower=True)
        except LinAlgError as error:
            raise DataError(
                "coordinates of the points determine each other (their covariance is singular): "
                "they have no density; leave one out"
            ) from error
        return cls(mean, cho_solve(factor, np.eye(len(mean))))

    def score(self, z: Floats) -> Floats:
        """Return the gradient of the log density, shape (n, d)."""
        return (self.mean - z) @ self.precision

    def log_density(self, z: Floats) -> Floats:
        """Return the logarithm of the density, shape (n,)."""
        gaps = z - self.mean
        squares = np.einsum("ni,ij,nj->n", gaps, self.precision, gaps)
        log_det = np.linalg.slogdet(self.precision)[1]
        logs: Floats = 0.5 * (log_det - len(self.mean) * np.log(2 * np.pi) - squares)
        return logs


@dataclass(frozen=True, eq=False)
class ScoreProblem:
    """The loss ½ θᵀGθ + θᵀb + c of score matching: half the Fisher divergence less a constant.

    The loss is E[½ ‖∇ log p‖² + Δ log p] for log p = log q + θᵀφ, where q is a normal density
    (Sriperumbudur et al. 2017, Theorem 4, for features).

    Attributes
    ----------
    gram : shape (D, D)
        G = E Σ_j ∂_jφ ∂_jφᵀ.
    linear : shape (D,)
        b = E Σ_j ∂²_jφ + ∂_j log q ∂_jφ.
    constant : float
        Constant c, the loss of q.
    """

    gram: Floats
    linear: Floats
    constant: float

    @classmethod
    def of(cls, sums: PointSums, base: NormalBase, spectrum: FisherSpectrum) -> ScoreProblem:
        """Return the loss over the points of the sums."""
        n, doubled = sums.n, spectrum.doubled
        lower = np.tril(sums.products) / n
        gram = (lower + np.tril(lower, -1).T) * (doubled.T @ doubled)
        pull = base.precision @ doubled  # slope of log q along each frequency
        curvature = -(doubled**2).sum(axis=0) * sums.features / n
        drift = (base.mean @ pull) * sums.slopes / n - (pull * sums.mixed).sum(axis=0) / n
        mean = sums.first / n
        spread = sums.second / n - np.outer(mean, base.mean) - np.outer(base.mean, mean)
        spread += np.outer(base.mean, base.mean)
        squares = np.trace(base.precision @ spread @ base.precision)
        return cls(gram, curvature + drift, float(0.5 * squares - np.trace(base.precision)))

    def value(self, theta: Floats) -> float:
        """Return the loss for coefficients θ."""
        return float(0.5 * theta @ self.gram @ theta + self.linear @ theta + self.constant)


def fisher_pass(
    scale: PointScale, spectra: tuple[FisherSpectrum, ...], n_folds: int
) -> Reduction[FisherSums]:
    """Declare the pass of `FisherSums`; all points of a bag are in the same fold."""
    n_dims, n_features = spectra[0].doubled.shape
    return in_place_reduction(
        "scores",
        partial(FisherSums.zeros, n_folds, len(spectra), n_dims, n_features),
        partial(_add_points, scale=scale, spectra=spectra),
        _cost(len(spectra), n_folds, n_features),
    )


def _add_points(
    sums: FisherSums, batch: Batch, scale: PointScale, spectra: tuple[FisherSpectrum, ...]
) -> None:
    folds = fold_of(batch.index, len(sums.n))
    of_points = np.repeat(folds, batch.bags.sizes)
    z = scale(batch.bags.points.astype(np.float64))
    for fold in range(len(sums.n)):
        sums.add(z[of_points == fold], fold, spectra)


def fold_of(index: Integers, n_folds: int) -> Integers:
    """Return the fold of each bag from its position: every n_folds-th bag has the same fold."""
    return index % n_folds


def _cost(n_spectra: int, n_folds: int, n_features: int) -> Cost:
    """Return the cost of a pass."""
    sums = 8 * n_spectra * n_folds * n_features**2
    return Cost(
        seconds_per_point=n_spectra
        * n_features
        * (2 * n_features * SECONDS_PER_PRODUCT + _SECONDS_PER_SINE),
        bytes_per_task=3 * sums + 5 * 8 * n_features * POINTS_PER_STEP,
    )
