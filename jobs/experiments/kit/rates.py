"""How often tests reject: p-values of many data sets, on one core, and the errors of shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis.execution.lanes import use_cores

from ...terminal import Callback

Floats = NDArray[np.float64]


def p_values(n_tests: int, test: Callable[[int], float], progress: Callback) -> Floats:
    """Return the p-values of tests 0, 1, …, shape (n_tests,).

    One core: of products of so few rows more threads wait for each other.
    """
    values = np.empty(n_tests)
    with use_cores(1):
        for i in range(n_tests):
            values[i] = test(i)
            progress(i + 1, n_tests)
    return values


def share_error(share: Any, n_tests: Any) -> Any:  # noqa: ANN401 - numbers or columns of them
    """Return the standard error of a share of tests; of 0 and 1 that of half a test."""
    inner = np.clip(share, 0.5 / n_tests, 1 - 0.5 / n_tests)
    return (inner * (1 - inner) / n_tests) ** 0.5
