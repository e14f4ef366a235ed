"""Learning on units that the test does not use: split of the units, and search for locations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ..nulls.draws import generator_of

Criterion = Callable[[Sequence[Floats], Sequence[float]], tuple[float, Floats]]
"""Function of locations and bandwidths: a value, and its flat gradient in (locations, log σ)."""

MIN_UNITS = 4  # smallest number of units to learn on, and to test
_MAX_STEPS = 100  # steps of the search; each takes two passes over the rows to learn from
MAX_WIDTH_FACTOR = 10.0  # a learnt bandwidth differs from the first one by at most this factor


def split_units(units: Integers, share: float, seed: int) -> tuple[Integers, Integers]:
    """Split the rows at random by units: a fraction of the units to learn on, and the rest to test.

    With a fraction of 0, both parts are all rows.

    Raises
    ------
    DataError
        If either part has fewer than four units.
    """
    if not share:
        return np.arange(len(units)), np.arange(len(units))
    n_units = int(units.max()) + 1
    chosen = generator_of(seed, "learning").permutation(n_units) < share * n_units
    if min(chosen.sum(), (~chosen).sum()) < MIN_UNITS:
        raise DataError(
            f"learn={share:g} leaves {int(chosen.sum())} of {n_units} units to learn on and "
            f"{int((~chosen).sum())} to test; both need {MIN_UNITS}"
        )
    return np.flatnonzero(chosen[units]), np.flatnonzero(~chosen[units])


def climb(
    criterion: Criterion, locations: Sequence[Floats], bandwidths: Sequence[float]
) -> tuple[list[Floats], list[float]]:
    """Maximise a criterion over locations and bandwidths, starting from the given ones.

    The search is L-BFGS with exact gradients. A bandwidth stays within a factor of 10 of its
    starting value.

    Parameters
    ----------
    criterion : see `Criterion`
    locations : arrays of any shapes
    """
    ends = np.cumsum([v.size for v in locations])

    def unpacked(theta: Floats) -> tuple[list[Floats], list[float]]:
        *parts, logs = np.split(theta, ends)
        shaped = [part.reshape(v.shape) for part, v in zip(parts, locations, strict=True)]
        return shaped, np.exp(logs).tolist()

    def loss(theta: Floats) -> tuple[float, Floats]:
        value, gradient = criterion(*unpacked(theta))
        return -value, -gradient

    logs, reach = np.log(bandwidths), np.log(MAX_WIDTH_FACTOR)
    bounds = [(None, None)] * int(ends[-1]) + [(log - reach, log + reach) for log in logs]
    optimum: Any = minimize(
        loss, np.concatenate([*(v.ravel() for v in locations), logs]), jac=True,
        method="L-BFGS-B", bounds=bounds, options={"maxiter": _MAX_STEPS},
    )  # fmt: skip
    return unpacked(optimum.x)


def kernel_gradient(
    rows: Floats, at: Floats, bandwidth: float, slopes: Floats
) -> tuple[Floats, float]:
    """Return the gradient in (v, log σ) of a function of exp(−‖x_i − v_j‖² / 2σ²).

    Parameters
    ----------
    slopes : shape (n, J)
        The function's slope in each kernel value, times that value.
    """
    pull = slopes / bandwidth**2
    moved = pull.T @ rows - pull.sum(axis=0)[:, None] * at
    return moved, float(np.vdot(pull, cdist(rows, at, "sqeuclidean")))
