"""`two_sample_test`: compare the distributions of two samples of points or of bags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import Instance, Integer, KernelName, OneOf, Open, Seed, checked, documented
from ..core.arrays import as_array
from ..core.errors import DataError, ParameterError, shown, warn
from ..data.bags.frames import warn_of_row_numbers
from ..embeddings.base import Embedding, EmbeddingSpec
from ..execution.worker_threads import kernel_threads
from .declared import KERNEL_WIDTH, CorrelationLength, Permutations
from .kernels.kernels import Kernel, resolve_kernel
from .nulls.wild_bootstrap import WILD
from .registry import Measured, check_groups, find_statistic
from .result import HypothesisResult
from .samples.matching import matched
from .samples.samples import UNIT, Sample, SampleLike, read_samples, refuse_missing
from .samples.standardising import CoordinateUnits, in_own_units
from .two_samples.comparison import TWO_SAMPLE, TwoSamples, TwoSampleStatistic
from .two_samples.exact_mmd import UnbiasedMMD
from .two_samples.fused import Fuse
from .two_samples.fused_ranks import FuseRanks
from .two_samples.kernel_choice import ARD, KERNEL_CRITERIA, choose_coordinates, choose_kernel
from .two_samples.locations import LocationStatistic

BY_COORDINATE = "gaussian, a bandwidth per coordinate"
MIN_UNITS_TO_CHOOSE = 8  # units of a sample: four choose the bandwidth, four are tested


@documented
@checked
def two_sample_test(
    a: SampleLike,
    b: SampleLike,
    *,
    statistic: str | Annotated[TwoSampleStatistic, Instance()] | None = None,
    kernel: KernelName | None = None,
    bandwidth: Annotated[float, KERNEL_WIDTH]
    | Annotated[str, OneOf("median", "max_mmd", "t", "tau", "ard")]
    | None = None,
    null: str | None = None,
    n_permutations: Permutations = 999,
    groups: Annotated[
        tuple[ArrayLike, ArrayLike] | None, Open("a label per row of each sample, or None")
    ] = None,
    seed: Annotated[int | np.random.Generator, Seed] = 0,
    unit: Annotated[str, UNIT] | None = None,
    embedding: Annotated[Embedding, Instance()]
    | Annotated[EmbeddingSpec, Instance()]
    | None = None,
    thin: bool | Annotated[int, Integer(1)] = True,
    correlation_length: CorrelationLength | None = None,
    standardize: bool | None = None,
) -> HypothesisResult:
    """Test whether two samples come from the same distribution.

    An array (n, d) is a sample of points. A list of arrays, `Bags`, a `BagStore` or (BagStore,
    start, stop) is a sample of bags: each bag becomes one vector, its embedding, and **the bag is
    the unit**. Points of one bag are correlated. A test that pools points across bags therefore
    rejects far too often: in 61 % of tests at α = .05 without a difference (100 bags of 20 points).

    Parameters
    ----------
    a, b : samples of points, or samples of bags
        The samples, with at least two units each.
    statistic : str or an instance
        Name of the statistic, or an instance with other parameters than the defaults, such as
        ``BlockMMD(block_size=50)``. Default: "fuse_ranks"; "fuse" for series; "mmd_u" if a
        ``bandwidth`` is given, or a null that only single-kernel statistics have:

        ============ ============================================ ===============================
        name         what                                         nulls, the default first
        ============ ============================================ ===============================
        fuse_ranks   harmonic mean of three p-values: of two      permutation
                     fused MMD², and of ranks per coordinate
        fuse         MMD² of ten widths of two kernels,           permutation, wild_bootstrap
                     their soft maximum; O(n) of many
        agg          the same, each width tested, corrected       as fuse
        mmd_b        MMD² of all pairs, biased                    permutation, spectral, gamma,
                                                                  pearson, wild_bootstrap
        mmd_u        the same, unbiased                           as mmd_b
        mmd_linear   MMD² of pairs of two rows, O(n)              normal
        mmd_block    mean MMD_u² of blocks of √n rows             normal
        fourier      mmd_u by random features, O(n L d)           as mmd_b
        fastfood     the same, O(n L log d); not Laplacian        as mmd_b
        energy       energy distance of all pairs                 as mmd_b
        me           T² of mean kernels at J locations            permutation, chi_square
        scf          T² of smoothed characteristic functions      as me
        sliced       sliced Wasserstein distance, squared         permutation
        ============ ============================================ ===============================
    kernel
        Kernel of points, or of embeddings; by default the first that the statistic admits, or for
        "fuse_ranks", "fuse" and "agg" both a Gaussian and a Laplacian kernel.
    bandwidth
        Bandwidth of the kernel, in the units of points or embeddings, for statistics with one
        kernel; by default "median", the median distance of two rows. The other names choose the
        bandwidth on half of the units and test on the other half: "max_mmd" by the largest MMD_u²,
        "t" by the largest ratio of MMD_u² to its standard error, "tau" by the largest power (τ of
        Sutherland 2016, ch. 6). "ard" chooses one bandwidth per coordinate by gradient ascent on
        the ratio of "t", and so shows which coordinates differ. "ard" needs a Gaussian kernel and
        is not available for "me" and "scf". These four choices need all rows in memory.
    null
        Method for the null distribution; by default the statistic's first. The table lists them.
        "permutation" is exact for any number of units; the other methods are asymptotic. With 100
        units, "normal" is conservative for mmd_block (it rejects 2.4 % at α = .05 without a
        difference). "chi_square" is the distribution of Hotelling's T², a scaled F that tends to
        χ²(J); the test rejects 4.2 to 5 %. "wild_bootstrap" is for two time series, in which
        neighbouring rows depend on each other. Time is the order of the rows, or of the groups'
        labels.
    n_permutations
        Number of permutations, or of simulations of the spectral null.
    groups : (shape (n_a,), shape (n_b,))
        Label of each point or bag (a day, a box, a patient). All points or bags with the same label
        form one unit and are permuted together. A label may occur in one sample only.
    seed
        Random seed. From a NumPy Generator, a seed is drawn. The result depends only on the seed,
        the data and the parameters, not on the number of workers. ``rng=`` is another name of the
        parameter.
    unit
        Independent unit of the test; by default the bag, or the point of samples of points. "point"
        pools the points of all bags and ignores the bag structure; the p-value is then too small
        whenever points within a bag are correlated.
    embedding : embedding, its spec, or None
        Embedding of bags. A fitted embedding or a spec is used unchanged. Default: a
        `MeanMapEmbedding`.
    thin
        Number of points to which bags are thinned, or whether they are; see `drift_test`. Smaller
        bags are left out. The noise of an embedding depends on the size of the bag, so that without
        thinning a mere difference in sizes would be detected.
    correlation_length
        Lag in units beyond which the series is nearly uncorrelated; required by "wild_bootstrap".
        Five times the lag at which the autocorrelation falls to 1/e is a good choice: the test then
        rejects at α = .05 in 4 to 5 % of simulated series of 150 to 1,000 units (a permutation test
        of one of these series in 59 %). With few units for that length, it rejects less often.
    standardize
        Whether each coordinate of points is divided by its median absolute deviation over both
        samples; by default unless ``bandwidth`` is a number or the statistic has ``locations``,
        because both are in the units of the points. The test then does not depend on units of
        measurement, and the statistic, the bandwidths and the effect have none. Bags, and points
        with one coordinate, are never rescaled.

    Returns
    -------
    HypothesisResult
        Statistic, p-value and effect size, with details of the test.

    Raises
    ------
    DataError
        If the samples cannot be compared: their dimensions differ, one has points and the other
        bags, a sample has fewer than two units, or all rows are equal.
    ParameterError
        If a parameter is outside its range, or the statistic does not admit the null or the kernel.

    See Also
    --------
    independence_test : Test for independence.
    fit_test : Test goodness of fit.
    bagbasis.operations.drift_test : Compare two sets of bags.
    bagbasis.plotting.plot_scales : Plot the contribution of each bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> from bagbasis.hypotheses import two_sample_test
    >>> result = two_sample_test(a, b)
    >>> result.p_value < 0.05
    True
    """
    assert isinstance(seed, int)  # `checked` has drawn it
    started = perf_counter()
    if statistic is None:
        statistic = _default(bandwidth, null)
    chosen, null, kernel = find_statistic(TWO_SAMPLE, statistic, null, kernel)
    if (correlation_length is None) == (null == WILD):
        raise ParameterError(
            f"correlation_length is {correlation_length} and null {null!r}; only {WILD!r} has a "
            "correlation length, and it needs one"
        )
    for name, sample in (("a", a), ("b", b)):
        warn_of_row_numbers(sample, name)
    both = read_samples(
        {"a": a, "b": b},
        unit=unit,
        groups=None if groups is None else _labels(groups, a, b),
        embedding=embedding,
        thin=thin,
        seed=seed,
    )
    if bandwidth == ARD:
        both = [sample.with_names for sample in both]
    both, units = _standardised(both, standardize, chosen, bandwidth)
    length = correlation_length or 0.0
    samples = TwoSamples(both[0], both[1], null, n_permutations, seed, length, kernel)
    _check(samples, chosen)
    if bandwidth is not None and not kernel:
        raise ParameterError(f"bandwidth is {bandwidth}; {chosen.name!r} has no kernel")
    if bandwidth is not None and chosen.has_widths:
        raise ParameterError(
            f"bandwidth is {bandwidth}; {chosen.name!r} takes several of its own: leave it out, or "
            "take statistic='mmd_u'"
        )
    if bandwidth == ARD and (kernel != "gaussian" or isinstance(chosen, LocationStatistic)):
        raise ParameterError(
            f"bandwidth is {ARD!r}, which is for the gaussian kernel of rows; the kernel is "
            f"{kernel!r}, the statistic {chosen.name!r}"
        )
    with kernel_threads():
        name = "" if chosen.has_widths else kernel
        used, samples, choice = _kernel_of(name, bandwidth, samples)
        fitted, used, samples, learnt = chosen.learn_on(samples, used)
    tested = samples
    if chosen.is_additive and groups is None:
        samples = samples.in_buckets()
    with kernel_threads():
        measured = fitted.measure(samples, used)
    if units is not None:
        measured, choice = _in_units_of_data(measured, choice, fitted, units)
    return measured.result(
        question="two samples",
        name=chosen.described,
        null=null,
        kernel=BY_COORDINATE if bandwidth == ARD else str(used or ""),
        n=tested.n,
        unit=samples.first.unit,
        n_units={s.name: s.n_units for s in (tested.first, tested.second)},
        seed=seed,
        seconds=perf_counter() - started,
        details={
            **{f"bags_left_out_of_{s.name}": s.n_left_out for s in both if s.n_left_out},
            **choice,
            **learnt,
        },
    )


def _default(bandwidth: float | str | None, null: str | None) -> str:
    """Return the default statistic: the first that admits the given bandwidth and null."""
    if bandwidth is None and null in (None, *FuseRanks.nulls):
        return FuseRanks.name
    return Fuse.name if bandwidth is None and null in Fuse.nulls else UnbiasedMMD.name


def _standardised(
    both: list[Sample],
    standardize: bool | None,
    statistic: TwoSampleStatistic,
    bandwidth: float | str | None,
) -> tuple[list[Sample], CoordinateUnits | None]:
    """Return the samples, standardised if requested, and the units of their coordinates."""
    has_locations = getattr(statistic, "locations", None) is not None
    if standardize and has_locations:
        raise ParameterError(
            "standardize is True, and the statistic has locations, which are in the units of the "
            "points; leave one of them out"
        )
    is_number = bandwidth is not None and not isinstance(bandwidth, str)
    has_units = has_locations or is_number
    is_standardised = not has_units if standardize is None else standardize
    return in_own_units(both) if is_standardised else (both, None)


def _in_units_of_data(
    measured: Measured,
    choice: Mapping[str, Any],
    statistic: TwoSampleStatistic,
    units: CoordinateUnits,
) -> tuple[Measured, dict[str, Any]]:
    """Return the measurements and the description of the kernel's choice, in the data's units."""
    details, choice = dict(measured.details or {}), dict(choice)
    if getattr(statistic, "is_in_space", False):
        details["locations"] = units.restored(np.array(details["locations"])).tolist()
    if "coordinates" in choice:
        widths = np.array(choice["coordinates"]["bandwidth"]) * units.unit
        choice["coordinates"] = {**choice["coordinates"], "bandwidth": widths.tolist()}
    rows = {name: units.restored(rows) for name, rows in measured.sampled_rows.items()}
    return replace(measured, details=details, sampled_rows=rows), choice


def _kernel_of(
    name: str | None, bandwidth: float | str | None, samples: TwoSamples
) -> tuple[Kernel | None, TwoSamples, dict[str, Any]]:
    """Return the kernel, the samples to test with it, and how the kernel was chosen."""
    if not name:
        return None, samples, {}
    if not (isinstance(bandwidth, str) and bandwidth in (*KERNEL_CRITERIA, ARD)):
        return resolve_kernel(name, bandwidth, samples.sampled_rows), samples, {}
    if samples.null == WILD:
        raise ParameterError(
            f"bandwidth is {bandwidth!r}; of a series the halves that choose and are tested "
            "would be neighbours: give a number"
        )
    _require_halves(samples)
    if bandwidth == ARD:
        return choose_coordinates(samples)
    return choose_kernel(name, bandwidth, samples)


def _labels(groups: object, a: SampleLike, b: SampleLike) -> dict[str, ArrayLike]:
    if not isinstance(groups, (tuple, list)) or len(groups) != 2:
        raise ParameterError(f"groups is {shown(groups)}; expected (labels of a, labels of b)")
    labels_by_sample = []
    for name, sample, values in zip("ab", (a, b), groups, strict=True):
        what = f"groups of {name}"
        labels = as_array(what, matched({name: sample}, {what: values})[1][what])
        refuse_missing(what, labels, "unit")
        labels_by_sample.append(labels)
    first, second = labels_by_sample
    try:
        shared = sorted({*second.ravel().tolist()}.intersection(first.ravel().tolist()), key=str)
    except TypeError as error:
        raise DataError(f"groups are not texts, numbers or times ({error})") from error
    if shared:
        raise DataError(f"the group {shared[0]!s} is in both samples; a unit belongs to one")
    return {"a": first, "b": second}


def _require_halves(samples: TwoSamples) -> None:
    for sample in (samples.first, samples.second):
        if sample.n_units < MIN_UNITS_TO_CHOOSE:
            raise DataError(
                f"{sample.name} has {sample.n_units} {sample.unit}s; to choose a bandwidth on one "
                f"half and test the other takes {MIN_UNITS_TO_CHOOSE}"
            )


def _check(samples: TwoSamples, statistic: TwoSampleStatistic) -> None:
    if samples.first.unit == "group":
        check_groups(statistic, samples.null, "rows")
    if (samples.sampled_rows == samples.sampled_rows[0]).all():
        raise DataError("all rows of both samples are alike: there is nothing to compare")
    if all((rows == rows[0]).all() for rows in samples.sampled.values()):
        warn(
            "the rows of a are all alike, and those of b: the samples differ, but without a spread "
            "within them no effect can be measured (it is NaN); check that both are measurements"
        )
