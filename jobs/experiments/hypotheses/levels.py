"""`Levels`: how often each test rejects although there is nothing to find.

Every statistic has every null that it allows, on points: two samples of one distribution,
independent variables, and points of the distribution they are tested against. There are also few
points against many, Cauchy numbers, ties, bags of unequal sizes, groups, so many points that units
are joined to buckets, variables that both depend on a label, learnt densities, and series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy.signal import lfilter

from bagbasis import MeanMapEmbedding
from bagbasis.core.arrays import Floats, Integers
from bagbasis.densities import ExponentialFamilyDensity
from bagbasis.hypotheses import (
    FIT,
    INDEPENDENCE,
    TWO_SAMPLE,
    FuseRanks,
    MixtureScore,
    fit_test,
    independence_test,
    two_sample_test,
)
from bagbasis.hypotheses.nulls.wild_bootstrap import WILD
from bagbasis.operations import DriftDetector

from ..kit import Callback, Experiment, GroupedBars, Measure, Params
from ..kit.rates import repeated_p_values

_ALPHAS = (0.01, 0.05, 0.1)
N_FIRST, N_SECOND = 100, 80  # points of each sample; pairs and points to fit are as the first
N_UNEQUAL = (20, 150)  # points of unequal samples
MEAN_COUNT = 0.5  # of Poisson's distribution: three of five counts are 0
_N_BAGS = (60, 40)  # of each sample, of 10 to 30 points around a mean of deviation ½
N_SERIES = (300, 240)  # of normal numbers with correlations ½^lag
_MEMORY = 10.0  # of the wild bootstrap of these
N_BUCKETED = (800, 400)  # points, of which two or more are a unit that permutations move
N_WATCHED = (2000, 1200)  # rows of a detector's reference, and new ones
WATCHED_DIMS = 256  # of these: of as many numbers a detector keeps few rows, and sums of buckets
N_GROUPS = (40, 30)  # of each sample, of 1 to 6 points around a mean of deviation ½
N_SITES = 5  # labels that shift both variables by normal numbers of deviation 2
_N_LEARNT, FEATURES_LEARNT = 1000, 50  # points that a density is learnt from, and its features
FEW_WAVES, FEW_DRAWS = 16, 99  # frequencies per width, permutations; see `_is_light`
MANY_SCALES = ("fuse_ranks", "fuse", "agg", "hsic_agg", "hsic_fuse", "ksd_agg")
DETECTOR = "DriftDetector"
STATISTICS: Mapping[str, type[Any]] = {**TWO_SAMPLE, **INDEPENDENCE, **FIT}
BY = " by "  # between a statistic and the choice of its bandwidth, which has the exact null alone
_EXACT = "permutation"
KINDS = "unequal heavy ties bags buckets groups within samples_within learnt series"  # of data


class Levels(Experiment):
    name = "levels"
    title = "How often tests reject without an effect"
    source = "002, §5; 003"
    pictures = (
        GroupedBars(
            "levels.png", "0.05", measure="points", by="statistic", label="rejected at .05"
        ),
    )

    def measures(self) -> list[Measure]:
        s = self.settings
        points = [
            (row, null)
            for row in s.statistics
            for name, bandwidth in [_split(row)]
            for null in ((_EXACT,) if name == DETECTOR else STATISTICS[name].nulls)
            if (null != WILD or row in FIT) and (null == _EXACT or bandwidth is None)
        ]
        fixed = {"n_tests": s.n_tests}
        others = {kind.replace("_", " "): getattr(s, kind) for kind in KINDS.split()}
        tests: dict[str, Sequence[Any]] = {"points": points, **others}
        return [
            Measure(what, self._rates, f"{what} {{statistic}} {{null}}",
                    {"statistic null n_permutations": [
                        (name, null, FEW_DRAWS if _is_light(name, what) else s.n_permutations)
                        for name, null in of
                    ]}, fixed)
            for what, of in tests.items()
        ]  # fmt: skip

    def _rates(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the fraction of p-values up to each α."""
        values = repeated_p_values(p["n_tests"], lambda i: _p_value(p, self.rng(i), i), progress)
        return {f"{alpha:g}": float((values <= alpha).mean()) for alpha in _ALPHAS}


def _p_value(p: Params, rng: np.random.Generator, seed: int) -> float:
    """Return the p-value of one data set without an effect."""
    name, bandwidth = _split(p["statistic"])
    if name == DETECTOR:
        return _of_detector(p, rng, seed)
    options = {"statistic": _statistic(name, p["measure"]), "null": p["null"], "seed": seed}
    if name in TWO_SAMPLE:
        return _of_samples(p, rng, {**options, "bandwidth": bandwidth})
    if name in INDEPENDENCE:
        return _of_variables(p, rng, options)
    return _of_a_distribution(p, rng, options)


def _of_detector(p: Params, rng: np.random.Generator, seed: int) -> float:
    what = p["measure"]
    if what == "buckets":
        a, b = (rng.standard_normal((n, WATCHED_DIMS)) for n in N_WATCHED)
    else:
        a, b = SAMPLES[what](rng)
    embedding = MeanMapEmbedding(n_features=32) if what == "bags" else None
    detector = DriftDetector(
        embedding, n_permutations=p["n_permutations"], n_frequencies=FEW_WAVES, seed=seed
    )
    return detector.fit(a).test(b).p_value


def _of_samples(p: Params, rng: np.random.Generator, options: dict[str, Any]) -> float:
    what = p["measure"]
    if what == "groups":
        options["groups"] = tuple(_groups(rng, n) + 1000 * i for i, n in enumerate(N_GROUPS))
        a, b = (_around_means(rng, labels) for labels in options["groups"])
    else:
        a, b = SAMPLES[what](rng)
    options["embedding"] = MeanMapEmbedding(n_features=32) if what == "bags" else None
    options["correlation_length"] = _MEMORY if p["null"] == WILD else None
    # the default of `two_sample_test` is measured as it is called, others in the units of the data
    options["standardize"] = None if p["statistic"] == FuseRanks.name else False
    return two_sample_test(a, b, n_permutations=p["n_permutations"], **options).p_value


def _of_variables(p: Params, rng: np.random.Generator, options: dict[str, Any]) -> float:
    what, n = p["measure"], INDEPENDENCE[_split(p["statistic"])[0]].n_variables
    if what == "groups":
        options["groups"] = labels = _groups(rng, N_GROUPS[0], 3)
        variables = [_around_means(rng, labels) for _ in range(n)]
    elif what in ("within", "samples within"):
        options["within"] = labels = rng.integers(N_SITES, size=N_FIRST)
        variables = [_around_means(rng, labels, 2.0) for _ in range(n)]
        if what == "samples within":
            share = rng.random(N_SITES)[labels]
            variables[1] = np.where(rng.random(N_FIRST) < share, "a", "b")
    else:
        variables = _VARIABLES[what](rng, n)
    return independence_test(
        *variables, n_permutations=p["n_permutations"], standardize=False, **options
    ).p_value


def _of_a_distribution(p: Params, rng: np.random.Generator, options: dict[str, Any]) -> float:
    what = p["measure"]
    density: Any = MixtureScore([0.0, 0.0])
    if what == "series":
        x, density = _series(rng, N_SERIES[0]), MixtureScore([0.0])
    elif what == "learnt":
        x, others = rng.standard_normal(N_FIRST), rng.standard_normal(_N_LEARNT)
        density = ExponentialFamilyDensity(FEATURES_LEARNT).fit(others)
    elif what == "groups":
        options["groups"] = labels = _groups(rng, N_GROUPS[0])
        x = _around_means(rng, labels) / 1.25**0.5
    else:
        x = rng.standard_normal((sum(N_BUCKETED) if what == "buckets" else N_FIRST, 2))
    return fit_test(x, density, n_draws=p["n_permutations"], **options).p_value


def _statistic(name: str, what: str) -> Any:  # noqa: ANN401 - of three questions
    """Return a statistic by its name, or with parameters for many data, or for a series."""
    fields: dict[str, Any] = {}
    if _is_light(name, what):
        fields["n_frequencies"] = FEW_WAVES
    if name in TWO_SAMPLE and what == "buckets":
        fields["exact"] = False  # of so few points kernels of all pairs would be the default
    if name in FIT and what == "series":
        fields["correlation_length"] = _MEMORY
    return STATISTICS[name](**fields) if fields else name


def _is_light(name: str, what: str) -> bool:
    """Whether a test has few frequencies and permutations: its level is exact at any number."""
    return name == DETECTOR or (name in MANY_SCALES and what != "points")


def _split(row: str) -> tuple[str, str | None]:
    """Return the statistic of a row, and how its bandwidth is chosen: "mmd_u by ard"."""
    name, _, bandwidth = row.partition(BY)
    return name, bandwidth or None


def _ties(rng: np.random.Generator, n: int) -> Floats:
    return rng.poisson(MEAN_COUNT, n).astype(np.float64)


def _bag(rng: np.random.Generator) -> Floats:
    return 0.5 * rng.standard_normal(2) + rng.standard_normal((rng.integers(10, 31), 2))


def _bags(rng: np.random.Generator) -> list[list[Floats]]:
    return [[_bag(rng) for _ in range(n)] for n in _N_BAGS]


def _groups(rng: np.random.Generator, n: int, most: int = 6) -> Integers:
    """Return the labels of groups of 1 to ``most`` points."""
    return np.repeat(np.arange(n), rng.integers(1, most + 1, n))


def _around_means(rng: np.random.Generator, labels: Integers, deviation: float = 0.5) -> Floats:
    """Draw points around a mean for each label."""
    means = deviation * rng.standard_normal((labels.max() + 1, 2))
    return means[labels] + rng.standard_normal((len(labels), 2))


def _series(rng: np.random.Generator, n: int) -> Floats:
    """Draw normal numbers of variance 1 with correlations ½^lag."""
    return lfilter([0.75**0.5], [1, -0.5], rng.standard_normal(n + 50))[50:]


SAMPLES: Mapping[str, Any] = {
    "points": lambda rng: [rng.standard_normal((n, 2)) for n in (N_FIRST, N_SECOND)],
    "unequal": lambda rng: [rng.standard_normal((n, 2)) for n in N_UNEQUAL],
    "heavy": lambda rng: [rng.standard_cauchy(n) for n in (N_FIRST, N_SECOND)],
    "ties": lambda rng: [_ties(rng, n) for n in (N_FIRST, N_SECOND)],
    "bags": _bags,
    "buckets": lambda rng: [rng.standard_normal((n, 2)) for n in N_BUCKETED],
    "series": lambda rng: [_series(rng, n) for n in N_SERIES],
}
_VARIABLES: Mapping[str, Any] = {
    "points": lambda rng, n: rng.standard_normal((n, N_FIRST, 2)),
    "heavy": lambda rng, n: [rng.standard_cauchy(N_FIRST) for _ in range(n)],
    "ties": lambda rng, n: [_ties(rng, N_FIRST) for _ in range(n)],
    "bags": lambda rng, _: ([*chain(*_bags(rng))], rng.standard_normal(sum(_N_BAGS))),
    "series": lambda rng, n: [_series(rng, N_SERIES[0]) for _ in range(n)],
}
