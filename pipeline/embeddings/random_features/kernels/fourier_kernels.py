# mypy: disallow-untyped-defs=False
"""The fused sine and cosine of random phases, in float32."""

from __future__ import annotations

import numpy as np

from ....core.compiling import kernel
from ....core.sine_kernels import FAST, sine_cosine_of

_F = np.float32
_LARGEST = _F(8192)  # beyond it, the reduction of `sine_cosine_of` loses digits


@kernel(fastmath=FAST)
def sine_cosine(begin, end, out, amplitude):
    """Replace phases by [sin, cos], in place.

    Parameters
    ----------
    begin, end : int
        First row that is replaced, and last row + 1.
    out : float32, shape (n, 2h)
        Phases in the first h columns. They are replaced by amplitude · sin, and the last h columns
        by amplitude · cos. The absolute error is below 2e-7 · amplitude for any finite phase.
    amplitude : float32
    """
    h = out.shape[1] // 2
    for i in range(begin, end):
        sine, cosine = out[i, :h], out[i, h:]
        large = 0
        for j in range(h):
            large += not (abs(sine[j]) <= _LARGEST)
        if large:
            for j in range(h):
                phase = np.float64(sine[j])
                sine[j] = amplitude * _F(np.sin(phase))
                cosine[j] = amplitude * _F(np.cos(phase))
            continue
        for j in range(h):
            sine[j], cosine[j] = sine_cosine_of(sine[j], amplitude)
