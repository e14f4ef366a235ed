"""MMD² and the energy distance from all pairs of rows: `mmd_b`, `mmd_u`, `energy`.

Pairs are processed tile by tile. Memory holds the splits and a few tiles, whatever the number of
rows. Every split of the units into two samples is a quadratic form in the same kernel values, so
that all permutations take one pass over the tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core import frozen_component
from ...core.arrays import Floats, Integers
from ...data.store.sampling import spread_rows
from ..kernels.kernels import AnyKernel, Kernel, NegativeDistance, tiles
from ..nulls.distributions import Null, gamma_null, mixture_null, pearson_null, permutation_null
from ..nulls.permutation import TIE_TOLERANCE, draw_splits
from ..nulls.wild_bootstrap import WILD, wild_null
from ..registry import Measured
from .comparison import TWO_SAMPLE, TwoSamples, TwoSampleStatistic

SPECTRUM_ROWS = 2048  # evenly spread rows from which the spectrum of a null is estimated


@frozen_component
class PairStatistic(TwoSampleStatistic):
    """Base of the statistics of all pairs."""

    nulls: ClassVar[tuple[str, ...]] = ("permutation", "spectral", "gamma", "pearson", WILD)
    group_nulls: ClassVar[tuple[str, ...]] = ("permutation", WILD)
    unbiased: ClassVar[bool] = False

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        used: AnyKernel = kernel or NegativeDistance.of(samples.rows)
        is_permuted = samples.null == "permutation"
        splits = draw_splits(
            samples.is_first_unit, samples.n_permutations if is_permuted else 0, samples.seed
        )
        is_wild = samples.null == WILD
        weights = samples.wild_weights() if is_wild else None
        rows = samples.rows
        sums = PairSums.of(samples, lambda i, j: used(rows[i], rows[j]), used, splits, weights)
        values = sums.mmd(self.unbiased)
        if is_permuted:
            null = permutation_null(values[0], values[1:], sums.scale)
        elif is_wild:
            shift = values[0] - sums.mmd(unbiased=False)[0]
            null = wild_null(values[0], sums.weighted + shift, sums.scale)
        else:
            null = self._null_distribution(values[0], sums, samples, used)
        within = sums.spread_within()
        error = samples.standard_error(sums.witness(samples.units), float(null.values.var()))
        effect = (
            float(sums.mmd(True)[0] / within)
            if within > TIE_TOLERANCE * sums.scale
            else float("nan")
        )
        measured = Measured(float(values[0]), null, error, effect)
        return measured.times_power(used.exponent, self.name)

    def _null_distribution(
        self, value: float, sums: PairSums, samples: TwoSamples, kernel: AnyKernel
    ) -> Null:
        """Return the null as a mixture of χ², or as a distribution with the mixture's moments."""
        factor = sums.factor
        rows = spread_rows(samples.rows, SPECTRUM_ROWS)
        gram = kernel(rows, rows)
        trace = factor * (kernel.at_zero - _off_diagonal_mean(gram))
        mean, shift = (0.0, -trace) if self.unbiased else (trace, 0.0)
        if samples.null == "spectral":
            weights = factor * np.linalg.eigvalsh(_centred(gram)) / len(rows)
            own = 0.0 if not self.unbiased else -float(weights.sum())
            return mixture_null(value, weights, samples.n_permutations, samples.seed, own)
        centred, n = u_centred(gram), len(rows)
        variance = null_variance(centred, factor)
        if samples.null == "gamma":
            return gamma_null(value, mean, variance, shift)
        cubes = float(((centred @ centred) * centred).sum()) / (n * (n - 1) * (n - 2))
        return pearson_null(value, mean, variance, 8 * factor**3 * cubes / variance**1.5)


@TWO_SAMPLE.register
@frozen_component
class BiasedMMD(PairStatistic):
    """Biased squared MMD over all pairs of points.

    The statistic is that of FastMMD (2015), equation 2. It is never negative, and larger than 0 on
    average without a difference; `UnbiasedMMD` is 0 on average.

    See Also
    --------
    two_sample_test : Compare two samples.
    UnbiasedMMD : Unbiased MMD of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import BiasedMMD, two_sample_test
    >>> result = two_sample_test(a, b, statistic=BiasedMMD(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "mmd_b"


@TWO_SAMPLE.register
@frozen_component
class UnbiasedMMD(PairStatistic):
    """Unbiased squared MMD over all pairs of points.

    The statistic uses all pairs of different rows (FastMMD 2015, equation 13). Its expected value
    is 0 without a difference.

    See Also
    --------
    two_sample_test : Compare two samples.
    BiasedMMD : Biased MMD of all pairs.
    Fuse : Several widths, fused into one statistic.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import UnbiasedMMD, two_sample_test
    >>> result = two_sample_test(a, b, statistic=UnbiasedMMD(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "mmd_u"
    unbiased: ClassVar[bool] = True


@TWO_SAMPLE.register
@frozen_component
class EnergyDistance(PairStatistic):
    """Energy distance over all pairs of points; it has no bandwidth.

    The statistic is 2 E‖x − y‖ − E‖x − x'‖ − E‖y − y'‖. It is never negative, and equals MMD_b²
    with the kernel −‖x − y‖.

    See Also
    --------
    two_sample_test : Compare two samples.
    Sliced : Sliced Wasserstein distance.
    DistanceCovariance : Distance covariance.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import EnergyDistance, two_sample_test
    >>> result = two_sample_test(a, b, statistic=EnergyDistance(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "energy"
    kernels: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums of kernel values over the pairs of each split; the first split is the data's own.

    Attributes
    ----------
    at_zero : float
        k(x, x).
    n_first, n_second : shape (n_splits,)
        Number of rows in the two samples of each split.
    first, between, second : shape (n_splits,)
        Sums over all pairs within the first sample, between the samples, and within the second.
    to_first, to_second : shape (n_rows,)
        Sums over the pairs of each row with the rows of the two samples of the data.
    weighted : shape (n_draws,)
        Sums over all pairs, multiplied by the weights of their units.
    """

    at_zero: float
    n_first: Floats
    n_second: Floats
    first: Floats
    between: Floats
    second: Floats
    to_first: Floats
    to_second: Floats
    weighted: Floats

    @classmethod
    def of(
        cls,
        samples: TwoSamples,
        values_of: Callable[[slice, slice], Floats],
        kernel: AnyKernel,
        splits: NDArray[np.bool_],
        weights: Floats | None = None,
    ) -> PairSums:
        """Sum over the tiles of the samples' rows, each pair of tiles once.

        Parameters
        ----------
        values_of : callable
            The kernel's values of two slices of the rows.
        splits : shape (n_splits, n_units)
        weights : shape (n_draws, n_units), optional
        """
        units = samples.units
        vectors = splits if weights is None else np.vstack([splits, weights])
        own = np.zeros(len(vectors))
        to_all, to_first = np.zeros(len(units)), np.zeros(len(units))
        is_first = splits[0, units].astype(np.float64)
        for i in tiles(len(units)):
            vectors_i = vectors[:, units[i]].astype(np.float64)
            for j in tiles(i.stop):
                values = values_of(i, j)
                vectors_j = vectors_i if i == j else vectors[:, units[j]].astype(np.float64)
                twice = 1 if i == j else 2
                own += twice * np.einsum("ij,ij->i", vectors_i @ values, vectors_j)
                to_all[i] += values.sum(axis=1)
                to_first[i] += values @ is_first[j]
                if i != j:
                    to_all[j] += values.sum(axis=0)
                    to_first[j] += is_first[i] @ values
        of_units = np.bincount(units, to_all)
        own, weighted = own[: len(splits)], own[len(splits) :]
        sizes = samples.unit_sizes.astype(np.float64)
        n_first, crossed = splits @ sizes, splits @ of_units
        return cls(
            at_zero=kernel.at_zero,
            n_first=n_first,
            n_second=sizes.sum() - n_first,
            first=own,
            between=crossed - own,
            second=to_all.sum() - 2 * crossed + own,
            to_first=to_first,
            to_second=to_all - to_first,
            weighted=weighted,
        )

    @property
    def scale(self) -> float:
        """Magnitude of the means of the sums, for bounds on rounding."""
        n = self.n_first[0] + self.n_second[0]
        mean = (self.first[0] + 2 * self.between[0] + self.second[0]) / n**2
        return max(self.at_zero, abs(float(mean)))

    def mmd(self, unbiased: bool) -> Floats:
        """Return MMD² of each split, shape (n_splits,)."""
        m, n = self.n_first, self.n_second
        crossed = 2 * self.between / (m * n)
        if not unbiased:
            return self.first / m**2 + self.second / n**2 - crossed
        own = (self.first - m * self.at_zero) / (m * (m - 1))
        other = (self.second - n * self.at_zero) / (n * (n - 1))
        return own + other - crossed

    @property
    def factor(self) -> float:
        """1/m + 1/n, which spreads the statistic without a difference."""
        return float(1 / self.n_first[0] + 1 / self.n_second[0])

    def witness(self, units: Integers) -> Floats:
        """Sum over each unit's rows the mean kernel with the first sample less the second."""
        of_rows = self.to_first / self.n_first[0] - self.to_second / self.n_second[0]
        return np.bincount(units, of_rows).astype(np.float64)

    def spread_within(self) -> float:
        """Return E‖φ(x) − μ‖² within the samples, pooled."""
        m, n = self.n_first[0], self.n_second[0]
        own = (self.first[0] - m * self.at_zero) / (m - 1)
        other = (self.second[0] - n * self.at_zero) / (n - 1)
        return float(self.at_zero - (own + other) / (m + n))


def _off_diagonal_mean(gram: Floats) -> float:
    n = len(gram)
    return float((gram.sum() - np.trace(gram)) / (n * (n - 1)))


def _centred(gram: Floats) -> Floats:
    means: Floats = gram.mean(axis=0)
    return gram - means - means[:, None] + float(means.mean())


def null_variance(centred: Floats, factor: float) -> float:
    """Return the variance of MMD² without a difference, from kernel values of `u_centred`."""
    n = len(centred)
    squares = max(float(np.vdot(centred, centred)) / (n * (n - 3)), np.finfo(float).tiny)
    return 2 * factor**2 * squares


def u_centred(gram: Floats) -> Floats:
    """Centre the values off the diagonal, which would add to every λ (Székely and Rizzo).

    From the result, Σ g_ij² / n(n − 3) estimates Σλ² without bias, and Σ g_ij g_jk g_ki / n(n −
    1)(n − 2) estimates Σλ³.
    """
    n = len(gram)
    centred = gram.copy()
    np.fill_diagonal(centred, 0.0)
    sums = centred.sum(axis=0) / (n - 2)
    total = centred.sum() / ((n - 1) * (n - 2))
    centred += total - sums - sums[:, None]
    np.fill_diagonal(centred, 0.0)
    return centred
