"""Sums of Gaussians with mirror images at the edges, for every bag at every integration point."""

from __future__ import annotations

import numpy as np

from bagbasis.core.compiling import kernel, subkernel
from bagbasis.embeddings.kernels import hdd_kernels

_F = np.float32
LOG2_E, LN2_1, LN2_2 = _F(1.4426950408889634), _F(0.693359375), _F(-2.12194440e-4)
E2, E3, E4 = _F(0.5), _F(1 / 6), _F(1 / 24)
E5, E6, E7 = _F(1 / 120), _F(1 / 720), _F(1 / 5040)
INVERSE = (0.0, *(1 / k for k in range(1, 13)))
ONE, HALF, LEAST = _F(1), _F(0.5), _F(-87)

# No "reassoc": it would fold the parts of ln 2 into one and lose their digits.
FAST = {"contract", "nsz"}


@subkernel(fastmath=FAST)
def _add_exponentials_float32(exponent, row):
    """row += exp(exponent) for exponents ≤ 0, to 2e-7; numpy's exp would not vectorise here."""
    for e in range(len(row)):
        x = max(exponent[e], LEAST)
        n = np.floor(x * LOG2_E + HALF)
        r = (x - n * LN2_1) - n * LN2_2
        series = ONE + r * (ONE + r * (E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * E7))))))
        row[e] += series * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@subkernel(fastmath=FAST)
def _add_exponentials_float64(exponent, row):
    """`_add_exponentials_float32` in double precision, to 4e-16."""
    for e in range(len(row)):
        x = max(exponent[e], -700.0)
        n = np.floor(x * 1.4426950408889634 + 0.5)
        r = (x - n * 0.693145751953125) - n * 1.42860682030941723212e-6
        series = 1.0 + r / 13.0
        for k in range(12, 0, -1):
            series = 1.0 + series * r * INVERSE[k]
        bits = (np.int64(np.int32(n)) + np.int64(1023)) << np.int64(52)
        row[e] += series * np.int64(bits).view(np.float64)


@subkernel(fastmath=FAST)
def _mirror(x, reach, images):
    """The mirror images 2m ± x within ``reach`` of [0, 1], into ``images``; how many."""
    count = 0
    span = int(np.ceil(0.5 * reach))
    for m in range(-span, span + 1):
        for sign in (-1, 1):
            image = 2 * m + sign * x
            if -reach <= image <= 1 + reach:
                images[count] = image
                count += 1
    return count


@subkernel(fastmath=FAST)
def _exponents(at, images, chosen, factor, exponent):
    """factor · ‖at − image‖² of each integration point; factor < 0."""
    for d in range(len(chosen)):
        centre, axis = images[d, chosen[d]], at[d]
        for e in range(len(exponent)):
            gap = axis[e] - centre
            square = factor * (gap * gap)
            exponent[e] = square if d == 0 else exponent[e] + square


@kernel()
def reflected_densities(begin, end, unit, saved, offsets, at, bandwidth, reach, out):
    """The Gaussian density estimate with reflection at the edges, of each bag at each point.

    Every bag's point meets every integration point: the O(n · n_e) sum of 001, §3.5. A mirror
    image farther than ``reach`` from the cube is left out.

    Parameters
    ----------
    unit : shape (n_points, g), of out's dtype, in [0, 1]
    kept : bool, shape (n_points,)
        Points that count.
    offsets : int64, shape (n_bags + 1,)
    at : shape (g, n_e), of out's dtype
        Integration points.
    bandwidth, reach : of out's dtype
    out : float32 or float64, shape (n_bags, n_e), written
        NaN for a bag without a kept point.
    """
    g, n_e = at.shape
    single = out.itemsize == 4
    factor = out.dtype.type(-0.5) / (bandwidth * bandwidth)
    norm = (np.sqrt(2 * np.pi) * bandwidth) ** -g
    for i in range(begin, end):
        row = out[i]
        row[:] = 0
        exponent = np.empty(n_e, out.dtype)
        images = np.empty((g, 2 * int(np.ceil(reach)) + 6), out.dtype)
        counts, chosen = np.empty(g, np.int64), np.empty(g, np.int64)
        n = 0
        for j in range(offsets[i], offsets[i + 1]):
            if not saved[j]:
                continue
            n += 1
            total = 1
            for d in range(g):
                counts[d] = _mirror(unit[j, d], reach, images[d])
                total *= counts[d]
            for combination in range(total):
                rest = combination
                for d in range(g):
                    chosen[d] = rest % counts[d]
                    rest //= counts[d]
                _exponents(at, images, chosen, factor, exponent)
                if single:
                    _add_exponentials_float32(exponent, row)
                else:
                    _add_exponentials_float64(exponent, row)
        scale = norm / n if n else np.nan
        for e in range(n_e):
            row[e] = row[e] * scale


@kernel()
def powers(begin, end, density, floor, exponent, rates, weights, out):
    """Real and imaginary parts of weights[m] · p^{exponent + i·rates[m]}.

    Parameters
    ----------
    density : float32 or float64, shape (n, G)
        Values below ``floor``, negative ones too, count as floor.
    floor : of density's dtype
        −inf: none, for an exponent of 1 and rates of 0.
    exponent : of density's dtype
    rates, weights : of density's dtype, shape (M,)
        A rate of 0 has no imaginary part.
    out : of density's dtype, shape (n, P, G), written
        Parts in order: real, imaginary of each node.
    """
    for i in range(begin, end):
        if density.itemsize == 4:
            hdd_kernels.powers_float32(density[i], floor, exponent, rates, weights, out[i])
        else:
            hdd_kernels.powers_float64(density[i], floor, exponent, rates, weights, out[i])
