"""The uncertainty of a fit, and the leverage of bags, computed from the sums of the fit.

With centred features c = z − z̄, S = Σ ccᵀ over the n bags fitted and M = S + λI, ridge regression
is the posterior mean of ψ ~ N(0, σ²/λ) with a flat prior of the intercept, and Var(y | X) = σ² (1 +
h). The leverage h = 1/n + cᵀM⁻¹c of a fitted bag is its diagonal entry of the hat matrix. S is
stored as its eigenvectors, which serve any shift of S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from typing_extensions import override

from ..core.arrays import Floats
from ..core.units import in_units
from .model_state import OptionalPart
from .ridge.ridge import RidgeSolution
from .ridge.summary import Summary

BAG_FRACTIONS = np.arange(0, 1, 0.05)  # fractions of σ² that are tried as the variance of bags
MIN_FREE = 1e-3  # of 1 - h, where the fit passes through a bag's label
_EIGENVALUE_ROUNDING = (
    1e-14  # eigenvalues below this fraction of the trace cannot be told from zero in double
)
NO_POSTERIOR = (
    "standard deviations need a model with a posterior; fit it with uncertainty=True "
    "(model.uncertainty: true), which stores a matrix of features by features"
)
NO_NOISE = (
    "the noise of the labels is not known: the model goes through all bags that it was fitted to; "
    "fit it with a larger alpha, or to more bags"
)


class BagScores(NamedTuple):
    """Leverage and Mahalanobis distance of n bags, large for bags unlike the bags fitted.

    The arrays are lazy dask.arrays for a store.

    Attributes
    ----------
    leverage : float64, shape (n,)
        Leverage h > 0. A large leverage means that the model learnt from few bags like this one.
        Over the bags fitted, the mean is (1 + degrees of freedom) / n, and the maximum at most 1.
    mahalanobis : float64, shape (n,)
        Mahalanobis distance from the mean of the bags fitted, in standard deviations. It uses their
        covariance S/n, shrunk as in `sklearn.covariance.OAS`. It does not depend on the labels.
    """

    leverage: Any
    mahalanobis: Any


@dataclass(frozen=True, eq=False)
class Posterior(OptionalPart):
    """The spread of the bags fitted in feature space, and the noise of their labels.

    Attributes
    ----------
    n : int or float
        Number of bags fitted, or their weight.
    alpha : float
        Penalty λ.
    mean : float64, shape (D,)
        Mean z̄ of the features.
    directions : float64, shape (r, D)
        Eigenvectors of S with eigenvalues that are not zero; r is at most n − 1.
    eigenvalues : float64, shape (r,)
        Eigenvalues e of S for these directions.
    noise : float64, shape (k,)
        Noise variance σ² of each target: the residual sum of squares over n − 1 − Σ e/(e + λ)
        (Wahba 1983). Infinite if no degrees of freedom are left.
    exponents : list of int
        Exponents of the units 4^exponents of the noise. The unit is 1 for labels between 2^-64 and
        2^64, and in files written before noise had units.
    of_bags : list of float
        Factor of the variance due to the sampling of a bag, for each target.
    """

    n: float
    alpha: float
    mean: Floats
    directions: Floats
    eigenvalues: Floats
    noise: Floats
    exponents: Sequence[int] = (0,)
    of_bags: Sequence[float] = (1.0,)

    key: ClassVar[str] = "posterior"
    arrays: ClassVar[tuple[str, ...]] = ("mean", "directions", "eigenvalues", "noise")

    @classmethod
    def of(cls, summary: Summary, solution: RidgeSolution, rounding: float) -> Posterior:
        """Return the posterior of a solution for these rows.

        With λ = 0, eigenvalues up to the fraction ``rounding`` of the trace count as zero.
        Directions without bags then have no leverage.
        """
        squares = summary.judge()(*solution.in_units(summary.exponents))
        values, vectors = scipy.linalg.eigh(
            summary.matrix(), lower=True, overwrite_a=True, check_finite=False, driver="evd"
        )
        share = _EIGENVALUE_ROUNDING if solution.alpha > 0 else rounding
        keep = values > share * summary.trace
        eigenvalues: Floats = values[keep]
        directions = summary.coefficients(vectors[:, keep]).T
        # in the order of a saved model: products of another one round otherwise
        directions = np.ascontiguousarray(
            directions / np.linalg.norm(directions, axis=1, keepdims=True)
        )
        freedom = (
            summary.n_weighted - 1 - float(np.sum(eigenvalues / (eigenvalues + solution.alpha)))
        )
        noise = np.full(len(squares), np.inf)
        if freedom > 1e-9 * summary.n_weighted:
            noise = summary.weight * squares / freedom
        mean = summary.sum_z / summary.weight
        exponents = summary.exponents.tolist()
        return cls(summary.weight, solution.alpha, mean, directions, eigenvalues, noise, exponents)

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        r = len(self.eigenvalues)
        shapes = [getattr(self, name).shape for name in self.arrays]
        if shapes != [(n_features,), (r, n_features), (r,), (n_targets,)]:
            raise ValueError(f"the posterior has arrays of shapes {shapes}")
        if len(self.exponents) not in (1, n_targets):
            raise ValueError(f"the posterior has exponents {self.exponents}")
        if len(self.of_bags) not in (1, n_targets):
            raise ValueError(f"the posterior has of_bags {self.of_bags}")

    def score(self, features: NDArray[Any], out: Floats) -> None:
        """Write leverage and Mahalanobis distance of each row z (m, D) into out (m, 2)."""
        centred = features - self.mean
        squares = (centred @ self.directions.T) ** 2
        beyond = np.maximum(0.0, np.einsum("ij,ij->i", centred, centred) - squares.sum(axis=1))
        out[:, 0] = squares @ (1 / (self.eigenvalues + self.alpha)) + 1 / self.n
        if self.alpha > 0:
            out[:, 0] += beyond / self.alpha
        shrinkage, shift = self._shrinkage()
        variances = shrinkage * self.eigenvalues / self.n + shift
        out[:, 1] = np.sqrt(squares @ (1 / variances) + beyond / shift)

    def deviations(self, leverage: Floats, spread: Floats) -> Floats:
        """Return the standard deviation of a label, √(σ² (1 + h) + c v), shape (m, k).

        v, shape (m, k), is the variance due to the sampling of a bag, see `bag_variances`, and c is
        `of_bags`.
        """
        exponents = np.array(self.exponents)
        of_bags = np.array(self.of_bags) * in_units(spread, 2 * exponents)
        deviations = np.sqrt(self.noise * (1 + leverage[:, None]) + of_bags)
        return in_units(deviations, -exponents)

    def shared(self, residuals: Floats, leverage: Floats, spread: Floats) -> Posterior:
        """Return the posterior with σ² divided between the noise of labels and of bags.

        The residuals of the fit contain both kinds of noise. v is known up to a factor, because it
        assumes that the coordinates of an embedding are independent. The fraction of v is chosen
        by maximum likelihood.

        Parameters
        ----------
        residuals, spread : float64, shape (m, k)
            Residuals of some bags that were fitted, and their variances v.
        leverage : float64, shape (m,)
            Leverages of these bags.
        """
        exponents = np.array(self.exponents)
        spread = in_units(spread, 2 * exponents)
        mean = spread.mean(axis=0)
        if not (np.isfinite(self.noise).all() and (mean > 0).all()):
            return self
        free = np.maximum(1 - leverage[:, None], MIN_FREE)
        squares = in_units(residuals, exponents) ** 2 / free / self.noise
        variances = 1 + BAG_FRACTIONS[:, None, None] * (spread / mean - 1)
        losses = (np.log(variances) + squares / variances).sum(axis=1)
        share = BAG_FRACTIONS[losses.argmin(axis=0)]
        of_bags = share * self.noise / mean
        return replace(self, noise=(1 - share) * self.noise, of_bags=of_bags.tolist())

    def _shrinkage(self) -> tuple[float, float]:
        """Return a and b of the shrunk covariance a S/n + b I (Chen et al. 2010, eq. 23)."""
        d, variances = len(self.mean), self.eigenvalues / self.n
        mean, square = variances.sum() / d, (variances**2).sum() / d**2
        gap = (self.n + 1) * (square - mean**2 / d)
        shrinkage = min(1.0, (square + mean**2) / gap) if gap > 0 else 1.0
        return 1 - shrinkage, max(shrinkage * mean, np.finfo(np.float64).tiny)
