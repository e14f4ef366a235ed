"""The choice of a bandwidth on data that the test does not use (Sutherland 2016, chapter 6).

A bandwidth that is chosen on the tested rows leads to false rejections. The bandwidth is therefore
chosen on half of the units, and the other half is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.arrays import Floats
from ...data.store.sampling import spread_rows
from ..kernels.kernels import Kernel, resolve_kernel
from ..nulls.permutation import draw_splits
from ..result import LEVEL
from ..samples.samples import Sample
from .comparison import TwoSamples
from .coordinate_widths import choose_widths, coordinate_details, in_widths, spread_of
from .exact_mmd import PairSums, null_variance, u_centred

KERNEL_CRITERIA = ("max_mmd", "t", "tau")
ARD = "ard"
MEDIAN_FACTORS = np.logspace(-1.5, 1.5, 13)  # times the median distance
_CHOICE_ROWS = 1024  # units of each sample that choose, at most, and about as many rows
ARD_ROWS = 512  # rows that choose a bandwidth per coordinate: a step takes a tenth of a second
N_PERMUTATIONS = 200  # permutations of which τ's threshold is a quantile


def choose_kernel(
    name: str, criterion: str, samples: TwoSamples
) -> tuple[Kernel, TwoSamples, dict[str, Any]]:
    """Return the kernel with the best bandwidth, the units left for the test, and a description.

    Parameters
    ----------
    criterion : {"max_mmd", "t", "tau"}
        The largest MMD_u²; the largest MMD_u² / its standard error; the largest power by the normal
        limit, (MMD_u² − threshold of level .05) / its standard error.
    """
    chosen_on, tested_on = samples.split(0.5)
    few = replace(chosen_on, first=_few(chosen_on.first), second=_few(chosen_on.second))
    median = resolve_kernel(name, "median", few.sampled_rows)
    kernels = [median.with_bandwidth(float(median.bandwidth * width)) for width in MEDIAN_FACTORS]
    values = _criteria(criterion, few, kernels)
    best = kernels[int(np.argmax(values))]
    details = {
        "bandwidth_by": criterion,
        "chosen_on": few.n,
        "tested_on": tested_on.n,
        "bandwidths": [kernel.bandwidth for kernel in kernels],
        "criteria": values.tolist(),
    }
    return best, tested_on, details


def choose_coordinates(samples: TwoSamples) -> tuple[Kernel, TwoSamples, dict[str, Any]]:
    """Choose a Gaussian kernel with one bandwidth per coordinate; see `choose_kernel`.

    The units left for the test have their coordinates divided by the bandwidths, so that the
    returned kernel has bandwidth 1.
    """
    chosen_on, tested_on = samples.split(0.5)
    few = _few_of(chosen_on)
    widths, value = choose_widths(few)
    scaled = in_widths(tested_on, widths)
    details = {
        "bandwidth_by": ARD,
        "chosen_on": few.n,
        "tested_on": tested_on.n,
        "criterion": value,
        **coordinate_details(widths, spread_of(few.rows), _few_of(scaled)),
    }
    return Kernel("gaussian", 1.0), scaled, details


def _few_of(samples: TwoSamples) -> TwoSamples:
    first, second = (_few(sample, ARD_ROWS) for sample in (samples.first, samples.second))
    return replace(samples, first=first, second=second)


def _criteria(criterion: str, samples: TwoSamples, kernels: Sequence[Kernel]) -> Floats:
    """Return the criterion of each kernel, from one distance matrix; only τ uses permutations."""
    n_permutations = N_PERMUTATIONS if criterion == "tau" else 0
    splits = draw_splits(samples.is_first_unit, n_permutations, samples.seed)
    distances = kernels[0].distances(samples.rows, samples.rows)
    criteria = []
    for kernel in kernels:
        gram = kernel.of_distances(distances.copy())

        def values(i: slice, j: slice, gram: Floats = gram) -> Floats:
            return gram[i, j]

        sums = PairSums.of(samples, values, kernel, splits)
        value, *permuted = sums.mmd(unbiased=True)
        if criterion != "max_mmd":
            if criterion == "tau":
                value, chance = value - np.quantile(permuted, 1 - LEVEL), np.var(permuted)
            else:
                chance = null_variance(u_centred(gram), sums.factor)
            error = samples.standard_error(sums.witness(samples.units), float(chance))
            value /= max(error, np.finfo(float).tiny)
        criteria.append(value)
    return np.array(criteria)


def _few(sample: Sample, most: int = _CHOICE_ROWS) -> Sample:
    """Return a sample of few of its units, and of large units each so many-th row."""
    chosen = spread_rows(np.arange(sample.n_units), most)
    rows = np.flatnonzero(np.isin(sample.units, chosen))
    rows = rows[np.argsort(sample.units[rows], kind="stable")]
    firsts = np.searchsorted(sample.units[rows], sample.units[rows])
    step = -(-len(rows) // most)
    return sample.of_rows(np.sort(rows[(np.arange(len(rows)) - firsts) % step == 0]))
