# mypy: disallow-untyped-defs=False
"""One-dimensional basis functions by recurrence, without their norms, for a block of points.

All take coordinates ``x`` (shape (≥ m,), in [0, 1]), write ``table`` (shape (K, ≥ m): row k is
the k-th function) and use ``scratch`` (shape (7, ≥ m)); the dtype of the table is the working
precision. Everything runs along the points and vectorises.

Numba's cache of the kernels that call these does not notice a change here: after one, run
`make clean-kernels`.
"""

from __future__ import annotations

import math

from ...core.compiling import subkernel

# Without "nnan" and "ninf": a NaN that reaches a kernel must come out as NaN.
REASSOCIATING = {"reassoc", "contract", "arcp", "nsz"}

_SINE = tuple(
    (-1) ** i * (math.pi / 2) ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(9)
)


@subkernel(inline="always")
def _sine_terms(table):
    """Taylor coefficients of sin(πt/2), in the precision of the table."""
    of = table.dtype.type
    return (
        of(_SINE[0]),
        of(_SINE[1]),
        of(_SINE[2]),
        of(_SINE[3]),
        of(_SINE[4]),
        of(_SINE[5]),
        of(_SINE[6]),
        of(_SINE[7]),
        of(_SINE[8]),
    )


@subkernel(fastmath=REASSOCIATING, inline="always")
def _sin_quarter(t, c):
    """sin(πt/2) for 0 ≤ t ≤ ½ (error of the nine terms < 2e-17)."""
    u = t * t
    p = c[8] * u + c[7]
    p = p * u + c[6]
    p = p * u + c[5]
    p = p * u + c[4]
    p = p * u + c[3]
    p = p * u + c[2]
    p = p * u + c[1]
    p = p * u + c[0]
    return p * t


@subkernel(fastmath=REASSOCIATING)
def fill_cosine(x, m, table, scratch):
    """Write cos(kπx).

    With θ = πx folded to [0, π/2], δ = 4 sin²(θ/2) and the differences d_{k+1} = d_k − δ c_k,
    c_{k+1} = c_k + d_{k+1}: the recurrence in the form whose error does not grow near the edges
    (Reinsch).
    """
    n_functions = table.shape[0]
    delta, sign, value, step = scratch[0], scratch[1], scratch[2], scratch[3]
    terms = _sine_terms(table)
    unity, half, four = table.dtype.type(1), table.dtype.type(0.5), table.dtype.type(4)
    for b in range(m):
        t = x[b]
        flip = t > half
        t = unity - t if flip else t
        s = _sin_quarter(t, terms)
        delta[b] = four * s * s
        sign[b] = -unity if flip else unity
        step[b] = -half * delta[b]
        value[b] = unity + step[b]
        table[0, b] = unity
    for k in range(1, n_functions):
        row = table[k]
        if k == 1:
            for b in range(m):
                row[b] = value[b] * sign[b]
        elif k % 2 == 1:
            for b in range(m):
                step[b] -= delta[b] * value[b]
                value[b] += step[b]
                row[b] = value[b] * sign[b]
        else:
            for b in range(m):
                step[b] -= delta[b] * value[b]
                value[b] += step[b]
                row[b] = value[b]


@subkernel(fastmath=REASSOCIATING)
def fill_trigonometric(x, m, table, scratch):
    """1, cos(2πx), sin(2πx), cos(4πx), … by the same recurrence, folded to a quarter turn."""
    n_functions = table.shape[0]
    delta, parity, mirror = scratch[0], scratch[1], scratch[2]
    cosine, cosine_step, sine, sine_step = scratch[3], scratch[4], scratch[5], scratch[6]
    unity, half, four, two = (
        table.dtype.type(1),
        table.dtype.type(0.5),
        table.dtype.type(4),
        table.dtype.type(2),
    )
    quarter = table.dtype.type(0.25)
    terms = _sine_terms(table)
    for b in range(m):
        t = x[b]
        back = t > half
        t = unity - t if back else t
        flip = t > quarter
        t = half - t if flip else t
        s = _sin_quarter(two * t, terms)
        c = (
            _sin_quarter(unity - two * t, terms)
            if t > quarter * half
            else (unity - two * _sin_quarter(t, terms) * _sin_quarter(t, terms))
        )
        mirror[b] = -unity if back else unity
        parity[b] = -unity if flip else unity
        delta[b] = four * s * s
        cosine_step[b] = -half * delta[b]
        cosine[b] = unity + cosine_step[b]
        sine[b] = two * s * c
        sine_step[b] = sine[b]
        table[0, b] = unity
    for i in range(1, n_functions):
        row = table[i]
        k = (i + 1) // 2
        if i % 2 == 1:
            if k > 1:
                for b in range(m):
                    cosine_step[b] -= delta[b] * cosine[b]
                    cosine[b] += cosine_step[b]
                    sine_step[b] -= delta[b] * sine[b]
                    sine[b] += sine_step[b]
            for b in range(m):
                row[b] = cosine[b] * parity[b] if k % 2 == 1 else cosine[b]
        else:
            for b in range(m):
                row[b] = sine[b] * mirror[b] if k % 2 == 1 else sine[b] * mirror[b] * parity[b]


@subkernel(fastmath=REASSOCIATING)
def fill_legendre(x, m, table, scratch):
    """P_k(2x − 1) by (k+1) P_{k+1} = (2k+1) t P_k − k P_{k−1}."""
    n_functions = table.shape[0]
    t = scratch[0]
    unity, two = table.dtype.type(1), table.dtype.type(2)
    for b in range(m):
        t[b] = two * x[b] - unity
        table[0, b] = unity
    if n_functions > 1:
        for b in range(m):
            table[1, b] = t[b]
    for k in range(1, n_functions - 1):
        first = table.dtype.type((2 * k + 1) / (k + 1))
        second = table.dtype.type(k / (k + 1))
        below, here, above = table[k - 1], table[k], table[k + 1]
        for b in range(m):
            above[b] = first * t[b] * here[b] - second * below[b]
