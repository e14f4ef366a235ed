"""Sums of sines and cosines of phases at one scale, over the rows of each unit; serial."""

from __future__ import annotations

import numpy as np

from ...compiling import kernel

_F = np.float32
# sin(πr) / r and (cos(πr) − 1) / r² in powers of r²: least largest error on |r| ≤ ½ (5e-8)
S0, S1, S2, S3, S4 = (
    _F(3.14159258),
    _F(-5.167706866),
    _F(2.550031226),
    _F(-0.5980444467),
    _F(0.07721892035),
)
C1, C2, C3, C4 = _F(-4.934795518), _F(4.058451346), _F(-1.33209388), _F(0.2200806714)
ONE, TWO = _F(1), _F(2)


@kernel(fastmath={"contract", "nsz"})
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
            r = _F(t - np.rint(t))
            w = r * r
            s = r * (S0 + w * (S1 + w * (S2 + w * (S3 + w * S4))))
            c = ONE + w * (C1 + w * (C2 + w * (C3 + w * C4)))
            sines[j] += np.float64(TWO * s * c)
            cosines[j] += np.float64(ONE - TWO * s * s)
