"""The default for two samples, `fuse_ranks`: the best rank of three statistics of one permutation.

MMD-FUSE divides each kernel's MMD² by the norm of the kernel. Narrow kernels then have the largest
noise, which hides a smooth difference, as one of means; but fine differences are seen best. Divided
by its standard deviation over permutations, each kernel has the same noise, and smooth differences
are seen. A difference in one coordinate of many is lost in distances of all coordinates, and is
seen in the ranks of that coordinate. None of the three is best for all, and so all are computed of
the same permutations.
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

PARTS = ("kernels by norm", "kernels by deviation", "coordinates")
# Half of the level is for the first, whose differences no other part detects: waves of the plane.
WEIGHTS = (0.5, 0.25, 0.25)


@TWO_SAMPLE.register
@dataclass(frozen=True)
class FuseRanks(ManyScales):
    """The default two-sample statistic: the best rank of three statistics.

    The three statistics are two fused MMD² of ten widths of two kernels, and one of ranks of
    coordinates.

    MMD² of each width is divided by the kernel's norm, as by `Fuse`, and by its standard deviation
    over permutations, as by `HSICFuse`; each is joined over widths by a soft maximum. The third
    statistic is the largest difference of a coordinate's ranks in location, spread, skewness or
    tails; samples of bags do not have it. The data and every permutation have a rank among all by
    each of the three, and the statistic is the best rank, as −log of its p-value; ranks of the
    first count half as much. Its own rank among permutations makes the test exact.

    Parameters
    ----------
    n_frequencies : int from 1 to 4,096, default 128
        R, per width; a sine and a cosine each.
    exact : bool, optional
        Whether exact kernels are used instead of random features, in time and memory quadratic in
        rows. Default: if that takes at most five seconds of a core: up to 12,700 rows of two
        numbers in all, 4,200 of 512.

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
        best = aggregate(table[0], table[1:], samples.null, WEIGHTS[: len(joined)])
        by_norm = softmax(temperature * values / norms)
        weights = by_norm if best.top == 0 else softmax(SHARPNESS_OF_SCORES * scores[0])
        return Measured(
            statistic=best.statistic,
            null=best.null,
            effect=effect_of(values, weights, sums.spread_within()),
            details={
                "best_of_three" if len(joined) == 3 else "best_of_two": PARTS[best.top],
                **details,
                **scale_details(scales, values, weights),
            },
            kernel=str(scales),
        )
