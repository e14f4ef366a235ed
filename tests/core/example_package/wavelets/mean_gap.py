"""A statistic of two samples: the squared distance of their means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from bagbasis.core import Real
from bagbasis.hypotheses import TWO_SAMPLE
from bagbasis.hypotheses.nulls.distributions import permutation_null
from bagbasis.hypotheses.nulls.permutation import draw_splits
from bagbasis.hypotheses.registry import Measured
from bagbasis.hypotheses.two_samples.comparison import TwoSampleStatistic


@TWO_SAMPLE.register
@dataclass(frozen=True)
class MeanGap(TwoSampleStatistic):
    """The squared distance of means, to a power."""

    name: ClassVar[str] = "mean_gap"
    nulls: ClassVar[tuple[str, ...]] = ("permutation",)
    kernels: ClassVar[tuple[str, ...]] = ()
    power: Annotated[float, Real(gt=0, le=4)] = 1.0

    def measure(self, samples: Any, kernel: object) -> Measured:
        """Return the statistic and its permutations."""
        splits = draw_splits(samples.is_first_unit, samples.n_permutations, samples.seed)
        values = np.array([self.gap(samples.rows, s) for s in splits[:, samples.units]])
        return Measured(
            statistic=float(values[0]), null=permutation_null(float(values[0]), values[1:], 1.0)
        )

    def gap(self, rows: Any, is_first: Any) -> float:
        """Return the statistic of one split."""
        difference = rows[is_first].mean(axis=0) - rows[~is_first].mean(axis=0)
        return float((difference**2).sum() ** self.power)
