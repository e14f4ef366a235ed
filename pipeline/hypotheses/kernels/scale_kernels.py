"""Sums of sines and cosines of phases at one scale, over the rows of each unit; serial."""

from __future__ import annotations

import numpy as np

from ...compiling import kernel
from ...sine_kernels import FAST, half_turn

_F = np.float32
ONE, TWO = _F(1), _F(2)


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
            sines[j] += np.float64(TWO * s * c)
            cosines[j] += np.float64(ONE - TWO * s * s)
