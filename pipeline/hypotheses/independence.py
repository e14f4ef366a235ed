"""`independence_test`: test two or more variables for dependence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from ..core import Instance, KernelName, Open, Seed, checked, documented
from ..core.arrays import Floats
from ..core.errors import DataError, ParameterError
from ..data.bags.frames import is_groups
from ..data.store.store import BagStore
from ..execution.worker_threads import kernel_threads
from .declared import Permutations
from .dependence.pairs import INDEPENDENCE, DependenceStatistic, Pairs
from .dependence.stored_pairs import StoredPairs
from .registry import Measured, check_groups, find_statistic
from .result import HypothesisResult
from .samples.matching import matched
from .samples.samples import is_bags
from .samples.standardising import CoordinateUnits
from .samples.variables import MIN_PAIRED_ROWS, VariableLike, read_variables, strata_of

_PERMUTATION = "permutation"


@documented
@checked
def independence_test(
    x: VariableLike,
    y: VariableLike,
    z: VariableLike | Mapping[str, VariableLike] | None = None,
    *,
    statistic: str | Annotated[DependenceStatistic, Instance()] = "hsic_fuse",
    kernel: KernelName | None = None,
    null: str | None = None,
    n_permutations: Permutations = 999,
    groups: Annotated[ArrayLike | None, Open("a label per row, or None")] = None,
    within: Annotated[ArrayLike | None, Open("a label per row, or None")] = None,
    seed: Annotated[int | np.random.Generator, Seed] = 0,
    standardize: bool = True,
) -> HypothesisResult:
    """Test whether paired variables are independent; if a variable has bags, the bag is the unit.

    Parameters
    ----------
    x, y : array (n,) or (n, d), list of arrays, Bags, BagStore, or (BagStore, start, stop)
        Paired variables: numbers, strings (which are classes), datetimes, or bags. Each bag becomes
        its mean map, thinned as in `two_sample_test`. To use another embedding, pass the rows that
        its ``transform`` returns. If one variable is a store, a string names a target of the store.
    z : as x and y
        Third variable, for "lancaster" and "dhsic". For "dhsic" also a mapping from names to all
        variables in addition to x and y.
    statistic : str or DependenceStatistic
        ================================= ======================================================
        hsic_fuse (default)               soft maximum over 25 pairs of widths; O(n), or O(n²) with
                                          exact kernels, for up to 790 pairs
        hsic_agg                          the same widths, each tested and corrected
        hsic_u, hsic_b                    all pairs, without and with bias; O(n²)
        dcov                              squared distance covariance; O(n²), no bandwidth
        hsic_fourier, hsic_nystroem       features of the kernels; O(n)
        hsic_block                        blocks of √n pairs; O(n^1.5)
        nfsic                             10 locations; O(n), for local dependence
        rdc, kcca, kcca_fourier           largest canonical correlation; O(n log n), O(n³), O(n)
        lancaster                         three variables, of which no two need to depend; O(n²)
        dhsic                             three or more: any dependence among them; O(n²)
        ================================= ======================================================

        Name of the statistic, or an instance with other parameters than the defaults, such as
        ``NFSIC(n_locations=5, learn=0.5)``. For a store and its target, "hsic_fourier" and "nfsic"
        read the store in one pass on the open cluster and keep only sums in memory. The other
        statistics keep the bags' embeddings in memory.
    kernel
        Kernel; by default the first that the statistic admits. Its bandwidth is the median distance
        in each variable.
    null
        Method for the null distribution; by default the statistic's first, but "chi_square" for
        "nfsic" and a store with 1,000 bags or more. "permutation" is exact.
        "spectral", "gamma", "pearson" and "normal" are for many independent pairs. "chi_square" is
        Hotelling's T² distribution for the given number of pairs. "shift" rotates one series
        against the other, for series in which neighbours depend on each other.
    n_permutations
        Number of permutations, shifts, or simulations of the spectral null.
    groups : shape (n,)
        Label of each given pair, including pairs that are left out later. Pairs with the same label
        are permuted together, with groups of the same size.
    within : shape (n,)
        Label of each given pair (a site, a batch, a class). Pairs, or groups, are permuted within
        their label only. The test is then for dependence given the label: dependence that the label
        alone explains is not detected. Null "permutation" only.
    seed
        Random seed. From a NumPy Generator, a seed is drawn. ``rng=`` is another name of the
        parameter.
    standardize
        Whether each coordinate of a variable (n, d) is divided by its median absolute deviation, so
        that the test does not depend on units of measurement. Bags, classes, and variables with one
        coordinate are never rescaled. False keeps the units of the data.

    Returns
    -------
    HypothesisResult
        ``effect`` is the statistic divided by its largest possible value: the centred alignment of
        the kernels, or the correlation. For NFSIC it is the statistic per pair.
        ``details["pairs_left_out"]`` counts the pairs whose bag is too small or has no label; the
        key is absent if there are none.

    Raises
    ------
    DataError
        If a variable cannot be used or paired, all its rows are equal, or there are fewer than four
        pairs.

    See Also
    --------
    two_sample_test : Compare two samples.
    select_coordinates : Select informative variables.
    bagbasis.plotting.plot_null : Plot the null distribution of a test.

    Notes
    -----
    `HSICBlock` is conservative: it rejects less often than its level. The experiment `levels`
    measures the levels of all statistics.

    Szabó; Gretton et al. 2008 (HSIC), Song et al. 2012 (unbiased), Székely et al. 2007 (distance
    covariance), Jitkrittum et al. 2017 (NFSIC), Lopez-Paz et al. 2013 (RDC), Sejdinovic et al. 2013
    (Lancaster), Pfister et al. 2018 (dHSIC).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> y = x**2 + 0.1 * rng.normal(size=100)
    >>> from bagbasis.hypotheses import independence_test
    >>> result = independence_test(x, y)
    >>> result.p_value < 0.05
    True
    """
    assert isinstance(seed, int)  # `checked` has drawn it
    started = perf_counter()
    is_default = null is None
    chosen, null, kernel = find_statistic(INDEPENDENCE, statistic, null, kernel)
    bound = groups is not None or within is not None
    if bound and is_default and _PERMUTATION in chosen.nulls:
        null = _PERMUTATION
    data, labels = matched({"x": x, "y": y, **_others(z)}, {"groups": groups, "within": within})
    x, y, groups, within = data["x"], data["y"], labels["groups"], labels["within"]
    if len(data) < chosen.n_variables or (len(data) > chosen.n_variables and not chosen.takes_more):
        more = " or more" if chosen.takes_more else ""
        raise ParameterError(
            f"{chosen.name!r} takes {chosen.n_variables}{more} variables; you passed {len(data)}"
        )
    if groups is not None:
        check_groups(chosen, null, "pairs")
    if within is not None and null != _PERMUTATION:
        raise ParameterError(
            f"null is {null!r}, which knows no labels; with within= take the null "
            f"{_PERMUTATION!r}, and a statistic that has it"
        )
    how = kernel, null, n_permutations, seed
    in_pass = None if bound else _measure_in_pass(chosen, x, y, how, is_default)
    if in_pass is not None:
        measured, pairs, n, n_left_out = in_pass
        unit, n_units = "bag", n
    else:
        *rows, sample = read_variables(data, groups, seed)
        units = [
            CoordinateUnits.of(z) if standardize and _has_coordinates(values, z) else None
            for values, z in zip(data.values(), rows, strict=True)
        ]
        rows = [z if unit is None else unit(z) for unit, z in zip(units, rows, strict=True)]
        strata = None if within is None else strata_of(within, sample)
        pairs = Pairs(tuple(rows), sample.units, *how, strata)
        unit, n, n_units = sample.unit, len(sample), sample.n_units
        with kernel_threads():
            measured = _in_units_of_data(chosen.measure(pairs), units)
        n_left_out = sample.n_left_out
    return measured.result(
        question="independence",
        name=chosen.described,
        null=pairs.null,
        kernel=" × ".join(map(str, pairs.kernels)) if kernel else "",
        n={"pairs": n},
        unit=unit,
        n_units={"pairs": n_units},
        seed=seed,
        seconds=perf_counter() - started,
        details={"pairs_left_out": n_left_out} if n_left_out else {},
    )


def _has_coordinates(values: VariableLike, rows: Floats) -> bool:
    """Return whether a variable is points with several coordinates: not bags, and not classes."""
    if rows.shape[1] == 1 or is_groups(values) or is_bags(values):
        return False
    return np.ndim(values) > 1  # type: ignore[arg-type] # classes are one text per row


def _in_units_of_data(measured: Measured, units: Sequence[CoordinateUnits | None]) -> Measured:
    """Return the measurements with locations and sampled rows in the units of the data."""
    details, sampled = dict(measured.details or {}), dict(measured.sampled_rows)
    for unit, name, places in zip(units, ("x", "y"), ("v", "w"), strict=False):
        if unit is None or name not in sampled:
            continue
        sampled[name] = unit.restored(sampled[name])
        at = unit.restored(np.array(details["locations"][places]))
        details["locations"] = {**details["locations"], places: at.tolist()}
    return replace(measured, details=details, sampled_rows=sampled)


def _others(z: VariableLike | Mapping[str, VariableLike] | None) -> dict[str, VariableLike]:
    """Return the variables besides x and y, by name."""
    if z is None:
        return {}
    if not isinstance(z, Mapping):
        return {"z": z}
    taken = [name for name in ("x", "y") if name in z]
    if taken or not all(isinstance(name, str) for name in z):
        raise ParameterError(f"z has the names {list(z)}; give texts other than 'x' and 'y'")
    return dict(z)


def _measure_in_pass(
    statistic: DependenceStatistic,
    x: VariableLike,
    y: VariableLike,
    how: tuple[str, str, int, int],
    is_default: bool,
) -> tuple[Measured, Pairs, int, int] | None:
    """Measure the bags of a store and a target in one pass; None where that is not possible.

    Also returns the sample of bags that determined the settings of the pass, the number of pairs,
    and the number of bags that are too small or have no label.
    """
    is_store = isinstance(x[0] if isinstance(x, tuple) and x else x, BagStore)
    if not (is_store and isinstance(y, str)):
        return None
    stored = StoredPairs.of(x, y, how[-1])
    rows = stored.some()
    pairs = Pairs(rows, np.arange(len(rows[0])), *how)
    null, least = statistic.null_in_pass or ("", 0)
    if is_default and null and stored.bags.n_bags >= least:
        pairs = replace(pairs, null=null)
    pair_map = statistic.pair_map(pairs)
    if pair_map is None:
        return None
    sums = stored.sums(pair_map)
    if sums.n < MIN_PAIRED_ROWS:
        raise DataError(f"{sums.n} pairs of bags; a test of independence needs {MIN_PAIRED_ROWS}")
    n_left_out = stored.bags.n_bags - sums.n
    return statistic.of_sums(sums, pair_map, pairs), pairs, sums.n, n_left_out
