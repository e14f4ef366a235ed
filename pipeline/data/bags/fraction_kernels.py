# mypy: disallow-untyped-defs=False
"""Coordinates as 16-bit fractions of their box, and back."""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel

LAST = np.uint16(65534)  # the fraction 1; 0 is the fraction 0
_MISSING = np.uint16(65535)  # a point that was never written, or was deleted


@kernel()
def encode_fractions(points, lo, width, out):
    """Write the nearest fractions; return the first row beyond half a step outside, or -1.

    Parameters
    ----------
    points : float, shape (n, d)
    lo, width : float64, shape (d,)
    out : uint16, shape (n, d)
    """
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            code = np.floor((points[i, j] - lo[j]) / width[j] * LAST + 0.5)
            if not 0 <= code <= LAST:
                return i
            out[i, j] = np.uint16(code)
    return -1


@kernel()
def decode_fractions(codes, lo, step, out):
    """Write coordinates; NaN where a fraction is missing.

    Parameters
    ----------
    codes : uint16, shape (n · d,)
        Row by row.
    lo, step : float64, shape (w · d,)
        Values of w consecutive rows, so that the loop over many values is vectorized.
    out : float32, shape (n · d,)
    """
    wide = len(lo)
    for start in range(0, len(codes), wide):
        part, to = codes[start : start + wide], out[start : start + wide]
        for j in range(len(part)):
            value = np.float32(lo[j] + part[j] * step[j])
            to[j] = value if part[j] != _MISSING else np.float32(np.nan)
