"""MMDAgg in linear time (`agg`): tests with many bandwidths, corrected for multiplicity.

Each kernel has its own p-value among the permutations. The smallest p-value is compared with the
smallest p-value of each permutation (Schrab et al. 2023, Algorithm 1, with uniform weights). One
set of permutations is used instead of two; all permutations are exchangeable, so that the level is
exact. A kernel rejects if its own p-value is significant in this comparison. Without a difference,
the probability that any kernel rejects is at most α.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from typing_extensions import override

from ...core import frozen_component
from ...core.arrays import Floats
from ..kernels.kernels import Kernel
from ..nulls.distributions import Null, permutation_null
from ..nulls.permutation import TIE_TOLERANCE
from ..registry import Measured
from ..result import LEVEL
from .comparison import TWO_SAMPLE, TwoSamples
from .fused import MIN_FEATURE_SPREAD, ManyScales


@TWO_SAMPLE.register
@frozen_component
class Aggregate(ManyScales):
    """MMDAgg: tests at ten bandwidths of two kernels, corrected for multiplicity.

    The result names the bandwidths at which MMD² rejects. `Fuse` gives one statistic instead.

    See Also
    --------
    two_sample_test : Compare two samples.
    Fuse : Several widths, fused into one statistic.
    FuseRanks : Default: fused kernels and ranks.
    bagbasis.plotting.plot_scales : Plot the contribution of each bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import Aggregate, two_sample_test
    >>> result = two_sample_test(a, b, statistic=Aggregate(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "agg"

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        scales = self.choose_scales(samples)
        sums, drawn = self.draw(samples, scales)
        values = sums.observed()
        aggregated = aggregate(values, drawn, samples.null, size=1.0)
        within = sums.spread_within()
        top = aggregated.top
        effect = values[top] / within[top] if within[top] > MIN_FEATURE_SPREAD else float("nan")
        names = [k.name for k in scales.kernels]
        widths = [k.bandwidth for k in scales.kernels]
        return Measured(
            statistic=aggregated.statistic,
            null=aggregated.null,
            effect=float(effect),
            details={
                **aggregated.counted([f"{n}, bandwidth {w:.4g}" for n, w in zip(names, widths,
                                                                             strict=True)]),
                "scales": {"kernel": names, "bandwidth": widths, "mmd2": values.tolist(),
                           **aggregated.columns()},
            },
            kernel=str(scales),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Aggregated:
    """Result of an aggregated test over K kernels.

    Attributes
    ----------
    statistic : float
        −log of the smallest p-value of a kernel, interpolated between adjacent ranks.
    null : Null
        Null distribution of the statistic.
    p_values : shape (K,)
        p-value of each kernel alone.
    corrected : shape (K,)
        p-value of each kernel, corrected for the number of kernels.
    scores : shape (1 + n_permutations,)
        Statistic of the data, followed by the statistic of each draw in its order.
    """

    statistic: float
    null: Null
    p_values: Floats
    corrected: Floats
    scores: Floats

    @property
    def top(self) -> int:
        """Index of the kernel with the largest difference."""
        return int(np.lexsort((self.p_values, self.corrected))[0])

    def columns(self) -> dict[str, list[Any]]:
        """Return the p-values per kernel, for a report."""
        return {"p_value": self.p_values.tolist(), "corrected": self.corrected.tolist()}

    def counted(self, names: list[str]) -> dict[str, Any]:
        """Return the number of kernels that reject and the strongest one, for a report."""
        n = int((self.corrected <= LEVEL).sum())
        most = names[self.top]
        return {
            "scales_that_reject": f"{n} of {len(names)} at {LEVEL:g}",
            "least_p_value": f"{most}: {self.corrected[self.top]:.3g}, corrected",
        }


def aggregate(
    values: Floats, drawn: Floats, null_name: str = "permutation", size: ArrayLike = 0.0
) -> Aggregated:
    """Combine the tests of several kernels into one test.

    Parameters
    ----------
    values : shape (K,)
        Statistic of each kernel.
    drawn : shape (n_permutations, K)
        Statistics of each draw from the null distribution.
    size : float or shape (K,)
        See `with_ties`.
    """
    pool = with_ties(np.vstack([values, drawn]), size)
    scores = scores_of_ranks(pool)
    best = scores.max(axis=1)
    null = replace(permutation_null(float(best[0]), best[1:], 1.0), name=null_name)
    ranked = np.sort(best[1:])
    reach = len(ranked) - np.searchsorted(ranked, scores[0] - 1e-12, side="left")
    # equal values get the largest rank, so that p-values are never too small
    ranks = rankdata(-pool, method="max", axis=0)[0]
    corrected = (1 + reach) / (1 + len(ranked))
    return Aggregated(float(best[0]), null, ranks / len(pool), corrected, best)


def scores_of_ranks(pool: Floats) -> Floats:
    """Return −log of the p-value of each value among the values of its column.

    With few permutations, many kernels share the smallest p-value. A score is therefore
    interpolated between the scores of its rank and of the next rank, by the distance of the value
    from the other values in standard deviations.

    Parameters
    ----------
    pool : shape (n, K)
        Statistics of the data in one row, and of one draw in each other row, `with_ties`.

    Returns
    -------
    shape (n, K)
    """
    ranks = rankdata(-pool, method="max", axis=0)
    spread = pool.std(axis=0)
    far = np.maximum((pool - pool.mean(axis=0)) / np.where(spread > 0, spread, 1.0), 0.0)
    step = np.log1p(1 / ranks)
    scores: Floats = np.log(len(pool) / ranks) - step / (1 + far)
    return scores


def with_ties(pool: Floats, size: ArrayLike = 0.0) -> Floats:
    """Return the values, with those that differ by rounding alone made equal within each column.

    Parameters
    ----------
    pool : shape (n, K)
    size : float or shape (K,)
        Size of the sums from which a column is computed, such as the kernel's largest value. If all
        splits are equal, a column has nothing but their rounding, and its own size is no measure.

    Returns
    -------
    shape (n, K)
    """
    least = TIE_TOLERANCE * np.maximum(10 * np.abs(pool).max(axis=0), size)
    order = np.argsort(pool, axis=0, kind="stable")
    ranked = np.take_along_axis(pool, order, axis=0)
    starts = np.diff(ranked, axis=0, prepend=-np.inf) > least
    first = np.maximum.accumulate(np.where(starts, np.arange(len(pool))[:, None], 0), axis=0)
    equal = np.empty_like(ranked)
    np.put_along_axis(equal, order, np.take_along_axis(ranked, first, axis=0), axis=0)
    return equal
