"""The choice of a kernel's bandwidth on a part of the data that the test does not see (000, ch. 6).

A bandwidth that was chosen on the rows that are tested makes differences where there are none. So
half of the units choose, and the other half are tested.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags.sampling import spread_rows
from .comparison import TwoSamples
from .exact_mmd import UnbiasedMMD
from .kernels import Kernel, resolve_kernel
from .permutation import draw_orders
from .row_sources import ArrayRows
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
    parts = [_halves(sample, samples.seed) for sample in (samples.first, samples.second)]
    chosen_on, tested_on = (
        replace(samples, first=parts[0][i], second=parts[1][i], null="permutation") for i in (0, 1)
    )
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
    sizes = {
        what: {s.name: len(s) for s in (part.first, part.second)}
        for what, part in (("chosen_on", few), ("tested_on", tested_on))
    }
    details = {
        "bandwidth_by": criterion,
        **sizes,
        "bandwidths": [kernel.bandwidth for kernel in kernels],
        "criteria": values.tolist(),
    }
    return best, replace(tested_on, null=samples.null), details


def _criterion(criterion: str, samples: TwoSamples, kernel: Kernel) -> float:
    found = UnbiasedMMD().measure(samples, kernel)
    if criterion == "max_mmd":
        return found.statistic
    threshold = np.quantile(found.null.values, 1 - LEVEL) if criterion == "tau" else 0.0
    return float((found.statistic - threshold) / max(found.standard_error, np.finfo(float).tiny))


def _halves(sample: Sample, seed: int) -> tuple[Sample, Sample]:
    """Return the samples of a random half of the units, and of the others."""
    first = np.zeros(sample.n_units, bool)
    first[next(draw_orders(sample.n_units, 1, seed))[: sample.n_units // 2]] = True
    return _of_units(sample, first), _of_units(sample, ~first)


def _few(sample: Sample) -> Sample:
    """Return a sample of few of its units."""
    kept = np.zeros(sample.n_units, bool)
    kept[spread_rows(np.arange(sample.n_units), ROWS)] = True
    return _of_units(sample, kept)


def _of_units(sample: Sample, kept: NDArray[np.bool_]) -> Sample:
    rows = kept[sample.units]
    return replace(
        sample,
        data=ArrayRows(sample.rows[rows]),
        units=(np.cumsum(kept) - 1)[sample.units[rows]],
        n_units=int(kept.sum()),
        positions=sample.positions[rows],
    )
