"""The default for two samples (`fuse_ranks`): the harmonic mean of three p-values.

MMD-FUSE divides each kernel's MMD² by the norm of the kernel. Narrow kernels then have the largest
noise. This hides smooth differences, such as a shift of the mean, but fine differences are detected
best. If MMD² is divided by its standard deviation over permutations, all kernels have the same
noise, and smooth differences are detected. A difference in one of many coordinates is lost in
distances over all coordinates, but is detected in the ranks of that coordinate. None of the three
statistics is best for all differences, so all are computed from the same permutations.

Where MMD² is divided by norms, bandwidths are in equal steps, as in MMD-FUSE, so that one of each
kernel is narrow. More narrow ones detect hardly more, but their noise hides what the first detects.
Where MMD² is divided by standard deviations, noise is equal, and bandwidths have equal ratios.

The three p-values are joined by their weighted harmonic mean (Wilson 2019). It is about as small as
the smallest of them, and smaller if several are small. A large difference in one statistic is
therefore detected, and so is a moderate difference in two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, softmax
from typing_extensions import override

from ...core import frozen_component
from ...core.arrays import Floats
from ..kernels.kernels import Kernel
from ..kernels.scales import MAX_UNITS, N_WIDTHS, Scales
from ..nulls.distributions import permutation_null
from ..registry import Measured
from ..samples.row_sources import ArrayRows
from .aggregated import scores_of_ranks, with_ties
from .comparison import TWO_SAMPLE, TwoSamples
from .fused import (
    CHOICE_ROWS,
    EXACT_UNITS,
    SHARPNESS,
    SHARPNESS_OF_SCORES,
    ManyScales,
    effect_of,
    kernel_names,
    scale_details,
    standard_scores,
    temperature_of,
)
from .marginals import MarginalDifferences
from .unit_sums import choose_rows

_RANKED_PARTS = ("kernels by norm", "kernels by deviation", "coordinates")
# Fine differences are detected by the first alone, smooth ones by the second best.
_WEIGHTS = np.array([0.4, 0.4, 0.2])


@TWO_SAMPLE.register
@frozen_component
class FuseRanks(ManyScales):
    """The default two-sample statistic: the harmonic mean of three p-values.

    The first statistic is a soft maximum of MMD², divided by the kernel's norm like in `Fuse`, over
    four bandwidths of two kernels in equal steps. The second is a soft maximum of MMD², divided by
    its standard deviation over permutations like in `HSICFuse`, over ten bandwidths of a Gaussian
    kernel in equal ratios. The third is the largest difference of a coordinate's ranks in location,
    spread, skewness or tails; it is not used for samples of bags.

    The data and all permutations are ranked by each of the three statistics, which gives three
    p-values each. The test statistic is −log of their weighted harmonic mean, with weights .4, .4
    and .2. It is in turn ranked among the permutations, which makes the test exact.

    Parameters
    ----------
    exact
        Whether exact kernels are used instead of random features. Time and memory are then
        quadratic in the number of rows. Default: True if exact kernels take at most five seconds of
        one core: up to 13,300 rows in all in two dimensions, or 4,200 rows in 512 dimensions.

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
    def choose_scales(self, samples: TwoSamples) -> Scales:
        """Return the kernels in equal steps, followed by those in equal ratios."""
        names, rows = kernel_names(samples), choose_rows(samples, CHOICE_ROWS)
        n, seed = self.n_frequencies, samples.seed
        steps = Scales.choose(names, rows, n, seed, equal_steps=True)
        ratios = Scales.choose(names[:1], rows, n, seed)
        return replace(
            steps, kernels=steps.kernels + ratios.kernels, norms=steps.norms + ratios.norms
        )

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        scales = self.choose_scales(samples)
        sums, drawn = self.draw(samples, scales)
        every = np.vstack([sums.observed(), drawn])
        temperature = SHARPNESS * temperature_of(sums.n_independent)
        details: dict[str, Any] = {}
        largest = None
        if all(isinstance(s.data, ArrayRows) for s in (samples.first, samples.second)):
            marginals = MarginalDifferences.of(samples, EXACT_UNITS if sums.is_gram else MAX_UNITS)
            largest = marginals.largest
            details["largest_of_coordinates"] = marginals.described
        ratios = scaled_differences(every, np.array(scales.norms), temperature)
        parts = weighted_scores(statistics_of(*ratios, largest))
        means = logsumexp(parts, axis=1)
        top = int(parts[0].argmax())
        both = _parts_of(scales)
        part = min(top, 1)  # of the kernels
        shown = (slice(-N_WIDTHS), slice(-N_WIDTHS, None))[part]
        weights = softmax(ratios[part][0])
        return Measured(
            statistic=float(means[0]),
            null=permutation_null(float(means[0]), means[1:]),
            effect=effect_of(every[0, shown], weights, sums.spread_within()[shown]),
            details={
                "best_of_two" if largest is None else "best_of_three": _RANKED_PARTS[top],
                **details,
                **scale_details(both[part], every[0, shown], weights),
            },
            kernel="; ".join(map(str, both)),
        )


def _parts_of(scales: Scales) -> tuple[Scales, Scales]:
    """Return the kernels in equal steps, and those in equal ratios."""
    kernels, norms, n = scales.kernels, scales.norms, -N_WIDTHS
    return (
        replace(scales, kernels=kernels[:n], norms=norms[:n]),
        replace(scales, kernels=kernels[n:], norms=norms[n:]),
    )


def scaled_differences(every: Floats, norms: Floats, temperature: float) -> tuple[Floats, Floats]:
    """Return exponents of both soft maxima: MMD² over norms, and over standard deviations.

    Parameters
    ----------
    every : shape (n, K)
        MMD² of each kernel: of the data in one row, and of one permutation in each other row. The
        last ten kernels are those in equal ratios.
    norms : shape (K,)
    temperature : float
        Sharpness of the first soft maximum.

    Returns
    -------
    shape (n, K − 10), and shape (n, 10)
    """
    steps, ratios = every[:, :-N_WIDTHS], every[:, -N_WIDTHS:]
    by_norm = temperature * steps / norms[:-N_WIDTHS]
    return by_norm, SHARPNESS_OF_SCORES * standard_scores(ratios)


def statistics_of(by_norm: Floats, by_deviation: Floats, largest: Floats | None = None) -> Floats:
    """Return the two soft maxima, and the largest differences of coordinates if given.

    Parameters
    ----------
    by_norm, by_deviation : shapes (n, k)
        See `scaled_differences`.
    largest : shape (n,), optional
        See `MarginalDifferences`.

    Returns
    -------
    shape (n, 2) or (n, 3)
    """
    maxima = [logsumexp(exponents, axis=1) for exponents in (by_norm, by_deviation)]
    return np.column_stack(maxima if largest is None else [*maxima, largest])


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
    scores: Floats = scores_of_ranks(with_ties(table)) + np.log(weights / weights.sum())
    return scores
