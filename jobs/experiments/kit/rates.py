"""How often tests reject: p-values of many data sets, on one core, and the errors of shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.execution.progress import part_of
from bagbasis.execution.worker_threads import use_cores

from ...terminal import Callback
from .experiment import counted

_Test = Callable[[int], float]
"""From the number of a data set to a p-value."""


def repeated_p_values(n_tests: int, test: _Test, progress: Callback) -> Floats:
    """Return the p-values of tests 0, 1, …, on one core: more would wait for each other."""
    values = np.empty(n_tests)
    with use_cores(1):
        for i in counted(range(n_tests), progress):
            values[i] = test(i)
    return values


def shares(
    tests: Mapping[str, _Test], n_tests: int, level: float, progress: Callback
) -> dict[str, float]:
    """Return the fraction of data sets 0, 1, … whose p-value is at most the level, by test."""
    rates = {}
    for k, (name, test) in enumerate(tests.items()):
        values = repeated_p_values(
            n_tests, test, part_of(progress, k * n_tests, len(tests) * n_tests)
        )
        rates[name] = float((values <= level).mean())
    return rates
