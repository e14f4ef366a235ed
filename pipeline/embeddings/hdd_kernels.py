"""The pointwise step of HDD embeddings: from density values to √w · p^{½+iλ}."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

_F = np.float32
TWO_OVER_PI = _F(0.6366197723675814)
# π/2 and ln 2 in parts: the leading ones have trailing zero bits, so that q · part is exact
HALF_PI_1, HALF_PI_2, HALF_PI_3 = _F(1.5703125), _F(4.837512969970703e-4), _F(7.549789948768648e-8)
LN2_1, LN2_2 = _F(0.693359375), _F(-2.12194440e-4)
S1, S2, S3, S4 = _F(-1 / 6), _F(1 / 120), _F(-1 / 5040), _F(1 / 362880)
C1, C2, C3, C4 = _F(-0.5), _F(1 / 24), _F(-1 / 720), _F(1 / 40320)
L1, L2, L3, L4 = _F(2 / 3), _F(2 / 5), _F(2 / 7), _F(2 / 9)
ONE, TWO, HALF, SQRT2 = _F(1), _F(2), _F(0.5), _F(1.4142135)
MANTISSA, EXPONENT_OF_ONE = np.int32(0x007FFFFF), np.int32(0x3F800000)

# No "reassoc": it would fold the parts of π/2 into one and lose their digits.
FAST = {"contract", "nsz"}


@njit(cache=True, fastmath=FAST)
def _roots_and_logs(density, floor, root, log):
    """√p and log p of p = max(density, floor) > 0, float32; √NaN is NaN, its log anything."""
    for j in range(len(density)):
        p = density[j]
        p = floor if p < floor else p
        root[j] = p
    bits = root.view(np.int32)
    for j in range(len(density)):
        exponent = (bits[j] >> np.int32(23)) - np.int32(127)
        log[j] = _F(exponent)
    # the mantissa in [1, 2), written where the parts of the logarithm are combined
    for j in range(len(density)):
        e = log[j]
        p = root[j]
        m = np.int32((bits[j] & MANTISSA) | EXPONENT_OF_ONE).view(np.float32)
        large = m > SQRT2
        m = m * HALF if large else m
        e = e + ONE if large else e
        s = (m - ONE) / (m + ONE)
        u = s * s
        series = s * (TWO + u * (L1 + u * (L2 + u * (L3 + u * L4))))
        log[j] = e * LN2_1 + (e * LN2_2 + series)
        root[j] = np.sqrt(p)


@njit(cache=True, fastmath=FAST)
def _powers_row(root, log, rate, weight, cosine, sine):
    """weight · root · cos(rate · log) and sin of it."""
    for j in range(len(root)):
        x = rate * log[j]
        q = np.floor(x * TWO_OVER_PI + HALF)
        r = ((x - q * HALF_PI_1) - q * HALF_PI_2) - q * HALF_PI_3
        u = r * r
        s = r + r * u * (S1 + u * (S2 + u * (S3 + u * S4)))
        c = ONE + u * (C1 + u * (C2 + u * (C3 + u * C4)))
        quadrant = np.int32(q)
        swap = (quadrant & np.int32(1)) != 0
        a = c if swap else s
        b = s if swap else c
        amplitude = weight * root[j]
        sine[j] = -amplitude * a if (quadrant & np.int32(2)) != 0 else amplitude * a
        flip = ((quadrant + np.int32(1)) & np.int32(2)) != 0
        cosine[j] = -amplitude * b if flip else amplitude * b


@njit(cache=True, parallel=True)
def powers_float32(density, floor, rates, weights, out):
    """Real and imaginary parts of weights[m] · p^{½ + i·rates[m]}.

    Parameters
    ----------
    density : float32, shape (n, G)
        Values below ``floor``, negative ones too, count as floor.
    floor : float32
    rates, weights : float32, shape (M,)
        A rate of 0 has no imaginary part.
    out : float32, shape (n, P, G), written
        Parts in order: real, imaginary of each node.
    """
    n, g = density.shape
    for i in prange(n):
        root, log = np.empty(g, np.float32), np.empty(g, np.float32)
        _roots_and_logs(density[i], floor, root, log)
        part = 0
        for m in range(len(rates)):
            if rates[m] == 0:
                for j in range(g):
                    out[i, part, j] = weights[m] * root[j]
                part += 1
            else:
                _powers_row(root, log, rates[m], weights[m], out[i, part], out[i, part + 1])
                part += 2


@njit(cache=True, parallel=True)
def powers_float64(density, floor, rates, weights, out):
    """`powers_float32` in double precision."""
    n, g = density.shape
    for i in prange(n):
        part = 0
        for m in range(len(rates)):
            for j in range(g):
                p = floor if density[i, j] < floor else density[i, j]
                amplitude, phase = weights[m] * np.sqrt(p), rates[m] * np.log(p)
                out[i, part, j] = amplitude * np.cos(phase)
                if rates[m] != 0:
                    out[i, part + 1, j] = amplitude * np.sin(phase)
            part += 1 if rates[m] == 0 else 2
