"""MMD-FUSE in linear time (`fuse`): kernels with many bandwidths fused into one statistic.

Each kernel's MMD_u² is divided by the root mean square of the kernel. The ratios r_k are joined by
a soft maximum, T = log(mean exp(λ r_k)) / λ with λ = 4 √(n(n − 1)). Biggs, Schrab and Gretton
(2023) use √(n(n − 1)) and other bandwidths. The choice of the kernels does not depend on which row
belongs to which sample, so that permutations give an exact level for any number of units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from typing_extensions import override

from ...core import Integer, frozen_component
from ...core.arrays import Floats
from ...execution.products import multiply
from ..declared import MAX_PERMUTATIONS
from ..kernels.kernels import Kernel
from ..kernels.scales import MAX_UNITS, Scales
from ..nulls.distributions import Null, permutation_null
from ..nulls.mean_difference import MIN_EXCEEDANCES, RESOLUTION, STAGE_FACTOR
from ..nulls.wild_bootstrap import WILD, spread_squares, wild_null
from ..registry import Measured
from ..samples.samples import as_sample
from .comparison import TWO_SAMPLE, TwoSamples, TwoSampleStatistic
from .unit_grams import seconds_of_pairs
from .unit_sums import UnitSums, choose_rows

BOTH = "gaussian and laplacian"
EXACT_SECONDS = 5.0  # on one core: kernels of all pairs of 12,700 rows of the plane
# Units whose sums of 20 kernels are 42 MB; 1,024 detect no more, in twice the time.
EXACT_UNITS = 512
EXACT_ROWS = 400  # for `fuse_rows`, whose callers say how many frequencies there are
# Sharpness of the soft maximum, times √(n(n − 1)). One or two of ten widths of a kernel see a fine
# difference, and a sharpness of 1 lets the others hide it. In 100 perturbed uniforms of the plane 4
# finds 41 %, 1 finds 36 %; in mixtures and on the line they find as many (of 40 each).
SHARPNESS = 4.0
CHOICE_ROWS = 512  # rows on which widths and norms are chosen: 130,000 distances
_MAX_FREQUENCIES = 4096  # per kernel: a permutation then takes 1.3 MB
# Units where up to a million permutations follow: buckets then cost no visible power.
STAGED_UNITS = 256
# Sharpness of the soft maximum of standard scores. That of MMD-FUSE, √(n(n − 1)) over norms, is
# about √2 for scores. In 50 samples of 200 pairs whose sines of two periods depend, √2 finds 41 and
# this 48; for lines, circles, spreads and eight dimensions both find as many.
SHARPNESS_OF_SCORES = 4 * 2**0.5
_MIN_STATISTIC_SPREAD = (
    1e-12  # over permutations, of statistics of kernels of size 1: less is rounding
)
MIN_FEATURE_SPREAD = 1e-6  # features of norm 1 in single precision: less is rounding


@frozen_component
class ManyScales(TwoSampleStatistic):
    """Base of the statistics that combine kernels with many bandwidths.

    Parameters
    ----------
    n_frequencies
        Number of random frequencies per bandwidth, each with a sine and a cosine.
    exact
        Whether exact kernels are used instead of random features. Time and memory are then
        quadratic in the number of rows. Default: True if exact kernels take at most five seconds of
        one core: up to 12,700 rows in all in two dimensions, or 4,200 rows in 512 dimensions.
    """

    nulls: ClassVar[tuple[str, ...]] = ("permutation", WILD)
    group_nulls: ClassVar[tuple[str, ...]] = nulls
    kernels: ClassVar[tuple[str, ...]] = (BOTH, "gaussian", "laplacian", "matern")
    has_widths: ClassVar[bool] = True
    n_frequencies: Annotated[int, Integer(1, _MAX_FREQUENCIES)] = 128
    exact: bool | None = None

    @property
    def described(self) -> str:
        """Return the name with the parameters that differ from the defaults."""
        of = type(self)()
        fields = {k: v for k, v in vars(self).items() if v != getattr(of, k)}
        return self.name + (f"({', '.join(f'{k}={v}' for k, v in fields.items())})" * bool(fields))

    def choose_scales(self, samples: TwoSamples) -> Scales:
        """Return the kernels, chosen on rows of both samples."""
        rows = choose_rows(samples, CHOICE_ROWS)
        return Scales.choose(kernel_names(samples), rows, self.n_frequencies, samples.seed)

    def unit_sums(self, samples: TwoSamples, scales: Scales, most: int = MAX_UNITS) -> UnitSums:
        """Return the sums over units from which all splits are computed."""
        n_rows = len(samples.first) + len(samples.second)
        seconds = seconds_of_pairs(n_rows, samples.n_dims, scales.kernels)
        exact = seconds <= EXACT_SECONDS if self.exact is None else self.exact
        return UnitSums.of(samples, scales, exact, min(most, EXACT_UNITS) if exact else most)

    def draw(self, samples: TwoSamples, scales: Scales) -> tuple[UnitSums, Floats]:
        """Return the sums of units, and each scale's MMD² in each draw of the null, (n, K)."""
        if samples.null == WILD:
            return series_sums(samples, scales)
        sums = self.unit_sums(samples, scales)
        return sums, np.concatenate([*sums.permuted(samples.n_permutations, samples.seed)])


@TWO_SAMPLE.register
@frozen_component
class Fuse(ManyScales):
    """MMD-FUSE: a soft maximum of MMD² over ten bandwidths of two kernels.

    See Also
    --------
    two_sample_test : Compare two samples.
    FuseRanks : Default: fused kernels and ranks.
    Aggregate : Several widths, corrected for multiplicity.
    bagbasis.plotting.plot_scales : Plot the contribution of each bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import Fuse, two_sample_test
    >>> result = two_sample_test(a, b, statistic=Fuse(), n_permutations=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "fuse"

    @override
    def measure(self, samples: TwoSamples, kernel: Kernel | None) -> Measured:
        scales = self.choose_scales(samples)
        sums, drawn = self.draw(samples, scales)
        if samples.null == WILD:
            measured = fuse_sums(sums, scales, [drawn], wild_null)
            return replace(measured, standard_error=float("nan"))
        return fuse_sums(sums, scales, [drawn])


@dataclass(frozen=True, eq=False)
class FusedDifference:
    """Result of `fuse_rows`: the difference of two sets of rows.

    Attributes
    ----------
    statistic, p_value, effect : float
        See `HypothesisResult`.
    scales : mapping of str to list
        For each scale, its kernel, bandwidth, MMD² and weight.
    """

    statistic: float
    p_value: float
    effect: float
    scales: Mapping[str, Any]


def fuse_rows(
    rows: Floats,
    is_first: NDArray[np.bool_],
    n_permutations: int,
    seed: int,
    level: float | None = None,
    n_frequencies: int = 128,
) -> FusedDifference:
    """Compare the distributions of the rows of two sets, by permutations in stages.

    Parameters
    ----------
    rows : shape (n, d)
    is_first : shape (n,)
        At least two rows in each set.
    n_permutations, level
        See `staged_p_values`.
    """
    rows = np.asarray(rows, np.float64)
    if (rows == rows[0]).all():
        return FusedDifference(0.0, 1.0, 0.0, {})
    first, second = (as_sample(n, rows[of], "row") for n, of in (("a", is_first), ("b", ~is_first)))
    samples = TwoSamples(first, second, "permutation", n_permutations, seed, kernel=BOTH)
    statistic = Fuse(n_frequencies=n_frequencies, exact=not level and len(rows) <= EXACT_ROWS)
    scales = statistic.choose_scales(samples)
    most = STAGED_UNITS if level else MAX_UNITS
    sums = statistic.unit_sums(samples, scales, most)
    n, last = n_permutations, n_permutations
    if level:
        last = max(n, min(MAX_PERMUTATIONS, math.ceil(RESOLUTION / level)))
    while True:
        fused_sums = fuse_sums(sums, scales, sums.permuted(n, seed))
        p = fused_sums.null.p_value
        if n == last or p * (1 + n) > MIN_EXCEEDANCES:
            break
        n = min(STAGE_FACTOR * n, last)
    effect = 0.0 if math.isnan(fused_sums.effect) else fused_sums.effect
    return FusedDifference(fused_sums.statistic, p, effect, (fused_sums.details or {})["scales"])


def fuse_sums(
    sums: UnitSums,
    scales: Scales,
    draws: Iterable[Floats],
    make_null: Callable[[float, Floats, float], Null] = permutation_null,
) -> Measured:
    """Return the fused statistic of the sums of units, with its null.

    Parameters
    ----------
    draws : iterable of arrays, shape (n, K)
        Each scale's MMD² without a difference.
    """
    norms, temperature = np.array(scales.norms), SHARPNESS * temperature_of(sums.n_independent)
    values = sums.observed()
    observed = float(fused(values, norms, temperature))
    drawn = np.concatenate([fused(values_drawn, norms, temperature) for values_drawn in draws])
    null = make_null(observed, drawn, 1 / norms.min())
    weights = softmax(temperature * values / norms)
    return Measured(
        statistic=observed,
        null=null,
        standard_error=sums.standard_error(weights / norms, float(null.values.var())),
        effect=effect_of(values, weights, sums.spread_within()),
        details=scale_details(scales, values, weights),
        kernel=str(scales),
    )


def kernel_names(samples: TwoSamples) -> tuple[str, ...]:
    """Return the names of the kernels of two samples, one or two."""
    return ("gaussian", "laplacian") if samples.kernel == BOTH else (samples.kernel,)


def fused(values: Floats, norms: Floats, temperature: float) -> Floats:
    """Return the soft maximum of MMD² / norm over the last axis."""
    top = logsumexp(temperature * values / norms, axis=-1) - np.log(len(norms))
    joined: Floats = top / temperature
    return joined


def standard_scores(every: Floats) -> Floats:
    """Return columns less their means, over their standard deviations; 0 where these are 0."""
    spread = every.std(axis=0)
    scores: Floats = (every - every.mean(axis=0)) / np.where(
        spread > _MIN_STATISTIC_SPREAD, spread, np.inf
    )
    return scores


def temperature_of(n: int) -> float:
    """Return √(n(n − 1)) of the rows, or groups, of the smaller sample."""
    return float((n * (n - 1)) ** 0.5)


def effect_of(values: Floats, weights: Floats, within: Floats) -> float:
    """Return the MMD² in units of the spread within the samples, weighted over scales."""
    known = within > MIN_FEATURE_SPREAD
    if not known.any():
        return float("nan")
    return float((weights[known] * values[known] / within[known]).sum() / weights[known].sum())


def scale_details(scales: Scales, values: Floats, weights: Floats) -> Mapping[str, Any]:
    """Return which scales differ, for the report and its figure."""
    top = int(np.argmax(weights))
    kernel = scales.kernels[top]
    return {
        "largest_weight": f"{kernel.name}, bandwidth {kernel.bandwidth:.4g}: {weights[top]:.0%}",
        "scales": {
            "kernel": [kernel.name for kernel in scales.kernels],
            "bandwidth": [kernel.bandwidth for kernel in scales.kernels],
            "mmd2": values.tolist(),
            "weight": weights.tolist(),
        },
    }


def series_sums(samples: TwoSamples, scales: Scales) -> tuple[UnitSums, Floats]:
    """Return the sums of two series' units in their order, and the MMD² of the wild bootstrap.

    The latter has shape (n_permutations, K): a draw per row, a scale per column.
    """
    grouped = samples.first.unit == "group"
    series = samples if grouped else samples.in_buckets(MAX_UNITS)
    sums = series.feature_sums(scales)
    blocks = sums.reshape(len(sums), len(scales.kernels), -1).transpose(1, 0, 2)
    blocks = np.concatenate([blocks, np.zeros((len(blocks), 2, blocks.shape[2]))], axis=1)
    sizes = np.append(series.unit_sizes, [0, 0]).astype(np.float64)
    n_independent = min(s.n_units if grouped else len(s) for s in (samples.first, samples.second))
    unit_sums = UnitSums.of_blocks(blocks, sizes, series.is_first_unit, n_independent, grouped)
    waves, degrees = series.wild_waves()
    first, of_unit = series.is_first_unit, sizes[:-2]
    sides = first / of_unit[first].sum(), ~first / of_unit[~first].sum()
    # Neighbours have nearly one weight, so that its square varies as a mean of few numbers does. So
    # a unit's pair with itself has the mean square as its weight: with a narrow kernel these pairs
    # are nearly all that there is, and draws would vary by their weights alone.
    excess = waves**2 - (sides[0] + sides[1]) ** 2
    drawn, biased = np.empty((len(waves), len(blocks))), np.empty(len(blocks))
    for k, block in enumerate(blocks):
        units = np.ascontiguousarray(block[:-2])
        moved = multiply(waves, units)
        means = [side @ units for side in sides]
        deviations = units - of_unit[:, None] * np.where(first[:, None], *means)
        own = np.einsum("ij,ij->i", deviations, deviations)
        drawn[:, k] = np.einsum("ij,ij->i", moved, moved) - excess @ own
        biased[k] = float(((means[0] - means[1]) ** 2).sum())
    return unit_sums, spread_squares(
        drawn, degrees, samples.spread_seed
    ) + unit_sums.observed() - biased
