# mypy: disallow-untyped-defs=False
"""Products of vectors with structured random matrices, by fast Walsh-Hadamard transforms."""

from __future__ import annotations

import numpy as np

from ....core.compiling import kernel, subkernel


@subkernel(fastmath={"contract", "nsz"})
def walsh_hadamard(x):
    """Multiply by the Hadamard matrix of ±1, in place: p log₂ p additions.

    Parameters
    ----------
    x : float32 or float64, shape (p,)
        p is a power of two.
    """
    p = x.shape[0]
    for i in range(0, p if p >= 8 else 0, 8):  # three steps at once, in registers
        a0, a1 = x[i] + x[i + 1], x[i] - x[i + 1]
        a2, a3 = x[i + 2] + x[i + 3], x[i + 2] - x[i + 3]
        a4, a5 = x[i + 4] + x[i + 5], x[i + 4] - x[i + 5]
        a6, a7 = x[i + 6] + x[i + 7], x[i + 6] - x[i + 7]
        b0, b2, b1, b3 = a0 + a2, a0 - a2, a1 + a3, a1 - a3
        b4, b6, b5, b7 = a4 + a6, a4 - a6, a5 + a7, a5 - a7
        x[i], x[i + 4], x[i + 1], x[i + 5] = b0 + b4, b0 - b4, b1 + b5, b1 - b5
        x[i + 2], x[i + 6], x[i + 3], x[i + 7] = b2 + b6, b2 - b6, b3 + b7, b3 - b7
    h = 8 if p >= 8 else 1
    while h < p:
        for start in range(0, p, 2 * h):
            low, high = x[start : start + h], x[start + h : start + 2 * h]
            for j in range(h):
                a, b = low[j], high[j]
                low[j] = a + b
                high[j] = a - b
        h *= 2


@kernel(fastmath={"contract", "nsz"})
def walsh_hadamard_rows(begin, end, rows):
    """Multiply each row of a range by the Hadamard matrix of ±1, in place; see `walsh_hadamard`."""
    for i in range(begin, end):
        walsh_hadamard(rows[i])


@kernel(fastmath={"contract", "nsz"})
def structured_products(begin, end, rows, signs, lengths, out):
    """Write rows times S H D₁ H D₂ H D₃ of each block, one block after the other.

    Parameters
    ----------
    begin, end : int
        The rows that are multiplied.
    rows : float32 or float64, shape (n, s)
    signs : of the same type, shape (n_blocks, 3, p)
        D₃, D₂ and D₁: of ±1. p is a power of two, at least 8 and s.
    lengths : shape (n_blocks, p)
        S.
    out : shape (n, m)
        Written; m is at most n_blocks p.
    """
    s, p, m = rows.shape[1], signs.shape[2], out.shape[1]
    x = np.empty(p, rows.dtype)
    for i in range(begin, end):
        for block in range(signs.shape[0]):
            first = signs[block, 0]
            for j in range(s):
                x[j] = rows[i, j] * first[j]
            x[s:] = 0
            for step in range(1, 3):
                walsh_hadamard(x)
                turn = signs[block, step]
                for j in range(p):
                    x[j] *= turn[j]
            walsh_hadamard(x)
            start, length = block * p, lengths[block]
            for j in range(min(p, m - start)):
                out[i, start + j] = x[j] * length[j]
