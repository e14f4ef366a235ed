# mypy: disallow-untyped-defs=False
"""Sums over the rows of units: of sines and cosines at one scale, and of kernel values; serial."""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel
from ...core.sine_kernels import FAST, half_turn

_F = np.float32
_ONE, _TWO = _F(1), _F(2)


@kernel(fastmath=FAST)
def add_waves(turns, scale, units, out):
    """Add [sin(2πst), cos(2πst)] of each row of phases t to the sums of the row's unit.

    The nearest integer is taken off in double precision, so that phases of many turns keep their
    digits; what is left is a polynomial in single precision, with an error below 2e-7. Sums are
    in double precision, in the order of the rows.

    Parameters
    ----------
    turns : float64, shape (n, h)
        Phases t at scale 1, in turns.
    scale : float64
        s.
    units : int64, shape (n,)
    out : float64, shape (n_units, 2 h), added to
    """
    h = turns.shape[1]
    for i in range(turns.shape[0]):
        sums = out[units[i]]
        sines, cosines = sums[:h], sums[h:]
        row = turns[i]
        for j in range(h):
            t = row[j] * scale
            s, c = half_turn(_F(t - np.rint(t)))
            sines[j] += np.float64(_TWO * s * c)
            cosines[j] += np.float64(_ONE - _TWO * s * s)


@kernel()
def add_pairs(values, left, right, is_diagonal, out):
    """Add the values of pairs of rows to the sum of their units, each pair of different rows once.

    A pair of two rows of one unit counts twice, in either order, as pairs of two units do in two
    places: of these only the lower triangle is written.

    Parameters
    ----------
    values : float64, shape (n, m)
    left, right : int64, shapes (n,), (m,), ascending
        Units; those on the left are not below those on the right.
    is_diagonal : bool
        Both are the same rows: those on the right count up to the one on the left.
    out : float64, shape (n_units, n_units), added to
    """
    for i in range(values.shape[0]):
        unit, j = left[i], 0
        stop = i if is_diagonal else values.shape[1]
        while j < stop:
            other, total = right[j], 0.0
            while j < stop and right[j] == other:
                total += values[i, j]
                j += 1
            out[unit, other] += 2 * total if unit == other else total
        if is_diagonal:
            out[unit, unit] += values[i, i]
