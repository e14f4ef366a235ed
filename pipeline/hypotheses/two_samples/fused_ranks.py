"""The default for two samples (`fuse_ranks`): the best rank of three statistics.

MMD-FUSE divides each kernel's MMD² by the norm of the kernel. Narrow kernels then have the largest
noise. This hides smooth differences, such as a shift of the mean, but fine differences are detected
best. If MMD² is divided by its standard deviation over permutations, all kernels have the same
noise, and smooth differences are detected. A difference in one of many coordinates is lost in
distances over all coordinates, but is detected in the ranks of that coordinate. None of the three
statistics is best for all differences, so all are computed from the same permutations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from typing_extensions import override

from ..kernels.kernels import Kernel
from ..kernels.scales import MAX_UNITS
from ..registry import Measured
from ..samples.row_sources import ArrayRows
from .aggregated import aggregate
from .comparison import TWO_SAMPLE, TwoSamples
from .fused import (
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
# Half of the level is for the first, whose differences no other part detects: waves of the plane.
_WEIGHTS = (0.5, 0.25, 0.25)


@TWO_SAMPLE.register
@dataclass(frozen=True)
class FuseRanks(ManyScales):
    """The default two-sample statistic: the best rank of three statistics.

    Two of the statistics are soft maxima of MMD² over ten bandwidths of two kernels. The first
    divides each MMD² by the kernel's norm, like `Fuse`. The second divides it by its standard
    deviation over permutations, like `HSICFuse`. The third statistic is the largest difference of a
    coordinate's ranks in location, spread, skewness or tails; it is not used for samples of bags.

    The data and all permutations are ranked by each of the three statistics. The test statistic is
    −log of the p-value of the best rank; ranks of the first statistic count half as much. It is in
    turn ranked among the permutations, which makes the test exact.

    Parameters
    ----------
    n_frequencies : int from 1 to 4,096, default 128
        Number of random frequencies per bandwidth, each with a sine and a cosine.
    exact : bool, optional
        Whether exact kernels are used instead of random features. Time and memory are then
        quadratic in the number of rows. Default: True if exact kernels take at most five seconds of
        one core: up to 12,700 rows in all in two dimensions, or 4,200 rows in 512 dimensions.

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

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        scales = self.choose_scales(samples)
        sums, drawn = self.draw(samples, scales)
        values, norms = sums.observed(), np.array(scales.norms)
        every = np.vstack([values, drawn])
        temperature = SHARPNESS * temperature_of(sums.n_independent)
        scores = standard_scores(every)
        joined = [
            fused(every, norms, temperature),
            fused(scores, np.ones(len(norms)), SHARPNESS_OF_SCORES),
        ]
        details: dict[str, Any] = {}
        if all(isinstance(s.data, ArrayRows) for s in (samples.first, samples.second)):
            marginals = MarginalDifferences.of(samples, EXACT_UNITS if sums.is_gram else MAX_UNITS)
            joined.append(marginals.largest)
            details["largest_of_coordinates"] = marginals.described
        table = np.column_stack(joined)
        best = aggregate(table[0], table[1:], samples.null, _WEIGHTS[: len(joined)])
        by_norm = softmax(temperature * values / norms)
        weights = by_norm if best.top == 0 else softmax(SHARPNESS_OF_SCORES * scores[0])
        return Measured(
            statistic=best.statistic,
            null=best.null,
            effect=effect_of(values, weights, sums.spread_within()),
            details={
                "best_of_three" if len(joined) == 3 else "best_of_two": _RANKED_PARTS[best.top],
                **details,
                **scale_details(scales, values, weights),
            },
            kernel=str(scales),
        )
