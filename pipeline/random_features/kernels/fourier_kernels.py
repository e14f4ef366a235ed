"""The fused sine and cosine of random phases, in float32."""

from __future__ import annotations

import numpy as np

from ...compiling import kernel

_F = np.float32
TWO_OVER_PI = _F(0.6366197723675814)
# π/2 in three parts, the first two with trailing zero bits: q · part is exact for q < 2^13
HALF_PI_1 = _F(1.5703125)
HALF_PI_2 = _F(4.837512969970703e-4)
HALF_PI_3 = _F(7.549789948768648e-8)
S1, S2, S3, S4 = _F(-1 / 6), _F(1 / 120), _F(-1 / 5040), _F(1 / 362880)
C1, C2, C3, C4 = _F(-0.5), _F(1 / 24), _F(-1 / 720), _F(1 / 40320)
ONE, HALF = _F(1), _F(0.5)
LARGEST = _F(8192)  # beyond, the reduction above loses digits

# No "reassoc": it would fold the three parts of π/2 into one and lose their digits.
FAST = {"contract", "nsz"}


@kernel(fastmath=FAST)
def sine_cosine(begin, end, out, amplitude):
    """Replace phases by [sin, cos], in place.

    Parameters
    ----------
    begin, end : int
        The rows that are replaced.
    out : float32, shape (n, 2h)
        The phases in the first h columns; written: amplitude · sin in these, amplitude · cos in
        the last h. Absolute error below 2e-7 · amplitude for any finite phase.
    amplitude : float32
    """
    h = out.shape[1] // 2
    for i in range(begin, end):
        sine, cosine = out[i, :h], out[i, h:]
        large = 0
        for j in range(h):
            large += not (abs(sine[j]) <= LARGEST)
        if large:
            for j in range(h):
                phase = np.float64(sine[j])
                sine[j] = amplitude * _F(np.sin(phase))
                cosine[j] = amplitude * _F(np.cos(phase))
            continue
        for j in range(h):
            x = sine[j]
            q = np.floor(x * TWO_OVER_PI + HALF)
            r = ((x - q * HALF_PI_1) - q * HALF_PI_2) - q * HALF_PI_3
            u = r * r
            s = r + r * u * (S1 + u * (S2 + u * (S3 + u * S4)))
            c = ONE + u * (C1 + u * (C2 + u * (C3 + u * C4)))
            quadrant = np.int32(q)
            swap = (quadrant & np.int32(1)) != 0
            a = c if swap else s
            b = s if swap else c
            sine[j] = -amplitude * a if (quadrant & np.int32(2)) != 0 else amplitude * a
            flip = ((quadrant + np.int32(1)) & np.int32(2)) != 0
            cosine[j] = -amplitude * b if flip else amplitude * b
