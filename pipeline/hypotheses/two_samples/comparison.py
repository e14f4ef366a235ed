"""`TwoSamples`, what two-sample statistics are computed of, and the base of these statistics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core import ComponentRegistry
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

MAX_BUCKETS = 4096  # units whose sums are kept: 512 features of each are 16 MiB
MIN_BUCKETS = 16  # units of a sample next to a very large one
# Fraction of the variance about a mean: few draws of few units would leave less, even none.
MIN_VARIANCE_LEFT = 0.5


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Two samples of one dimension, one under the other, and how they are to be compared.

    Attributes
    ----------
    correlation_length : float
        Correlation length for the wild bootstrap, in units.
    kernel : str
        The kernel that is asked for, or kernels, of a statistic that chooses their widths.
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
        """Numbers in a row."""
        return self.first.data.n_dims

    @cached_property
    def sampled(self) -> dict[str, Floats]:
        """Evenly spread rows of each sample, up to 1,024 (about as many bags)."""
        return {s.name: s.data.some(MEDIAN_ROWS) for s in (self.first, self.second)}

    @property
    def sampled_rows(self) -> Floats:
        """Those of both samples."""
        return np.concatenate([*self.sampled.values()])

    @property
    def n(self) -> dict[str, int]:
        """Rows of each sample."""
        return {sample.name: len(sample) for sample in (self.first, self.second)}

    def split(self, share: float) -> tuple[TwoSamples, TwoSamples]:
        """Return a random fraction of the units of both samples, to learn on, and the others."""
        parts = [
            [sample.of_rows(rows) for rows in split_units(sample.units, share, self.seed)]
            for sample in (self.first, self.second)
        ]
        learning, tested = (replace(self, first=a, second=b) for a, b in zip(*parts, strict=True))
        return learning, tested

    def wild_weights(self) -> Floats:
        """Return weights of the units, shape (n_permutations, n_units), for sums over their rows.

        Each row's weights make of them a difference of means that is about 0, and varies as that
        of two series of one distribution (Chwialkowski, Sejdinovic and Gretton 2014), and as much
        more as an estimated variance makes it.
        """
        weights, degrees = self.wild_waves()
        return weights * wild_factors(self.n_permutations, degrees, self.spread_seed)[:, None]

    @property
    def spread_seed(self) -> int:
        """Seed of the draws that spread a null as an estimated variance does."""
        return self.seed + 2

    def wild_waves(self) -> tuple[Floats, float]:
        """Return these weights before an estimated variance spreads them, and its degrees.

        Shape (n_permutations, n_units). For a sample of n rows they are waves about their mean over
        n, times what makes up for the variance that the mean takes.
        """
        shape = self.n_permutations, self.first.n_units + self.second.n_units
        check_memory(f"{self.n_permutations:,} draws", 64 * shape[0] * shape[1], "take fewer")
        parts, variances, degrees = [], [], []
        for sample, sign, seed in ((self.first, 1, 0), (self.second, -1, 1)):
            length = self.correlation_length / max(1, sample.bucket_length)
            waves = wild_waves(sample.n_units, self.n_permutations, length, self.seed + seed)
            means = waves @ sample.unit_sizes / len(sample)
            # what the mean takes from the variance, as n − 1 for n does of independent units
            least = MIN_VARIANCE_LEFT * centred_variance(sample.unit_sizes, length)
            remaining = max(1 - float((means**2).mean()), least)
            parts.append(sign * (waves - means[:, None]) / (len(sample) * remaining**0.5))
            variances.append(1 / len(sample))
            degrees.append(wild_degrees(sample.n_units, length))
        # of both samples as of one (Welch and Satterthwaite)
        joint = sum(variances) ** 2 / sum(v**2 / n for v, n in zip(variances, degrees, strict=True))
        return np.hstack(parts), joint

    def in_buckets(self, most: int = MAX_BUCKETS) -> TwoSamples:
        """Return the samples with neighbours joined to units where these are very many.

        Then sums over units fit in memory, whatever the number of rows, and permutations of
        buckets of one length are as good as those of rows.
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
        """Return what each unit adds to the error of its sample's mean, shapes (n_units, k).

        The products of these residuals, summed, estimate the covariance of the mean over new
        units, of unequal sizes, too.

        Parameters
        ----------
        sums : shape (n_units, k)
            Over the rows of each unit.
        """
        m = self.first.n_units
        sizes = self.unit_sizes
        return _residuals(sums[:m], sizes[:m]), _residuals(sums[m:], sizes[m:])

    def standard_error(self, witness: Floats, chance: float) -> float:
        """Return the standard error of an MMD²; NaN for series, whose units depend on each other.

        Its variance is four times that of the witness function's means, which a difference
        brings, and the variance of the null. What is seen of the first is too large by twice the
        second on average, and varies: so the sum is taken for at least a quarter of the second.

        Parameters
        ----------
        witness : shape (n_units,)
            Sums over each unit's rows of f(x) = mean k(x, first) − mean k(x, second).
        chance : float
            The variance of the statistic without a difference.
        """
        if self.null == WILD:
            return float("nan")
        first, second = self.residuals(witness[:, None])
        linear = 4 * float((first**2).sum() + (second**2).sum())
        return max(linear - chance, chance / 4) ** 0.5


@dataclass(frozen=True)
class TwoSampleStatistic(Statistic):
    """Base of the statistics of two samples.

    Attributes
    ----------
    is_additive : bool
        Whether sums of `TwoSamples.feature_sums` are all that it needs, so that rows need not be
        in memory.
    has_widths : bool
        Whether it chooses the widths of its kernels, those of `TwoSamples.kernel`.
    """

    is_additive: ClassVar[bool] = False
    has_widths: ClassVar[bool] = False

    def learn_on(
        self, samples: TwoSamples, kernel: Kernel | None
    ) -> tuple[TwoSampleStatistic, Kernel | None, TwoSamples, dict[str, Any]]:
        """Return the statistic and its kernel as learnt on a part of the samples.

        And what is left to be tested, and how it was learnt, for the report. Here nothing is.
        """
        return self, kernel, samples, {}

    @abstractmethod
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        """Return the statistic and its null distribution, of the kind ``samples.null``.

        Parameters
        ----------
        kernel : Kernel or None
            None for a statistic without one.
        """


def require_rows(samples: TwoSamples, least: int, what: str) -> None:
    """Raise DataError unless both samples have so many rows."""
    for sample in (samples.first, samples.second):
        if len(sample) < least:
            raise DataError(f"{sample.name} has {len(sample)} {sample.unit}s; {what} needs {least}")


def _residuals(sums: Floats, sizes: NDArray[np.int64]) -> Floats:
    n_units = len(sizes)
    centred = sums - sizes[:, None] * (sums.sum(axis=0) / sizes.sum())
    # n_units / (n_units − 1) for the mean that was taken off
    return centred / sizes.sum() * (n_units / (n_units - 1)) ** 0.5


TWO_SAMPLE: ComponentRegistry[TwoSampleStatistic] = ComponentRegistry(
    "two-sample statistic", "bagbasis.two_sample_statistics", __package__
)
"""The statistics of two samples by name."""
