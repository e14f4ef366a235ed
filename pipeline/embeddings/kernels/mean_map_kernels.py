# mypy: disallow-untyped-defs=False
"""Means of random sines and cosines over ragged bags.

Points are taken one at a time, frequencies along vector registers, so that the sums are plain
vectors and nothing is stored in between. Phases are counted in turns, so that taking the nearest
integer off is exact. With s = sin(πr) and c = cos(πr) of the rest r, sin(2πr) = 2sc and
cos(2πr) = 1 − 2s²: so Σ sc and Σ s² are all that is summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.compiling import kernel
from ...core.sine_kernels import FAST, half_turn

_BLOCK = 256  # points summed in the working precision before they are added in double

# Taylor's, whose rest is below 1e-16
_PI = math.pi
D0, D1, D2, D3, D4, D5, D6, D7, D8, D9, D10 = (
    (-1) ** k * _PI ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)
)
_E1, _E2, _E3, _E4, _E5, E6, E7, E8, E9, E10, E11 = (
    (-1) ** k * _PI ** (2 * k) / math.factorial(2 * k) for k in range(1, 12)
)


def _make_mean_map(narrow: bool) -> Callable[..., Any]:
    """Return `mean_sines_cosines` for one precision: the other's sums are not compiled with it."""

    @kernel(fastmath=FAST)
    def mean_sines_cosines(
        begin, end, points, offsets, groups, lo, inverse, drop, margin, turns, out, n_outside
    ):
        """Mean of √(2/D) [sin(2πωᵀx), cos(2πωᵀx)] over a bag's points.

        Sutherland et al. 2016, §5; FastMMD 2015, Alg. 2.

        Parameters
        ----------
        begin, end : int
            The bags that are embedded.
        points : (float32, float64), each of shape (n_points, d) or (0, d)
            See `arrays.by_precision`.
        offsets, groups, lo, inverse, drop
            See `bases.kernel_arguments`; one group of all columns.
        margin : float64
            See `confine_kernels.confine`.
        turns : of out's dtype, shape (2 ⌈d/2⌉, D / 2)
            Frequencies ω in turns per unit; a row of zeros after an odd d.
        out : float32 or float64, shape (n_bags, D), written; its dtype is the working precision
            NaN where no point was kept.
        n_outside : int64, shape (n_bags,), written
        """
        single, double = points
        columns = groups[0]
        n_rows, n_frequencies = turns.shape
        amplitude = 1.0 / np.sqrt(n_frequencies)
        least, most = 0.0 - margin, 1.0 + margin
        x = np.empty(n_rows, out.dtype)
        start = np.empty(n_frequencies, out.dtype)
        products, squares = np.empty(n_frequencies, out.dtype), np.empty(n_frequencies, out.dtype)
        sums = np.empty((2, n_frequencies), np.float64)
        x[:] = 0
        start[:] = 0
        for i in range(begin, end):
            for j in range(n_frequencies):
                sums[0, j] = 0.0
                sums[1, j] = 0.0
            n_kept, outside = 0, 0
            for first in range(offsets[i], offsets[i + 1], _BLOCK):
                for j in range(n_frequencies):
                    products[j] = 0
                    squares[j] = 0
                last = offsets[i + 1]
                for row in range(first, last if last < first + _BLOCK else first + _BLOCK):
                    inside = True
                    for j in range(len(columns)):  # as `confine_kernels.confine`
                        c = columns[j]
                        p = double[row, c] if len(double) else np.float64(single[row, c])
                        v = (p - lo[c]) * inverse[c]
                        inside &= not (v < 0.0 or v > 1.0)
                        v = least if v < least else v
                        x[j] = most if v > most else v
                    outside += not inside
                    if drop and not inside:
                        continue
                    n_kept += 1
                    for k in range(0, n_rows - 2, 2):
                        for j in range(n_frequencies):
                            before = start[j] if k > 0 else start.dtype.type(0)
                            start[j] = before + (x[k] * turns[k, j] + x[k + 1] * turns[k + 1, j])
                    u = turns[n_rows - 2]
                    v = turns[n_rows - 1]
                    x1 = x[n_rows - 2]
                    x2 = x[n_rows - 1]
                    for j in range(n_frequencies):
                        t = start[j] + (x1 * u[j] + x2 * v[j])
                        r = t - np.rint(t)
                        if narrow:
                            s, c = half_turn(r)
                        else:
                            w = r * r
                            s = D6 + w * (D7 + w * (D8 + w * (D9 + w * D10)))
                            s = D0 + w * (D1 + w * (D2 + w * (D3 + w * (D4 + w * (D5 + w * s)))))
                            s = r * s
                            c = E6 + w * (E7 + w * (E8 + w * (E9 + w * (E10 + w * E11))))
                            c = _E1 + w * (_E2 + w * (_E3 + w * (_E4 + w * (_E5 + w * c))))
                            c = 1.0 + w * c
                        products[j] += s * c
                        squares[j] += s * s
                for j in range(n_frequencies):
                    sums[0, j] += products[j]
                    sums[1, j] += squares[j]
            n_outside[i] = outside
            for j in range(n_frequencies):
                if n_kept == 0:
                    out[i, j], out[i, n_frequencies + j] = np.nan, np.nan
                else:
                    out[i, j] = amplitude * 2.0 * sums[0, j] / n_kept
                    out[i, n_frequencies + j] = amplitude * (1.0 - 2.0 * sums[1, j] / n_kept)

    return mean_sines_cosines


MEAN_MAPS = {4: _make_mean_map(True), 8: _make_mean_map(False)}
"""`mean_sines_cosines` by the size of its numbers."""
