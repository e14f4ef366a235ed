# mypy: disallow-untyped-defs=False
"""Sines and cosines in single precision, as the loops of kernels have them compiled in."""

from __future__ import annotations

import numpy as np

from .compiling import subkernel

_F = np.float32
# sin(πr) / r and (cos(πr) − 1) / r² in powers of r²: least largest error on |r| ≤ ½ (5e-8)
_S = (
    _F(3.14159258),
    _F(-5.167706866),
    _F(2.550031226),
    _F(-0.5980444467),
    _F(0.07721892035),
)
_C = _F(-4.934795518), _F(4.058451346), _F(-1.33209388), _F(0.2200806714)

_TWO_OVER_PI = _F(0.6366197723675814)
# π/2 in three parts, the first two with trailing zero bits: q · part is exact for q < 2^13
_HALF_PI = _F(1.5703125), _F(4.837512969970703e-4), _F(7.549789948768648e-8)
# Taylor's
_T = _F(-1 / 6), _F(1 / 120), _F(-1 / 5040), _F(1 / 362880)
_U = _F(-0.5), _F(1 / 24), _F(-1 / 720), _F(1 / 40320)
_ONE, _HALF = _F(1), _F(0.5)

# No "reassoc": it would fold the three parts of π/2 into one and lose their digits.
FAST = {"contract", "nsz"}


@subkernel(fastmath=FAST)
def half_turn(r):
    """Return sin(πr) and cos(πr) of |r| ≤ ½, float32; the error is below 1e-7."""
    w = r * r
    sine = r * (_S[0] + w * (_S[1] + w * (_S[2] + w * (_S[3] + w * _S[4]))))
    cosine = _ONE + w * (_C[0] + w * (_C[1] + w * (_C[2] + w * _C[3])))
    return sine, cosine


@subkernel(fastmath=FAST)
def sine_cosine_of(x, amplitude):
    """Return amplitude · sin(x) and amplitude · cos(x) of |x| ≤ 8192, float32."""
    q = np.floor(x * _TWO_OVER_PI + _HALF)
    r = ((x - q * _HALF_PI[0]) - q * _HALF_PI[1]) - q * _HALF_PI[2]
    u = r * r
    s = r + r * u * (_T[0] + u * (_T[1] + u * (_T[2] + u * _T[3])))
    c = _ONE + u * (_U[0] + u * (_U[1] + u * (_U[2] + u * _U[3])))
    quadrant = np.int32(q)
    swap = (quadrant & np.int32(1)) != 0
    a = c if swap else s
    b = s if swap else c
    flip = ((quadrant + np.int32(1)) & np.int32(2)) != 0
    sine = -amplitude * a if (quadrant & np.int32(2)) != 0 else amplitude * a
    cosine = -amplitude * b if flip else amplitude * b
    return sine, cosine
