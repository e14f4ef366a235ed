# mypy: disallow-untyped-defs=False
"""HDD embeddings from a density's coefficients: grid values, √w · p^{α/2+iλ}, projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.compiling import UNSIGNED as _U, kernel, subkernel
from ...core.sine_kernels import FAST, sine_cosine_of

_F = np.float32
# ln 2 in parts: the leading one has trailing zero bits, so that q · part is exact
_LN2_1, _LN2_2 = _F(0.693359375), _F(-2.12194440e-4)
L1, _L2, L3, L4 = _F(2 / 3), _F(2 / 5), _F(2 / 7), _F(2 / 9)
_ONE, _TWO, _HALF, SQRT2 = _F(1), _F(2), _F(0.5), _F(1.4142135)
MANTISSA, EXPONENT_OF_ONE = np.int32(0x007FFFFF), np.int32(0x3F800000)


@subkernel(fastmath=FAST)
def _roots_and_logs(density, floor, exponent, root, log):
    """Write p^exponent and log p of p = max(density, floor), float32.

    The logarithm means anything for p > 0 alone.
    """
    for j in range(len(root)):
        p = density[j]
        p = floor if p < floor else p
        root[j] = p
    bits = root.view(np.int32)
    for j in range(len(root)):
        log[j] = _F((bits[j] >> np.int32(23)) - np.int32(127))
    # the mantissa in [1, 2), written where the parts of the logarithm are combined
    for j in range(len(root)):
        e = log[j]
        p = root[j]
        m = np.int32((bits[j] & MANTISSA) | EXPONENT_OF_ONE).view(np.float32)
        large = m > SQRT2
        m = m * _HALF if large else m
        e = e + _ONE if large else e
        s = (m - _ONE) / (m + _ONE)
        u = s * s
        series = s * (_TWO + u * (L1 + u * (_L2 + u * (L3 + u * L4))))
        log[j] = e * _LN2_1 + (e * _LN2_2 + series)
    if exponent == _HALF:
        for j in range(len(root)):
            root[j] = np.sqrt(root[j])
    elif exponent != _ONE:
        for j in range(len(root)):
            root[j] = root[j] ** exponent


@subkernel(fastmath=FAST)
def _powers_row(root, log, rate, weight, cosine, sine):
    """Write weight · root · cos(rate · log) and weight · root · sin(rate · log)."""
    for j in range(len(root)):
        sine[j], cosine[j] = sine_cosine_of(rate * log[j], weight * root[j])


@subkernel(fastmath=FAST)
def powers_float32(density, floor, exponent, rates, weights, parts):
    """Write rows of ``parts``: weights[m] · p^{exponent + i·rates[m]}, real and imaginary.

    A rate of 0 has no imaginary part.
    """
    n = parts.shape[1]
    root, log = np.empty(n, np.float32), np.empty(n, np.float32)
    _roots_and_logs(density, floor, exponent, root, log)
    part = 0
    for m in range(len(rates)):
        if rates[m] == 0:
            for j in range(len(root)):
                parts[part, j] = weights[m] * root[j]
            part += 1
        else:
            _powers_row(root, log, rates[m], weights[m], parts[part], parts[part + 1])
            part += 2


@subkernel()
def powers_float64(density, floor, exponent, rates, weights, parts):
    """`powers_float32` in double precision."""
    part = 0
    for m in range(len(rates)):
        for j in range(parts.shape[1]):
            p = floor if density[j] < floor else density[j]
            amplitude = weights[m] * (p if exponent == 1.0 else p**exponent)
            if rates[m] == 0:
                parts[part, j] = amplitude
            else:
                phase = rates[m] * np.log(p)
                parts[part, j] = amplitude * np.cos(phase)
                parts[part + 1, j] = amplitude * np.sin(phase)
        part += 1 if rates[m] == 0 else 2


# Flat arrays and places in them: a slice takes Numba as long to compile as fifteen numbers.
@subkernel(fastmath=FAST)
def _separable(values, axes, g, a, b, matrix, transposed, first, second):
    """Apply a flat matrix (a, b) to each of the g axes of a flat tensor a^g, or to none.

    Products of a few dozen rows and columns, which stay in the L1 cache. The result, flat b^g, is
    the beginning of one of the scratch arrays, or ``values``.
    """
    source, target = values, first
    for axis in range(axes):
        lead, rest = b**axis, a ** (g - 1 - axis)
        is_last = axis == g - 1
        # of the last axis one product from the right, else one from the left per leading index
        left = source if is_last else transposed
        right = matrix if is_last else source
        columns = b if is_last else rest
        for i in range(lead * b if not is_last else lead):
            # a row of the result
            block = 0 if is_last else i // b * a * rest
            at = i * a if is_last else i % b * a
            to = i * columns
            for j in range(columns):
                target[_U(to + j)] = 0
            k = 0
            while k + 4 <= a:
                a0 = left[_U(at + k)]
                a1 = left[_U(at + k + 1)]
                a2 = left[_U(at + k + 2)]
                a3 = left[_U(at + k + 3)]
                r0 = block + k * columns
                r1 = r0 + columns
                r2 = r1 + columns
                r3 = r2 + columns
                for j in range(columns):
                    two = a0 * right[_U(r0 + j)] + a1 * right[_U(r1 + j)]
                    target[_U(to + j)] += two + (a2 * right[_U(r2 + j)] + a3 * right[_U(r3 + j)])
                k += 4
            while k < a:
                a0 = left[_U(at + k)]
                r0 = block + k * columns
                for j in range(columns):
                    target[_U(to + j)] += a0 * right[_U(r0 + j)]
                k += 1
        source, target = target, second if axis % 2 == 0 else first
    return source


def _make_powers(single: bool) -> Callable[..., Any]:
    """Return `project_powers` for one precision: the other's powers are not compiled with it."""

    @kernel()
    def project_powers(
        begin,
        end,
        estimates,
        g,
        n_coefficients,
        n_grid,
        n_functions,
        to_grid,
        to_grid_t,
        from_grid,
        from_grid_t,
        floor,
        exponent,
        rates,
        weights,
        n_parts,
        chosen,
        out,
    ):
        """From densities to the coefficients of their powers: to a grid, pointwise, and back.

        Parameters
        ----------
        begin, end : int
            The rows of ``estimates`` that are taken.
        estimates : float32 or float64, shape (n, K^g), or (n, G^g)
            Coefficients, or, where K is 0, values on the grid.
        g : int
            Dimensions.
        n_coefficients, n_grid, n_functions : int
            K, G and k.
        to_grid, to_grid_t : flat, of shapes (K, G) and (G, K)
            Functions on the grid's midpoints in one dimension, and transposed.
        from_grid, from_grid_t : flat, of shapes (G, k) and (k, G)
        floor : of the estimates' dtype
            Densities below, negative ones too, count as this; −inf: none, for an exponent of 1 and
            rates of 0.
        exponent : of the estimates' dtype
        rates, weights : of the estimates' dtype, shape (M,)
            A rate of 0 has no imaginary part.
        n_parts : int
        chosen : int64, shape (|V|,)
            Which of the k^g are wanted.
        out : shape (n, n_parts · |V|), written
        """
        longest = max(n_coefficients, n_grid, n_functions) ** g
        dtype = estimates.dtype
        first, second = np.empty(longest, dtype), np.empty(longest, dtype)
        parts = np.empty((n_parts, n_grid**g), dtype)
        for i in range(begin, end):
            # one call for both ways: what is inlined twice is compiled twice
            for part in range(-1, n_parts):
                source, axes = estimates[i], g if n_coefficients > 0 else 0
                a, b, matrix, transposed = n_coefficients, n_grid, to_grid, to_grid_t
                if part >= 0:
                    source, axes = parts[part], g
                    a, b, matrix, transposed = n_grid, n_functions, from_grid, from_grid_t
                values = _separable(source, axes, g, a, b, matrix, transposed, first, second)
                if part >= 0:
                    for v in range(len(chosen)):
                        out[i, part * len(chosen) + v] = values[chosen[v]]
                elif single:
                    powers_float32(values, floor, exponent, rates, weights, parts)
                else:
                    powers_float64(values, floor, exponent, rates, weights, parts)

    return project_powers


POWERS = {4: _make_powers(True), 8: _make_powers(False)}
"""`project_powers` by the size of its numbers."""
