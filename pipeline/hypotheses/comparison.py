"""`TwoSamples`, what two-sample statistics are computed of, and the base of these statistics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .kernels import Kernel
from .registry import Measured, Statistic
from .samples import Sample

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Two samples of one dimension, one under the other, and how they are to be compared."""

    first: Sample
    second: Sample
    null: str
    n_permutations: int
    seed: int

    @cached_property
    def rows(self) -> Floats:
        """The rows of both samples, shape (m + n, d)."""
        return np.concatenate([self.first.rows, self.second.rows])

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """The unit of each row, shape (m + n,); those of the second sample come last."""
        return np.concatenate([self.first.units, self.first.n_units + self.second.units])

    @property
    def unit_sizes(self) -> NDArray[np.int64]:
        """Rows of each unit, shape (n_units,)."""
        return np.concatenate([self.first.unit_sizes, self.second.unit_sizes])

    @property
    def is_first_unit(self) -> NDArray[np.bool_]:
        """Which units are of the first sample, shape (n_units,)."""
        return np.arange(self.first.n_units + self.second.n_units) < self.first.n_units

    def feature_sums(self, features: Callable[[Floats], Floats]) -> Floats:
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

    def standard_error(self, witness: Floats, null: Floats) -> float:
        """Return that of an MMD².

        Its variance is four times that of the witness function's means, which a difference
        brings, and the variance of the null. What is seen of the first is too large by twice the
        second on average, and varies: so the sum is taken for at least a quarter of the second.

        Parameters
        ----------
        witness : shape (n_units,)
            Sums over each unit's rows of f(x) = mean k(x, first) − mean k(x, second).
        null : shape (n,)
            Values of the statistic without a difference.
        """
        first, second = self.residuals(witness[:, None])
        linear = 4 * float((first**2).sum() + (second**2).sum())
        chance = float(null.var())
        return max(linear - chance, chance / 4) ** 0.5


@dataclass(frozen=True)
class TwoSampleStatistic(Statistic):
    """Base of the statistics of two samples."""

    @abstractmethod
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        """Return the statistic and its null, that of ``samples.null``.

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
