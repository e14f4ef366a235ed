# mypy: disallow-untyped-defs=False
"""Gaussian kernel values of float32 rows, from their matrix product."""

from __future__ import annotations

import numpy as np

from ....core.compiling import kernel, subkernel
from ....core.sine_kernels import FAST

_F = np.float32
LOG2_E = _F(1.4426950408889634)
# ln 2 in two parts, the first with trailing zero bits: n · part is exact for the n there are
_LN2_1, _LN2_2 = _F(0.693359375), _F(-2.12194440e-4)
# (exp(r) − 1 − r) / r² on |r| ≤ ln 2 / 2: Cephes' expf
E0, _E1, _E2 = _F(0.5), _F(0.16666665459), _F(0.041665795894)
_E3, _E4, _E5 = _F(0.0083334519073), _F(0.0013981999507), _F(1.9875691500e-4)
_ONE, _HALF, ZERO = _F(1), _F(0.5), _F(0)
MIN_EXPONENT = _F(-87)  # exp of less is not a normal float32

# FAST has no "reassoc", which would fold the two parts of ln 2 into one and lose their digits.


@subkernel(fastmath=FAST)
def decay(x):
    """Return exp(x) for x ≤ 0 to 2e-7, or 1e-38 instead of less; loops over it vectorise."""
    x = min(ZERO, max(MIN_EXPONENT, x))
    q = np.floor(x * LOG2_E + _HALF)
    r = (x - q * _LN2_1) - q * _LN2_2
    tail = E0 + r * (_E1 + r * (_E2 + r * (_E3 + r * (_E4 + r * _E5))))
    power = np.int32((np.int32(q) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (_ONE + (r + r * r * tail)) * power


@kernel(fastmath=FAST)
def gaussian_values(begin, end, products, rows, others):
    """Replace aᵀb by exp(−‖a − b‖² / 2), in place.

    Parameters
    ----------
    begin, end : int
        The rows that are replaced.
    products : float32, shape (n, m)
        Written; as exact as `decay`.
    rows, others : float32, shapes (n,) and (m,)
        ‖a‖² / 2 and ‖b‖² / 2.
    """
    for i in range(begin, end):
        row, own = products[i], rows[i]
        for j in range(row.shape[0]):
            row[j] = decay((row[j] - own) - others[j])
