"""`TwoSamples`, the input of two-sample statistics, and the base class of these statistics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core import ComponentRegistry, frozen_component
from ...core.arrays import Floats
from ...core.errors import DataError
from ...data.store.sampling import MEDIAN_ROWS
from ...execution.passes import check_memory
from ..kernels.features import RowFeatures
from ..kernels.kernels import Kernel
from ..nulls.wild_bootstrap import (
    WILD,
    centred_variance,
    wild_degrees,
    wild_factors,
    wild_waves,
)
from ..registry import Measured, Statistic
from ..samples.held_out import split_units
from ..samples.samples import Sample

MAX_BUCKETS = 4096  # units whose sums are kept: 512 features per unit take 16 MiB
MIN_BUCKETS = 16  # units of a sample that is compared with a very large one
# Fraction of the variance about a mean: a few draws of few units would leave less, or nothing.
MIN_VARIANCE_LEFT = 0.5


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Two samples of equal dimension, stacked, with the settings of their comparison.

    Attributes
    ----------
    correlation_length : float
        Correlation length for the wild bootstrap, in units.
    kernel : str
        Requested kernel or kernels, for a statistic that chooses its bandwidths.
    """

    first: Sample
    second: Sample
    null: str
    n_permutations: int
    seed: int
    correlation_length: float = 0.0
    kernel: str = ""

    @cached_property
    def rows(self) -> Floats:
        """The rows of both samples, shape (m + n, d)."""
        return np.concatenate([self.first.rows, self.second.rows])

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """The unit of each row, shape (m + n,); units of the second sample come last."""
        return np.concatenate([self.first.units, self.first.n_units + self.second.units])

    @property
    def unit_sizes(self) -> NDArray[np.int64]:
        """Rows of each unit, shape (n_units,)."""
        return np.concatenate([self.first.unit_sizes, self.second.unit_sizes])

    @property
    def is_first_unit(self) -> NDArray[np.bool_]:
        """Which units are of the first sample, shape (n_units,)."""
        return np.arange(self.first.n_units + self.second.n_units) < self.first.n_units

    @property
    def n_dims(self) -> int:
        """Number of values in a row."""
        return self.first.data.n_dims

    @cached_property
    def sampled(self) -> dict[str, Floats]:
        """Evenly spread rows of each sample, up to 1,024 (about as many bags)."""
        return {s.name: s.data.some(MEDIAN_ROWS) for s in (self.first, self.second)}

    @property
    def sampled_rows(self) -> Floats:
        """The sampled rows of both samples, stacked."""
        return np.concatenate([*self.sampled.values()])

    @property
    def n(self) -> dict[str, int]:
        """Rows of each sample."""
        return {sample.name: len(sample) for sample in (self.first, self.second)}

    def split(self, share: float) -> tuple[TwoSamples, TwoSamples]:
        """Split the units of both samples at random: a fraction to learn on, and the rest."""
        parts = [
            [sample.of_rows(rows) for rows in split_units(sample.units, share, self.seed)]
            for sample in (self.first, self.second)
        ]
        learning, tested = (replace(self, first=a, second=b) for a, b in zip(*parts, strict=True))
        return learning, tested

    def wild_weights(self) -> Floats:
        """Return weights of the units, shape (n_permutations, n_units), for sums over their rows.

        Each draw of weights turns the sums into a difference of means that is about 0. It varies
        like the difference of two series from one distribution (Chwialkowski, Sejdinovic and
        Gretton 2014). The variance is inflated because it is estimated from few units.
        """
        weights, degrees = self.wild_waves()
        return weights * wild_factors(self.n_permutations, degrees, self.spread_seed)[:, None]

    @property
    def spread_seed(self) -> int:
        """Seed of the draws that widen a null distribution for an estimated variance."""
        return self.seed + 2

    def wild_waves(self) -> tuple[Floats, float]:
        """Return the weights before widening, and the degrees of freedom of the variance.

        Shape (n_permutations, n_units). For a sample of n rows, the weights are centred waves
        divided by n. A factor makes up for the variance that centring removes.
        """
        shape = self.n_permutations, self.first.n_units + self.second.n_units
        check_memory(f"{self.n_permutations:,} draws", 64 * shape[0] * shape[1], "take fewer")
        parts, variances, degrees = [], [], []
        for sample, sign, seed in ((self.first, 1, 0), (self.second, -1, 1)):
            length = self.correlation_length / max(1, sample.bucket_length)
            waves = wild_waves(sample.n_units, self.n_permutations, length, self.seed + seed)
            means = waves @ sample.unit_sizes / len(sample)
            # centring lowers the variance, as the factor (n − 1) / n does for independent units
            least = MIN_VARIANCE_LEFT * centred_variance(sample.unit_sizes, length)
            remaining = max(1 - float((means**2).mean()), least)
            parts.append(sign * (waves - means[:, None]) / (len(sample) * remaining**0.5))
            variances.append(1 / len(sample))
            degrees.append(wild_degrees(sample.n_units, length))
        # of both samples as of one (Welch and Satterthwaite)
        joint = sum(variances) ** 2 / sum(v**2 / n for v, n in zip(variances, degrees, strict=True))
        return np.hstack(parts), joint

    def in_buckets(self, most: int = MAX_BUCKETS) -> TwoSamples:
        """Return the samples with neighbouring units merged if there are very many units.

        The sums over units then fit in memory, whatever the number of rows. Permutations of buckets
        of equal length are as good as permutations of rows.
        """
        n_rows = len(self.first) + len(self.second)
        few = min(len(self.first), len(self.second)) // MIN_BUCKETS
        length = max(1, min(-(-n_rows // most), few))
        return replace(
            self, first=self.first.in_buckets(length), second=self.second.in_buckets(length)
        )

    def feature_sums(self, features: RowFeatures) -> Floats:
        """Return the sums of a function of the rows over each unit, shape (n_units, k)."""
        return np.concatenate([s.feature_sums(features) for s in (self.first, self.second)])

    def residuals(self, sums: Floats) -> tuple[Floats, Floats]:
        """Return each unit's contribution to the error of its sample's mean, shapes (n_units, k).

        The summed products of these residuals estimate the covariance of the mean over new units,
        also if the units have unequal sizes.

        Parameters
        ----------
        sums : shape (n_units, k)
            Sums of features over the rows of each unit.
        """
        m = self.first.n_units
        sizes = self.unit_sizes
        return _residuals(sums[:m], sizes[:m]), _residuals(sums[m:], sizes[m:])

    def standard_error(self, witness: Floats, chance: float) -> float:
        """Return the standard error of an MMD²; NaN for series, whose units depend on each other.

        The variance of MMD² has two parts: four times the variance of the witness function's means,
        and the variance under the null hypothesis. The estimate of the first part is too large by
        twice the second on average, and it is noisy. The corrected sum is therefore bounded from
        below by a quarter of the second part.

        Parameters
        ----------
        witness : shape (n_units,)
            Sums over each unit's rows of f(x) = mean k(x, first) − mean k(x, second).
        chance : float
            Variance of the statistic under the null hypothesis.
        """
        if self.null == WILD:
            return float("nan")
        first, second = self.residuals(witness[:, None])
        linear = 4 * float((first**2).sum() + (second**2).sum())
        return float(max(linear - chance, chance / 4) ** 0.5)


@frozen_component
class TwoSampleStatistic(Statistic):
    """Base of the two-sample statistics.

    Attributes
    ----------
    is_additive : bool
        Whether the statistic needs only `TwoSamples.feature_sums`, so that rows need not be in
        memory.
    has_widths : bool
        Whether the statistic chooses the bandwidths of its kernels, `TwoSamples.kernel`.
    """

    is_additive: ClassVar[bool] = False
    has_widths: ClassVar[bool] = False

    def learn_on(
        self, samples: TwoSamples, kernel: Kernel | None
    ) -> tuple[TwoSampleStatistic, Kernel | None, TwoSamples, dict[str, Any]]:
        """Learn parameters on a part of the samples; here nothing is learnt.

        Returns the statistic and its kernel, the samples that are left for the test, and a
        description of the learning for the report.
        """
        return self, kernel, samples, {}

    @abstractmethod
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        """Return the statistic and its null distribution by the method ``samples.null``.

        Parameters
        ----------
        kernel : Kernel or None
            Kernel of the statistic; None for a statistic without a kernel.
        """


def require_rows(samples: TwoSamples, least: int, what: str) -> None:
    """Raise DataError unless both samples have at least ``least`` rows."""
    for sample in (samples.first, samples.second):
        if len(sample) < least:
            raise DataError(f"{sample.name} has {len(sample)} {sample.unit}s; {what} needs {least}")


def _residuals(sums: Floats, sizes: NDArray[np.int64]) -> Floats:
    n_units = len(sizes)
    centred = sums - sizes[:, None] * (sums.sum(axis=0) / sizes.sum())
    # the factor n_units / (n_units − 1) corrects for the subtracted mean
    residuals: Floats = centred / sizes.sum() * (n_units / (n_units - 1)) ** 0.5
    return residuals


TWO_SAMPLE: ComponentRegistry[TwoSampleStatistic] = ComponentRegistry(
    "two-sample statistic", "bagbasis.two_sample_statistics", __package__
)
"""The statistics of two samples by name."""
