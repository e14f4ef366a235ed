"""Differences at a few locations: mean embeddings, `me`; smoothed characteristic functions, `scf`.

Both statistics are Hotelling's T² of J features per row, in the form for samples of unequal sizes.
Without a difference, T² is asymptotically χ² with J (or 2 J) degrees of freedom (Chwialkowski et
al. 2015); for few units it is a scaled F. Only the sums of the features over each unit are kept.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from typing_extensions import override

from ...core import Integer, Open, frozen_component
from ...core.arrays import Floats, as_array
from ...core.errors import DataError, ParameterError
from ..declared import LearningFraction
from ..kernels.kernels import Kernel
from ..nulls.distributions import Null, permutation_null, weighted_chi_square_null
from ..nulls.draws import generator_of, near_rows
from ..nulls.permutation import split_sums
from ..registry import Measured
from ..samples.held_out import climb
from .comparison import TWO_SAMPLE, TwoSamples, TwoSampleStatistic
from .hotelling import TSquared, hotelling, hotelling_slopes, unit_moments
from .location_features import KernelsAt, LocationFeatures, SmoothedWaves

# Limits of "chi_square": 20 units of ten features against 150 have p ≤ .01 in 2 % of tests (400
# data sets) of Cauchy numbers, 10 units of five features in 2 %, and in 3 % for lognormal numbers.
# From these bounds on it is .4 to 2.2 %, 1 % on average, and p ≤ .05 in 2 to 7 %, 5 % on average.
MIN_PER_FEATURE = 3  # units of the smaller sample …
MAX_TIMES = 2  # … unless the larger has at most so many times as many


@frozen_component
class LocationStatistic(TwoSampleStatistic):
    """Base: T² of features at J locations.

    ``details`` of the result have the ``locations``, the ``differences`` and the ``contributions``.
    The differences are the mean features of the first sample less those of the second; `scf` has
    the differences of the sines, then of the cosines. The contributions of the locations add up to
    T² and may be negative.

    Parameters
    ----------
    n_locations
        Number J of locations.
    locations : J lists of d numbers
        The locations. Default: drawn at random, as the subclasses describe.
    learn
        Fraction of the units of both samples on which locations and bandwidth are learnt, starting
        from the given or drawn locations. The test uses the remaining units. The rows must then fit
        in memory, and their number should be large compared with J d. With 500 rows in R^10, two
        learnt locations of `MeanEmbeddings` have 0.5 to 2.1 times the effect of drawn locations;
        with 2,000 rows, 1.5 to 2.5 times.
    """

    is_in_space: ClassVar[bool] = False  # whether locations are where rows are
    nulls: ClassVar[tuple[str, ...]] = ("permutation", "chi_square")
    group_nulls: ClassVar[tuple[str, ...]] = nulls
    is_additive: ClassVar[bool] = True
    n_locations: Annotated[int, Integer(1, 256)] = 5
    locations: Annotated[Sequence[Sequence[float]] | None, Open("rows of numbers, or None")] = None
    learn: LearningFraction = 0.0

    @override
    def check(self) -> None:
        n = self.n_locations
        if self.locations is not None:
            locations = as_array("locations", self.locations, np.float64)
            if locations.ndim != 2 or len(locations) != n or not np.isfinite(locations).all():
                raise ParameterError(
                    f"locations have shape {locations.shape}; expected {n} lists of finite numbers"
                )

    @override
    def learn_on(
        self, samples: TwoSamples, kernel: Kernel | None
    ) -> tuple[TwoSampleStatistic, Kernel | None, TwoSamples, dict[str, Any]]:
        # what maximises T² of rows that are not tested
        if not self.learn:
            return self, kernel, samples, {}
        assert kernel is not None
        if kernel.name != "gaussian":
            raise ParameterError(f"learn is for the gaussian kernel; kernel is {kernel.name!r}")
        learning, tested = samples.split(self.learn)
        X, Y = learning.first.rows, learning.second.rows

        def criterion(at: Sequence[Floats], widths: Sequence[float]) -> tuple[float, Floats]:
            features = self.features(learning, kernel.with_bandwidth(widths[0]), at[0])
            value, of_x, of_y = hotelling_slopes(features(X), features(Y))
            return value, features.gradient(X, of_x) + features.gradient(Y, of_y)

        (v,), (width,) = climb(criterion, (self.place(learning),), (kernel.bandwidth,))
        learnt = replace(self, locations=v.tolist())
        details = {"learnt_on": learning.n, "tested_on": tested.n}
        return learnt, kernel.with_bandwidth(width), tested, details

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        assert kernel is not None
        locations = self.place(samples)
        features = self.features(samples, kernel, locations)
        sums, sizes = samples.feature_sums(features).astype(np.float64), samples.unit_sizes
        n_features = sums.shape[1]
        if len(sizes) < n_features + 3:
            raise DataError(
                f"the samples have {len(sizes)} units; {self.name!r} at {len(locations)} "
                f"locations needs {n_features + 3}"
            )
        is_permuted = samples.null == "permutation"
        n_permutations = samples.n_permutations if is_permuted else 0
        if not is_permuted:
            self._check_balance(samples, n_features)
        columns = unit_moments(sums, sizes)
        splits = split_sums(columns, samples.is_first_unit, n_permutations, samples.seed)
        n_first = split_sums(
            np.ones((len(sizes), 1)), samples.is_first_unit, n_permutations, samples.seed
        )
        total, is_pooled = columns.sum(axis=0), not is_permuted
        squared = hotelling(splits, total, n_first[:, 0], len(sizes), is_pooled)
        value = float(squared.values[0])
        return Measured(
            statistic=value,
            null=self._null(samples, squared),
            # of a noncentral χ² with the noncentrality that is seen
            standard_error=(2 * n_features + 4 * max(0.0, value - n_features)) ** 0.5,
            effect=(value - n_features) * float(squared.per_row[0]),
            details={
                "locations": locations.tolist(),
                "differences": squared.difference.tolist(),
                "contributions": squared.shares.reshape(-1, len(locations)).sum(axis=0).tolist(),
            },
            sampled_rows=samples.sampled if self.is_in_space else {},
        )

    def _check_balance(self, samples: TwoSamples, n_features: int) -> None:
        """Raise DataError for few units of one sample and many of the other.

        T² is then that of the few, whose mean of bounded features is not a normal number.
        """
        few, many = sorted((samples.first.n_units, samples.second.n_units))
        if few < MIN_PER_FEATURE * n_features and many > MAX_TIMES * few:
            raise DataError(
                f"the samples have {few} and {many} units; null 'chi_square' of {self.name!r} with "
                f"{n_features} features needs {MIN_PER_FEATURE * n_features} of both, or at most "
                f"{MAX_TIMES} times as many of one: take null='permutation'"
            )

    def _null(self, samples: TwoSamples, squared: TSquared) -> Null:
        """Return the distribution of T² without a difference; the first value is what was seen."""
        value = float(squared.values[0])
        if samples.null == "permutation":
            return permutation_null(value, squared.values[1:], max(1.0, value))
        # J + 3 units leave J + 1 degrees
        return weighted_chi_square_null(value, squared.weights, squared.degrees)

    def place(self, samples: TwoSamples) -> Floats:
        """Return the locations, shape (J, d)."""
        if self.locations is None:
            return self.draw(samples)
        locations = np.array(self.locations, np.float64)
        if locations.shape[1] != samples.n_dims:
            raise ParameterError(
                f"locations have {locations.shape[1]} coordinates, the rows {samples.n_dims}"
            )
        return locations

    @abstractmethod
    def draw(self, samples: TwoSamples) -> Floats:
        """Draw the locations, shape (J, d)."""

    @abstractmethod
    def features(self, samples: TwoSamples, kernel: Kernel, locations: Floats) -> LocationFeatures:
        """Return the features of a row."""


@TWO_SAMPLE.register
@frozen_component
class MeanEmbeddings(LocationStatistic):
    """ME test: differences of mean embeddings at a few locations.

    The statistic is Hotelling's T² of the kernel values at J locations. The locations are drawn
    from a normal distribution with the moments of both samples, or learnt on a part of the data.

    See Also
    --------
    two_sample_test : Compare two samples.
    SmoothedCharacteristicFunctions : Characteristic functions at a few frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import MeanEmbeddings, two_sample_test
    >>> statistic = MeanEmbeddings(n_locations=3)
    >>> result = two_sample_test(a, b, statistic=statistic, n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "me"
    is_in_space: ClassVar[bool] = True

    @override
    def draw(self, samples: TwoSamples) -> Floats:
        rows = near_rows(samples.sampled_rows)
        generator = generator_of(samples.seed, "locations")
        noise = generator.standard_normal((self.n_locations, len(rows)))
        # Σ ε_i (x_i − x̄) / √n is normal with the rows' covariance, of any rank
        mean: Floats = rows.mean(axis=0)
        return mean + noise @ (rows - mean) / float(len(rows) ** 0.5)

    @override
    def features(self, samples: TwoSamples, kernel: Kernel, locations: Floats) -> LocationFeatures:
        return KernelsAt(kernel, locations)


@TWO_SAMPLE.register
@frozen_component
class SmoothedCharacteristicFunctions(LocationStatistic):
    """SCF test: smoothed characteristic functions at a few frequencies.

    The statistic is Hotelling's T² of sines and cosines at J frequencies. The frequencies are drawn
    from the spectrum of the kernel, or learnt on a part of the data.

    The features are f(x) sin vᵀx and f(x) cos vᵀx with f(x) = exp(−‖x − x̄‖² / 2τ²). Here τ² is the
    mean of ‖x − x̄‖² over both samples.

    See Also
    --------
    two_sample_test : Compare two samples.
    MeanEmbeddings : Mean embeddings at a few locations.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import SmoothedCharacteristicFunctions, two_sample_test
    >>> statistic = SmoothedCharacteristicFunctions(n_locations=3)
    >>> result = two_sample_test(a, b, statistic=statistic, n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "scf"

    @override
    def draw(self, samples: TwoSamples) -> Floats:
        # unit frequencies, which the bandwidth scales
        return generator_of(samples.seed, "locations").standard_normal(
            (self.n_locations, samples.n_dims)
        )

    @override
    def features(self, samples: TwoSamples, kernel: Kernel, locations: Floats) -> LocationFeatures:
        rows = samples.sampled_rows
        centre = rows.mean(axis=0)
        width = float(((rows - centre) ** 2).sum(axis=1).mean()) ** 0.5
        return SmoothedWaves(locations, kernel.bandwidth, centre, width)

    kernels: ClassVar[tuple[str, ...]] = ("gaussian",)
