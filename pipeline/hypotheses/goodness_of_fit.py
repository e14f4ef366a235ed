"""`fit_test`: test whether points come from a density that is given by its score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from ..core import (
    ComponentRegistry,
    Function,
    Instance,
    Integer,
    OneOf,
    Open,
    Seed,
    checked,
    documented,
    frozen_component,
)
from ..core.arrays import Floats, Integers
from ..core.errors import DataError, ParameterError, shown
from ..core.moved import renamed_fields
from ..data.bags.coordinates import Names, order_of
from ..data.bags.frames import names_of_table
from ..densities.exponential_family import ExponentialFamilyDensity
from ..densities.series import Densities
from ..execution.passes import check_memory
from ..execution.worker_threads import kernel_threads
from .declared import (
    KERNEL_WIDTH,
    MAX_LOCATIONS,
    CorrelationLength,
    LearningFraction,
    Permutations,
)
from .goodness.scores import GivenScore, MixtureScore, Scored, ScoreFunction, SeriesScore
from .goodness.stein import (
    SteinMoments,
    SteinSums,
    learn_stein_locations,
    stein_features,
    stein_of_waves,
)
from .kernels.kernels import Kernel, resolve_kernel
from .kernels.scales import MAX_UNITS
from .nulls.distributions import mixture_null
from .nulls.draws import generator_of
from .nulls.wild_bootstrap import WILD, wild_null, wild_signs
from .registry import Measured, Statistic, find_statistic
from .result import HypothesisResult
from .samples.held_out import split_units
from .samples.samples import Sample, as_sample, as_sample_points, is_bags
from .two_samples.aggregated import Aggregated, aggregate


@dataclass(frozen=True, eq=False)
class ScoredSample:
    """Points with their scores, and how the null is made."""

    scored: Scored
    sample: Sample
    kernel: Kernel
    n_draws: int
    seed: int


@frozen_component
class FitStatistic(Statistic):
    """Base of the goodness-of-fit statistics; large values are evidence against the density."""

    kernels: ClassVar[tuple[str, ...]] = ("gaussian",)

    @abstractmethod
    def measure(self, points: ScoredSample) -> Measured:
        """Return the statistic with its null distribution."""


FIT: ComponentRegistry[FitStatistic] = ComponentRegistry(
    "statistic of fit", "bagbasis.fit_statistics"
)
"""The statistics of goodness of fit by name."""


@FIT.register
@renamed_fields
@frozen_component
class KSD(FitStatistic):
    """Kernel Stein discrepancy over all pairs of points.

    The statistic is the squared discrepancy. Its expected value is 0 if the density is correct.

    Parameters
    ----------
    correlation_length
        Lag in points beyond which a series is nearly uncorrelated; 0 for independent points.

    See Also
    --------
    fit_test : Test goodness of fit.
    KSDRanks : Default: the better of two rankings.
    FSSD : Stein discrepancy at a few locations.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import KSD, MixtureScore, fit_test
    >>> x = rng.normal(1.0, 1.0, (100, 1))
    >>> result = fit_test(x, MixtureScore([[0.0]]), statistic=KSD(), n_draws=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "ksd"
    nulls: ClassVar[tuple[str, ...]] = (WILD,)
    group_nulls: ClassVar[tuple[str, ...]] = nulls
    correlation_length: CorrelationLength = 0.0

    @override
    def measure(self, points: ScoredSample) -> Measured:
        # memory for tiles and for the signs, O(n n_draws)
        scored, sample = points.scored, points.sample
        signs = wild_signs(sample.n_units, points.n_draws, self.correlation_length, points.seed)
        sums = SteinSums.of(scored, points.kernel.bandwidth, signs[:, sample.units])
        own = own_term(scored, points.kernel.bandwidth)
        return Measured(
            sums.statistic,
            wild_null(sums.statistic, sums.signed, own),
            sums.standard_error,
            sums.statistic / own,
        )


EXACT_POINTS = 1000  # points whose pairs take a second, as waves do

# Learnt locations lie where few points are: with 28 and 35 tested points, p ≤ .05 in 8 % of tests
# (400 data sets each), with 70 in 5 %.
MIN_TESTED = 60


@FIT.register
@frozen_component
class FSSD(FitStatistic):
    """Finite set Stein discrepancy: goodness of fit at a few locations, in linear time.

    The Stein features of the points are evaluated at J locations and averaged. The computation
    takes O(n) time and keeps only sums of moments.

    Parameters
    ----------
    n_locations
        Number of locations.
    learn
        Fraction of the points on which locations and bandwidth are learnt. The test uses the
        remaining points, at least 60. With 0, locations are drawn from a normal distribution with
        the moments of the points.

    See Also
    --------
    fit_test : Test goodness of fit.
    KSD : Kernel Stein discrepancy.
    NFSIC : Dependence at a few locations.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import FSSD, MixtureScore, fit_test
    >>> x = rng.normal(1.0, 1.0, (100, 1))
    >>> result = fit_test(x, MixtureScore([[0.0]]), statistic=FSSD(), n_draws=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "fssd"
    nulls: ClassVar[tuple[str, ...]] = ("spectral",)
    group_nulls: ClassVar[tuple[str, ...]] = ()
    n_locations: Annotated[int, Integer(1, MAX_LOCATIONS)] = 5
    learn: LearningFraction = 0.0

    @override
    def measure(self, points: ScoredSample) -> Measured:
        training, tested = split_units(points.sample.units, self.learn, points.seed)
        x = points.scored.points[training]
        rng = np.random.default_rng(points.seed)
        covariance = np.atleast_2d(np.cov(x.T))
        v = rng.multivariate_normal(x.mean(axis=0), covariance, self.n_locations)
        width = points.kernel.bandwidth
        if self.learn:
            if len(tested) < MIN_TESTED:
                raise DataError(
                    f"{len(tested)} points are left to test after learn={self.learn:g}; expected "
                    f"{MIN_TESTED} or more: take learn=0, or statistic='ksd'"
                )
            v, width = learn_stein_locations(points.scored[training], v, width)
        moments = SteinMoments.of(stein_features(points.scored[tested], v, width))
        observed, n = moments.statistic(), moments.n
        weights = moments.weights() / n
        null = mixture_null(observed, weights, points.n_draws, points.seed, -float(weights.sum()))
        details = {"locations": v.tolist(), "bandwidth": width, "n_tested": n}
        # 0 if the search ended away from all points, because no value that it saw was above 0
        effect = observed * n / moments.squares if moments.squares else 0.0
        return Measured(observed, null, moments.standard_error(), effect, details)


@FIT.register
@renamed_fields
@frozen_component
class KSDAggregate(FitStatistic):
    """KSDAgg: test at seven widths, corrected for multiplicity.

    KSD is computed at seven bandwidths around the given one. The result names the bandwidths that
    reject. The wild bootstrap is conservative for few points: with 100 points it rejects 3 to 4 %
    at .05.

    Parameters
    ----------
    correlation_length
        Lag in points beyond which a series is nearly uncorrelated; 0 for independent points.
    n_frequencies
        Number of random frequencies per bandwidth that approximate the kernel, in O(n) time and
        memory.
    exact
        Whether the exact kernel is used instead of random features. Time is then quadratic in the
        number of points. Default: True for up to 1,000 points.

    See Also
    --------
    fit_test : Test goodness of fit.
    KSDRanks : Default: the better of two rankings.
    KSD : Kernel Stein discrepancy.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import KSDAggregate, MixtureScore, fit_test
    >>> x = rng.normal(1.0, 1.0, (100, 1))
    >>> result = fit_test(x, MixtureScore([[0.0]]), statistic=KSDAggregate(), n_draws=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "ksd_agg"
    nulls: ClassVar[tuple[str, ...]] = (WILD,)
    group_nulls: ClassVar[tuple[str, ...]] = nulls
    correlation_length: CorrelationLength = 0.0
    n_frequencies: Annotated[int, Integer(1, 4096)] = 128
    exact: bool | None = None

    @override
    def measure(self, points: ScoredSample) -> Measured:
        widths, values, drawn = self.over_widths(points)
        best = aggregate(values, drawn, WILD, own_terms(points.scored, widths))
        return Measured(best.statistic, best.null, details=details_of(best, widths, values))

    def over_widths(self, points: ScoredSample) -> tuple[list[float], Floats, Floats]:
        """Return the bandwidths, KSD² at each, (7,), and KSD² of each draw, (n_draws, 7)."""
        widths = [float(points.kernel.bandwidth * 2.0**k) for k in range(-3, 4)]
        exact = len(points.sample) <= EXACT_POINTS if self.exact is None else self.exact
        return widths, *(self._of_pairs if exact else self._of_waves)(points, widths)

    def _of_pairs(self, points: ScoredSample, widths: list[float]) -> tuple[Floats, Floats]:
        """Return KSD² at each bandwidth, (7,), and in each draw, (n_draws, 7), over all pairs."""
        scored, sample = points.scored, points.sample
        signs = wild_signs(sample.n_units, points.n_draws, self.correlation_length, points.seed)
        sums = [SteinSums.of(scored, width, signs[:, sample.units]) for width in widths]
        values = np.array([ksd.statistic for ksd in sums])
        return values, np.column_stack([ksd.signed for ksd in sums])

    def _of_waves(self, points: ScoredSample, widths: list[float]) -> tuple[Floats, Floats]:
        """Return the same by random features, with signs per unit, or per bucket of many units."""
        units, length = bucket_units(points.sample, self.correlation_length > 0, points.seed)
        n_units, n_dims = int(units.max()) + 1, points.scored.points.shape[1]
        n_columns = len(widths) * 2 * n_dims * self.n_frequencies
        check_memory(f"sums of {n_units:,} units", 8 * (3 * n_units + points.n_draws) * n_columns,
                     "take fewer n_frequencies")  # fmt: skip
        signs = wild_signs(n_units, points.n_draws, self.correlation_length / length, points.seed)
        centre = points.scored.points.mean(axis=0)  # changes no kernel, and keeps phases' digits
        scored = replace(points.scored, points=points.scored.points - centre)
        own = points.kernel.frequencies(n_dims, self.n_frequencies, points.seed)
        widest = own * (points.kernel.bandwidth / widths[-1])
        values, drawn = stein_of_waves(scored, units, widest, signs, len(widths))
        return values[::-1], drawn[:, ::-1]


@FIT.register
@frozen_component
class KSDRanks(KSDAggregate):
    """The default goodness-of-fit statistic: the better rank of two statistics.

    The two statistics are KSD at the given bandwidth, and `KSDAggregate` over seven bandwidths. KSD
    at the median distance is best at detecting shifts and other smooth differences; narrow
    bandwidths detect oscillations.

    The data and all draws of the wild bootstrap are ranked by each of the two statistics. The test
    statistic is −log of the p-value of the better rank. It is in turn ranked among the draws, which
    gives the p-value.

    Parameters
    ----------
    exact
        Whether exact kernels are used instead of random features. Time is then quadratic in the
        number of points. Default: True for up to 1,000 points.

    See Also
    --------
    fit_test : Test goodness of fit.
    KSD : Kernel Stein discrepancy.
    KSDAggregate : Several widths, corrected for multiplicity.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import KSDRanks, MixtureScore, fit_test
    >>> x = rng.normal(1.0, 1.0, (100, 1))
    >>> result = fit_test(x, MixtureScore([[0.0]]), statistic=KSDRanks(), n_draws=199)
    >>> result.p_value < 0.05
    True
    """

    name: ClassVar[str] = "ksd_ranks"

    @override
    def measure(self, points: ScoredSample) -> Measured:
        widths, values, drawn = self.over_widths(points)
        each = aggregate(values, drawn, WILD, own_terms(points.scored, widths))
        middle = widths.index(float(points.kernel.bandwidth))
        table = np.column_stack([[values[middle], *drawn[:, middle]], each.scores])
        best = aggregate(table[0], table[1:], WILD)
        top = (middle, each.top)[best.top]
        details = {"better_of_two": _FUSED_PARTS[best.top], **details_of(each, widths, values)}
        effect = float(values[top] / own_term(points.scored, widths[top]))
        return Measured(best.statistic, best.null, effect=effect, details=details)


_FUSED_PARTS = ("the kernel's width", "seven widths")


def own_term(scored: Scored, width: float) -> float:
    """Return the mean Stein kernel of a point with itself."""
    own = (scored.slopes**2).sum(axis=1)
    own += scored.weights**2 * scored.points.shape[1] / width**2
    return float(own.mean())


def own_terms(scored: Scored, widths: list[float]) -> Floats:
    """Return `own_term` of each bandwidth, shape (len(widths),)."""
    return np.array([own_term(scored, width) for width in widths])


def details_of(aggregated: Aggregated, widths: list[float], values: Floats) -> dict[str, Any]:
    """Return which bandwidths reject, for the report and its figure."""
    scales = {"bandwidth": widths, "ksd2": values.tolist(), **aggregated.columns()}
    return {**aggregated.counted([f"bandwidth {w:.4g}" for w in widths]), "widths": scales}


def bucket_units(sample: Sample, in_order: bool, seed: int) -> tuple[Integers, int]:
    """Return the bucket of each row and the number of units per bucket; at most 1,024 buckets.

    Parameters
    ----------
    in_order : bool
        Whether the points are a series, in which neighbours stay together. Otherwise points are
        assigned to buckets at random, because neighbours in sorted data are alike.
    """
    length = -(-sample.n_units // MAX_UNITS)
    order = np.arange(sample.n_units)
    if not in_order and length > 1:
        order = generator_of(seed, "buckets").permutation(sample.n_units)
    return order[sample.units] // length, length


_SCORE = (
    Instance("Densities")
    | Instance("ExponentialFamilyDensity")
    | Instance("MixtureScore", "MixtureScore(mean, covariance) for a normal distribution")
    | Instance("SeriesScore")
    | Function
)


@documented
@checked
def fit_test(
    x: ArrayLike,
    score: Annotated[
        Densities | ExponentialFamilyDensity | MixtureScore | SeriesScore | Callable[..., Any],
        _SCORE,
    ],
    *,
    statistic: str | Annotated[FitStatistic, Instance()] = "ksd_ranks",
    bandwidth: Annotated[float, KERNEL_WIDTH] | Annotated[str, OneOf("median")] = "median",
    null: str | None = None,
    n_draws: Permutations = 999,
    groups: Annotated[ArrayLike | None, Open("a label per row, or None")] = None,
    seed: Annotated[int | np.random.Generator, Seed] = 0,
) -> HypothesisResult:
    """Test whether points come from a density, given by its score ∇ log p.

    Parameters
    ----------
    x : shape (n, d) or (n,)
        Independent points (such as one point per bag, or residuals on held-out bags), or a series
        for ``KSDRanks`` or ``KSD``.
    score : Densities, ExponentialFamilyDensity, MixtureScore or callable
        The density to test. A `Densities` object has to hold one series density, with its box. An
        `ExponentialFamilyDensity` has to be fitted to other points than x. A `MixtureScore` is a
        mixture of normal distributions. A callable maps points (n, d) to ∇ log p (n, d) of a
        density on the whole space; the normalising constant of p is not needed.
    statistic : str or FitStatistic
        "ksd_ranks" (default): the better of "ksd" and "ksd_agg", by the same draws of a wild
        bootstrap; O(n) with more than 1,000 points. For a series use
        ``KSDRanks(correlation_length=…)``. "ksd": one bandwidth, all pairs, O(n²). "ksd_agg": seven
        bandwidths, corrected for multiplicity. "fssd": a few locations, O(n); ``FSSD(learn=0.3)``
        learns the best locations.
    bandwidth
        Bandwidth of the Gaussian kernel; "median" is the median distance of two points.
    null
        Method for the null distribution. Each statistic has exactly one.
    n_draws
        Number of draws from the null distribution.
    groups : shape (n,)
        Label of each point. The wild bootstrap draws one sign per group. Not for "fssd".
    seed
        Random seed. From a NumPy Generator, a seed is drawn. ``rng=`` is another name of the
        parameter.

    Returns
    -------
    HypothesisResult
        ``effect`` is the statistic divided by the mean Stein kernel of a point with itself.

    Raises
    ------
    DataError
        If the points cannot be used, a point lies outside the density's support, or the score
        function does not return a score.

    See Also
    --------
    two_sample_test : Compare two samples.
    MixtureScore : Score of a mixture of normal distributions.
    SeriesScore : Score of an estimated density.

    Notes
    -----
    Szabó; Chwialkowski, Strathmann and Gretton 2016 (KSD), Jitkrittum et al. 2017 (FSSD).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import MixtureScore, fit_test
    >>> x = rng.normal(1.0, 1.0, (100, 1))
    >>> result = fit_test(x, MixtureScore([[0.0]]))  # against a standard normal distribution
    >>> result.p_value < 0.05
    True
    """
    assert isinstance(seed, int)  # `checked` has drawn it
    started = perf_counter()
    chosen, null, kernel = find_statistic(FIT, statistic, null, None)
    if groups is not None and null not in chosen.group_nulls:
        raise ParameterError(f"the statistic {chosen.name!r} takes points for independent; "
                             "with groups take 'ksd_ranks'")  # fmt: skip
    if is_bags(x):
        raise DataError("x is bags, whose points are alike; give one point per bag, or groups=")
    rows = as_sample_points(x, "x")
    names: Names = getattr(score, "coordinate_names", None)
    order = order_of(names_of_table(x), names, "x", "the density was fitted on")
    rows = rows if order is None else np.take(rows, order, axis=1)
    sample = as_sample("x", rows, "point", groups)
    resolved = resolve_kernel(kernel, bandwidth, rows)
    with kernel_threads():
        scored = resolve_score(score)(rows)
        measured = chosen.measure(ScoredSample(scored, sample, resolved, n_draws, seed))
    return measured.result(
        question="fit",
        name=chosen.described,
        null=null,
        kernel=str(resolved),
        n={"x": len(rows)},
        unit=sample.unit,
        n_units={"x": sample.n_units},
        seed=seed,
        seconds=perf_counter() - started,
    )


def resolve_score(score: object) -> ScoreFunction:
    """Return the score of a density, or of a function.

    Raises
    ------
    ParameterError
        If ``score`` is neither a density nor a function, or holds more than one density.
    """
    if isinstance(score, (MixtureScore, SeriesScore)):
        return score
    if isinstance(score, Densities):
        return SeriesScore(score)
    if isinstance(score, ExponentialFamilyDensity):
        return GivenScore(score.log_density_gradient)
    if callable(score):
        return GivenScore(score)
    raise ParameterError(
        f"score is {shown(score)}; expected Densities, an ExponentialFamilyDensity, a MixtureScore "
        "or a function"
    )
