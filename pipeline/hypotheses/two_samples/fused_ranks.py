"""The default for two samples (`fuse_ranks`): the harmonic mean of three p-values.

MMD-FUSE divides each kernel's MMD² by the norm of the kernel. Narrow kernels then have the largest
noise. This hides smooth differences, such as a shift of the mean, but fine differences are detected
best. If MMD² is divided by its standard deviation over permutations, all kernels have the same
noise, and smooth differences are detected. A difference in one of many coordinates is lost in
distances over all coordinates, but is detected in the ranks of that coordinate. None of the three
statistics is best for all differences, so all are computed from the same permutations.

Five bandwidths of a Gaussian kernel are in equal steps, so that only one of them is narrow. Several
narrow kernels detect hardly more than one, but the noise of each hides what the others detect.

The three p-values are joined by their weighted harmonic mean (Wilson 2019). It is about as small as
the smallest of them, and smaller if several are small. A large difference in one statistic is
therefore detected, and so is a moderate difference in two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, softmax
from typing_extensions import override

from ...core.arrays import Floats
from ..kernels.kernels import Kernel
from ..kernels.scales import MAX_UNITS
from ..nulls.distributions import permutation_null
from ..registry import Measured
from ..samples.row_sources import ArrayRows
from .aggregated import scores_of_ranks
from .comparison import TWO_SAMPLE, TwoSamples
from .fused import (
    BOTH,
    EXACT_UNITS,
    SHARPNESS,
    SHARPNESS_OF_SCORES,
    ManyScales,
    effect_of,
    fused,
    scale_details,
    standard_scores,
    temperature_of,
)
from .marginals import MarginalDifferences

_RANKED_PARTS = ("kernels by norm", "kernels by deviation", "coordinates")
# Most weight is for the first, whose differences no other part detects: waves in the plane.
_WEIGHTS = np.array([0.45, 0.35, 0.2])


@TWO_SAMPLE.register
@dataclass(frozen=True)
class FuseRanks(ManyScales):
    """The default two-sample statistic: the harmonic mean of three p-values.

    Two of the statistics are soft maxima of MMD² over five bandwidths of a Gaussian kernel. The
    first divides each MMD² by the kernel's norm, like `Fuse`. The second divides it by its standard
    deviation over permutations, like `HSICFuse`. The third statistic is the largest difference of a
    coordinate's ranks in location, spread, skewness or tails; it is not used for samples of bags.

    The data and all permutations are ranked by each of the three statistics, which gives three
    p-values each. The test statistic is −log of their weighted harmonic mean, with weights .45, .35
    and .2. It is in turn ranked among the permutations, which makes the test exact.

    Parameters
    ----------
    n_frequencies : int from 1 to 4,096, default 128
        Number of random frequencies per bandwidth, each with a sine and a cosine.
    exact : bool, optional
        Whether exact kernels are used instead of random features. Time and memory are then
        quadratic in the number of rows. Default: True if exact kernels take at most five seconds of
        one core: up to 25,000 rows in all in two dimensions, or 6,000 rows in 512 dimensions.

    See Also
    --------
    two_sample_test : Compare two samples.
    Fuse : Several widths, fused into one statistic.
    Aggregate : Several widths, corrected for multiplicity.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import FuseRanks, two_sample_test
    >>> result = two_sample_test(a, b, statistic=FuseRanks(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "fuse_ranks"
    nulls: ClassVar[tuple[str, ...]] = ("permutation",)
    group_nulls: ClassVar[tuple[str, ...]] = nulls
    kernels: ClassVar[tuple[str, ...]] = ("gaussian", BOTH, "laplacian", "matern")
    equal_steps: ClassVar[bool] = True

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        scales = self.choose_scales(samples)
        sums, drawn = self.draw(samples, scales)
        values, norms = sums.observed(), np.array(scales.norms)
        every = np.vstack([values, drawn])
        temperature = SHARPNESS * temperature_of(sums.n_independent)
        details: dict[str, Any] = {}
        largest = None
        if all(isinstance(s.data, ArrayRows) for s in (samples.first, samples.second)):
            marginals = MarginalDifferences.of(samples, EXACT_UNITS if sums.is_gram else MAX_UNITS)
            largest = marginals.largest
            details["largest_of_coordinates"] = marginals.described
        parts = weighted_scores(statistics_of(every, norms, temperature, largest))
        means = logsumexp(parts, axis=1)
        top = int(parts[0].argmax())
        by_norm = softmax(temperature * values / norms)
        by_deviation = softmax(SHARPNESS_OF_SCORES * standard_scores(every)[0])
        weights = by_norm if top == 0 else by_deviation
        return Measured(
            statistic=float(means[0]),
            null=permutation_null(float(means[0]), means[1:]),
            effect=effect_of(values, weights, sums.spread_within()),
            details={
                "best_of_two" if largest is None else "best_of_three": _RANKED_PARTS[top],
                **details,
                **scale_details(scales, values, weights),
            },
            kernel=str(scales),
        )


def statistics_of(
    every: Floats, norms: Floats, temperature: float, largest: Floats | None = None
) -> Floats:
    """Return the two fused statistics, and the largest differences of coordinates if given.

    Parameters
    ----------
    every : shape (n, K)
        MMD² of each kernel: of the data in one row, and of one permutation in each other row.
    norms : shape (K,)
    temperature : float
        See `fused`.
    largest : shape (n,), optional
        See `MarginalDifferences`.

    Returns
    -------
    shape (n, 2) or (n, 3)
    """
    by_norm = fused(every, norms, temperature)
    by_deviation = fused(standard_scores(every), np.ones(len(norms)), SHARPNESS_OF_SCORES)
    others = [] if largest is None else [largest]
    return np.column_stack([by_norm, by_deviation, *others])


def weighted_scores(table: Floats) -> Floats:
    """Return log(weight / p), p being the p-value of each value among the values of its column.

    The logarithm of the sum of a row's exponentials is −log of the weighted harmonic mean of its
    p-values. It depends on the row and on the set of all rows, but not on their order. If the rows
    are exchangeable, the test is therefore exact.

    Parameters
    ----------
    table : shape (n, 2) or (n, 3)
        See `statistics_of`.

    Returns
    -------
    shape (n, 2) or (n, 3)
    """
    weights = _WEIGHTS[: table.shape[1]]
    return scores_of_ranks(table) + np.log(weights / weights.sum())
