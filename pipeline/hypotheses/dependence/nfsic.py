"""NFSIC: dependence of x and y near a few pairs of locations, from sums that merge (Szabó).

λ̂ = n ûᵀ (Σ̂ + γI)⁻¹ û. û are the covariances of k(x, v_j) and l(y, w_j). Σ̂ is the covariance of the
terms that û averages. Without dependence, λ̂ is asymptotically χ²(J) in any dimension. It takes one
pass over the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigvalsh
from typing_extensions import override

from ...core import Integer, frozen_component
from ...core.arrays import Floats
from ...core.errors import DataError
from ...core.saved import Saved
from ...core.sums import Sums
from ...data.store.sampling import MEDIAN_ROWS, spread_rows
from ...execution.costs import Cost
from ..declared import MAX_LOCATIONS, LearningFraction
from ..kernels.kernels import Kernel
from ..nulls.distributions import Null, gamma_null, weighted_chi_square_null
from ..nulls.draws import near_rows
from ..registry import Measured
from ..samples.held_out import climb, kernel_gradient, split_units
from .pairs import INDEPENDENCE, DependenceStatistic, PairMap, Pairs

_SECONDS_PER_VALUE = 3e-9  # per coordinate, for the distance of a row to a location
NFSIC_RIDGE = 1e-5  # γ; the products of two kernels have variances from about 1e-3 to 0.25
# Ridge of the search. Without it, bandwidths shrink until only a few pairs are near a location, and
# û is not normal: p ≤ .05 in 15 % of tests of 800 independent pairs, by the null distribution from
# Σ̂ alone. With the ridge it is 7 %.
_LEARNING_RIDGE = 1e-2
# Largest trace of Σ̂ that independence implies, in units of the trace of Σ̂. Beyond it p ≤ .05 in
# 29 % of tests of 100 independent pairs of rare zeros and ones.
MAX_EXPECTED = 2.0
# Number of bags of a store from which the χ² distribution, in one pass, is accurate enough. Points
# in memory are permuted, which is exact: permutations detect 75 % of 60 dependent samples of 100
# pairs, the χ² distribution 63 %.
MANY_BAGS = 1000
_MIN_VARIANCE = 1e-12  # variance of a product of kernels; below it there is only rounding


@dataclass(frozen=True, eq=False)
class Locations(Saved):
    """Test locations and the bandwidths of both Gaussian kernels.

    Attributes
    ----------
    v, w : float64, shape (J, d_x), (J, d_y)
        Locations in the space of x and of y.
    x_bandwidth, y_bandwidth : float
        Bandwidths of the kernels.
    """

    v: Floats
    w: Floats
    x_bandwidth: float
    y_bandwidth: float

    @classmethod
    def drawn(
        cls, X: Floats, Y: Floats, n_locations: int, widths: tuple[float, float], seed: int
    ) -> Locations:
        """Draw v and w from normal distributions with the means and covariances of X and of Y."""
        rng = np.random.default_rng(seed)
        v, w = (
            rng.multivariate_normal(z.mean(axis=0), np.atleast_2d(np.cov(z.T)), n_locations)
            for z in map(near_rows, (X, Y))
        )
        return cls(v, w, *widths)

    def kernels(self, X: Floats, Y: Floats) -> tuple[Floats, Floats]:
        """Return k(x_i, v_j) and l(y_i, w_j), shape (n, J) each."""
        k, ell = (Kernel("gaussian", width) for width in (self.x_bandwidth, self.y_bandwidth))
        return k(X, self.v), ell(Y, self.w)

    def __call__(self, X: Floats, Y: Floats) -> LocationSums:
        """Return the sums over rows; these locations are a `PairMap`."""
        return LocationSums.of(*self.kernels(X, Y))

    @property
    def cost(self) -> Cost:
        """Cost per pair of rows."""
        n_locations = len(self.v)
        width = self.v.shape[1] + self.w.shape[1]
        return Cost(
            seconds_per_bag=n_locations * width * _SECONDS_PER_VALUE,
            bytes_per_bag=64 * n_locations,
            bytes_per_task=3 * 8 * (3 * n_locations) ** 2,
        )


@dataclass(frozen=True, eq=False)
class LocationSums(Sums):
    """Sufficient statistics of NFSIC: n, Σs and Σssᵀ of s = (k∘l, k, l) ∈ R^3J.

    Attributes
    ----------
    n : int
    s : float64, shape (3 J,)
    ss : float64, shape (3 J, 3 J)
    """

    n: int
    s: Floats
    ss: Floats

    @classmethod
    def of(cls, K: Floats, L: Floats) -> LocationSums:
        """Sum over the kernel values (n, J) of `Locations.kernels`."""
        s = np.hstack([K * L, K, L])
        return cls(len(s), s.sum(axis=0), s.T @ s)

    def covariances(self) -> tuple[Floats, Floats]:
        """Return û, shape (J,), unbiased, and Σ̂ = ΓΓᵀ / n, shape (J, J)."""
        n = self.n
        products, k, ell = self.s.reshape(3, -1)
        u = products / (n - 1) - k * ell / (n * (n - 1))
        k, ell = k / n, ell / n
        # Γ = M s + c, column by column
        M = np.hstack([np.eye(len(k)), -np.diag(ell), -np.diag(k)])
        c = k * ell - u
        crossed = np.outer(M @ self.s, c)
        return u, (M @ self.ss @ M.T + crossed + crossed.T) / n + np.outer(c, c)

    def contributions(self, ridge: float = NFSIC_RIDGE) -> Floats:
        """Return the contribution of each location to λ̂, n û_j ((Σ̂ + γI)⁻¹ û)_j, shape (J,)."""
        u, covariance = self.covariances()
        covariance[np.diag_indices_from(covariance)] += ridge
        shares: Floats = self.n * u * cho_solve(cho_factor(covariance), u)
        return shares

    def statistic(self, ridge: float = NFSIC_RIDGE) -> float:
        """Return λ̂; without dependence it is asymptotically χ²(J)."""
        return float(self.contributions(ridge).sum())

    def null(self, ridge: float = NFSIC_RIDGE) -> Null:
        """Return the more conservative of two null distributions Σ w_j χ²_1 of λ̂.

        In the first, w = σ / (σ + γ) for the eigenvalues σ of Σ̂. This is χ²(J) if all σ are far
        above γ. They are not if x or y has few different values, or no pairs are near a location.
        In the second, w are the eigenvalues of (Σ̂ + γI)⁻¹ A. The matrix
        A = n³ / (n − 1)³ cov(k, k) ∘ cov(l, l) is the covariance of √n û over all orders of y. If
        k and l are skewed, Σ̂ can be far below A by chance, and λ̂ is then large.

        Raises
        ------
        DataError
            If all pairs are alike at all locations; or if far fewer pairs are near the locations
            than expected, so that Σ̂ is far below cov(k, k) ∘ cov(l, l), as under independence.
        """
        n, covariance = self.n, self.covariances()[1]
        J = len(covariance)
        values = np.maximum(eigvalsh(covariance), 0.0)
        mean = self.s / n
        joint = self.ss / n - np.outer(mean, mean)
        independent = joint[J : 2 * J, J : 2 * J] * joint[2 * J :, 2 * J :]
        expected = float(np.trace(independent))
        if values[-1] < _MIN_VARIANCE or expected > MAX_EXPECTED * values.sum():
            raise DataError(
                f"too few of the {n} pairs are near the locations for null 'chi_square'; take "
                "null='permutation'"
            )
        observed, weights = self.statistic(ridge), values / (values + ridge)
        own = weighted_chi_square_null(observed, weights, n - 1, n / (n - 1))
        inverse = cho_factor(covariance + ridge * np.eye(J))
        ratio = cho_solve(inverse, independent) * (n / (n - 1)) ** 3
        moments = float(np.trace(ratio)), 2 * float(np.trace(ratio @ ratio))
        of_orders = replace(gamma_null(observed, *moments, 0.0), name=own.name)
        return max(own, of_orders, key=lambda null: null.p_value)


def nfsic_of_orders(
    K: Floats, L: Floats, orders: Iterator[NDArray[np.int64]], ridge: float = NFSIC_RIDGE
) -> Floats:
    """Return λ̂ for permutations of the rows of L, given in blocks (m, n), shape (n_orders,)."""
    return np.array(
        [LocationSums.of(K, L[order]).statistic(ridge) for block in orders for order in block]
    )


def _null_of_orders(K: Floats, L: Floats, pairs: Pairs) -> Null:
    """Return the null distribution of λ̂ over permutations of the rows of L.

    Kernel values are centred, which does not change û and Σ̂ but avoids the rounding of means. The
    rounding of the solve remains. It is proportional to the condition number of Σ̂ + γI, and values
    that differ by less are treated as equal.
    """
    K, L = K - K.mean(axis=0), L - L.mean(axis=0)
    centred = LocationSums.of(K, L)
    condition = 1 + float(np.trace(centred.covariances()[1])) / NFSIC_RIDGE
    observed = centred.statistic()
    values = nfsic_of_orders(K, L, pairs.orders())
    return pairs.order_null(observed, values, max(1.0, observed) * condition)


def learn_locations(start: Locations, X: Floats, Y: Floats) -> Locations:
    """Return the locations and bandwidths that maximise λ̂ on rows that the test does not use.

    λ̂ gives a lower bound of the power of the test (Szabó). See `climb`.
    """

    def criterion(locations: Sequence[Floats], bandwidths: Sequence[float]) -> tuple[float, Floats]:
        (v, w), (x_width, y_width) = locations, bandwidths
        value, gradient = nfsic_gradient(Locations(v, w, x_width, y_width), X, Y, _LEARNING_RIDGE)
        return value / len(X), gradient / len(X)

    (v, w), widths = climb(criterion, (start.v, start.w), (start.x_bandwidth, start.y_bandwidth))
    return Locations(v, w, *widths)


def nfsic_gradient(
    locations: Locations, X: Floats, Y: Floats, ridge: float = NFSIC_RIDGE
) -> tuple[float, Floats]:
    """Return λ̂ and its gradient in (v, w, log σ_x, log σ_y), shape (J d_x + J d_y + 2,)."""
    K, L = locations.kernels(X, Y)
    n = len(K)
    centred_K, centred_L = K - K.mean(axis=0), L - L.mean(axis=0)
    products = centred_K * centred_L
    u = products.sum(axis=0) / (n - 1)
    terms = products - u
    covariance = terms.T @ terms / n + ridge * np.eye(len(u))
    a = cho_solve(cho_factor(covariance), u)
    g = terms @ a

    def by_kernel(other: Floats) -> Floats:
        """Return ∂λ̂ / ∂K_ij, given the centred values of the other kernel."""
        weighted = g[:, None] * other
        own = other / (n - 1) * (n + g.sum())
        derivative: Floats = 2 * a * (own - (weighted - weighted.mean(axis=0)))
        return derivative

    slopes = []
    for rows, at, width, values, other in (
        (X, locations.v, locations.x_bandwidth, K, centred_L),
        (Y, locations.w, locations.y_bandwidth, L, centred_K),
    ):
        slopes.append(kernel_gradient(rows, at, width, by_kernel(other) * values))
    (v, x_log), (w, y_log) = slopes
    return float(n * u @ a), np.concatenate([v.ravel(), w.ravel(), [x_log, y_log]])


@INDEPENDENCE.register
@frozen_component
class NFSIC(DependenceStatistic):
    """Normalised finite set independence criterion: dependence at a few locations.

    The statistic λ̂ compares how often pairs lie near J locations with how often they would under
    independence, in linear time. NFSIC is good at detecting local dependence with many peaks; HSIC
    is better for smooth dependence. The statistic is n / (n − 1) times a T². For "chi_square", the
    more conservative of two null distributions is used.

    ``details`` of the result have the ``locations``, the ``differences`` and the ``contributions``
    of the locations. The differences are the covariances of k(x, v_j) and l(y, w_j): positive if
    pairs are near a location more often than under independence. The contributions add up to λ̂ and
    may be negative.

    Parameters
    ----------
    n_locations
        Number J of locations.
    learn
        Fraction of the units on which locations and bandwidths are learnt; the test uses the
        remaining units. With 0, locations are drawn from normal distributions with the moments of x
        and of y.

    See Also
    --------
    independence_test : Test for independence.
    HSICFourier : HSIC by random Fourier features.
    FSSD : Stein discrepancy at a few locations.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import NFSIC, independence_test
    >>> result = independence_test(x, y, statistic=NFSIC(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "nfsic"
    nulls: ClassVar[tuple[str, ...]] = ("permutation", "chi_square", "shift")
    null_in_pass: ClassVar[tuple[str, int] | None] = ("chi_square", MANY_BAGS)
    kernels: ClassVar[tuple[str, ...]] = ("gaussian",)
    n_locations: Annotated[int, Integer(1, MAX_LOCATIONS)] = 10
    learn: LearningFraction = 0.0

    @override
    def measure(self, pairs: Pairs) -> Measured:
        halves = split_units(pairs.units, self.learn, pairs.seed)
        training, pairs = (pairs.take(half) for half in halves)
        at = self._drawn(training)
        if self.learn:
            X, Y = training.rows
            at = learn_locations(at, X, Y)
        sums = at(*pairs.rows)
        if pairs.null == "chi_square":
            return self.of_sums(sums, at, pairs)
        return _measured(sums, at, pairs, _null_of_orders(*at.kernels(*pairs.rows), pairs))

    @override
    def pair_map(self, pairs: Pairs) -> Locations | None:
        return self._drawn(pairs) if pairs.null == "chi_square" and not self.learn else None

    @override
    def of_sums(self, sums: Sums, pair_map: PairMap, pairs: Pairs) -> Measured:
        assert isinstance(sums, LocationSums)
        assert isinstance(pair_map, Locations)
        n, n_locations = sums.n, self.n_locations
        if n <= n_locations:
            raise DataError(
                f"{n} pairs; null 'chi_square' at {n_locations} locations needs {n_locations + 1}: "
                "take fewer locations, or null='permutation'"
            )
        return _measured(sums, pair_map, pairs, sums.null())

    def _drawn(self, pairs: Pairs) -> Locations:
        (X, Y), (k, ell) = pairs.rows, pairs.kernels
        return Locations.drawn(X, Y, self.n_locations, (k.bandwidth, ell.bandwidth), pairs.seed)


def _measured(sums: LocationSums, at: Locations, pairs: Pairs, null: Null) -> Measured:
    contributions = sums.contributions()
    observed = float(contributions.sum())
    details = {
        "locations": at.to_dict(),
        "differences": sums.covariances()[0].tolist(),
        "contributions": contributions.tolist(),
        "n_tested": sums.n,
    }
    chosen = [spread_rows(z, MEDIAN_ROWS) for z in pairs.rows]
    sampled = dict(zip("xy", chosen, strict=True))
    return Measured(observed, null, effect=observed / sums.n, details=details, sampled_rows=sampled)
