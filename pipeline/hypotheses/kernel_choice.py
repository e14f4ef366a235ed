"""The choice of a kernel's bandwidth on a part of the data that the test does not see (000, ch. 6).

A bandwidth that was chosen on the rows that are tested makes differences where there are none. So
half of the units choose, and the other half are tested.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..bags.sampling import spread_rows
from .comparison import TwoSamples
from .exact_mmd import UnbiasedMMD
from .kernels import Kernel, resolve_kernel
from .samples import Sample

CRITERIA = ("max_mmd", "t", "tau")
WIDTHS = np.logspace(-1.5, 1.5, 13)  # times the median distance
ROWS = 1024  # of each sample that choose, at most
PERMUTATIONS = 200  # that τ's threshold is a quantile of
LEVEL = 0.05  # of that threshold


def choose_kernel(
    name: str, criterion: str, samples: TwoSamples
) -> tuple[Kernel, TwoSamples, dict[str, Any]]:
    """Return the kernel of the best bandwidth, what is left to be tested, and how it was chosen.

    Parameters
    ----------
    criterion : {"max_mmd", "t", "tau"}
        The largest MMD_u²; the largest MMD_u² / its standard error; the largest power by the normal
        limit, (MMD_u² − threshold of level .05) / its standard error.
    """
    chosen_on, tested_on = samples.split(0.5)
    few = replace(
        chosen_on,
        first=_few(chosen_on.first),
        second=_few(chosen_on.second),
        n_permutations=PERMUTATIONS if criterion == "tau" else 1,
        null="permutation" if criterion == "tau" else "gamma",
    )
    median = resolve_kernel(name, "median", few.sampled_rows)
    kernels = [median.with_bandwidth(float(median.bandwidth * width)) for width in WIDTHS]
    values = np.array([_criterion(criterion, few, kernel) for kernel in kernels])
    best = kernels[int(np.argmax(values))]
    details = {
        "bandwidth_by": criterion,
        "chosen_on": few.n,
        "tested_on": tested_on.n,
        "bandwidths": [kernel.bandwidth for kernel in kernels],
        "criteria": values.tolist(),
    }
    return best, tested_on, details


def _criterion(criterion: str, samples: TwoSamples, kernel: Kernel) -> float:
    found = UnbiasedMMD().measure(samples, kernel)
    if criterion == "max_mmd":
        return found.statistic
    threshold = np.quantile(found.null.values, 1 - LEVEL) if criterion == "tau" else 0.0
    return float((found.statistic - threshold) / max(found.standard_error, np.finfo(float).tiny))


def _few(sample: Sample) -> Sample:
    """Return a sample of few of its units."""
    kept = spread_rows(np.arange(sample.n_units), ROWS)
    return sample.of_rows(np.flatnonzero(np.isin(sample.units, kept)))
