"""Spectra of shift-invariant kernels: random frequencies, regenerated from a seed anywhere.

By Bochner's theorem k(Δ) = E cos(ωᵀΔ) for frequencies ω drawn from the kernel's spectrum
(Sutherland 2016, §3.1). For kernels of width 1:

========== =============================================== ======================================
kernel     k(Δ)                                            ω
========== =============================================== ======================================
gaussian   exp(−‖Δ‖₂² / 2)                                 standard normal
laplacian  exp(−‖Δ‖₁)                                      independent standard Cauchy
matern     2^{1−ν} / Γ(ν) · r^ν K_ν(r), r = √(2ν) ‖Δ‖₂     multivariate t, 2ν degrees of freedom
========== =============================================== ======================================

Frequencies of width σ are these divided by σ. Block b comes from the counter-based
generator keyed by (seed, b): any worker makes any block, and more frequencies keep the first ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.arrays import Floats

FREQUENCIES_PER_BLOCK = 256  # drawn by one counter-based generator; part of the format
# A matrix of this order is decomposed whole however few of its columns are used: saved models of
# so many inputs keep the bits of earlier versions. It takes .2 s; of 5,863 inputs it took 30.
DECOMPOSED_WHOLE = 1024
DRAWN_AT_ONCE = 2**22  # numbers drawn and held, of a matrix of which a few columns are used


def draw_frequencies(
    kernel: str,
    n_inputs: int,
    n_frequencies: int,
    scale: float,
    seed: int,
    nu: float = 1.5,
    orthogonal: bool = False,
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """Frequencies in columns, shape (n_inputs, n_frequencies); a pure function of its arguments.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern"}
    scale : float
        Width σ of the kernel.
    seed : int
        Seed from 0 to 2^64 − 1.
    nu : float
        ν > 0 of the Matérn kernel; with ½ it is exp(−‖Δ‖₂).
    orthogonal : bool
        Gaussian frequencies orthogonal within blocks of n_inputs, with the lengths of
        independent ones.
    dtype : {float64, float32}
        Data type of the result; frequencies are drawn in float64, block by block.
    """
    width = n_inputs if orthogonal else FREQUENCIES_PER_BLOCK
    out = np.empty((n_inputs, n_frequencies), dtype)
    for block in range(-(-n_frequencies // width)):
        key = np.array([seed, block], np.uint64)
        generator = np.random.Generator(np.random.Philox(key=key))
        buffer = out[:, block * width : (block + 1) * width]
        if orthogonal:
            drawn = _orthogonal(generator, n_inputs, buffer.shape[1])
        else:
            drawn = _independent(generator, kernel, n_inputs, nu)
        buffer[:] = drawn[:, : buffer.shape[1]] / scale
    return out


def hadamard_order(n_inputs: int) -> int:
    """Return the order of the Hadamard matrices: a power of two, at least 8 and n_inputs."""
    return max(8, 1 << (n_inputs - 1).bit_length())


def draw_hadamard(
    n_inputs: int, n_frequencies: int, scale: float, seed: int, dtype: DTypeLike
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw what `structured_products` makes Gaussian frequencies of.

    Each product of three normalised Hadamard matrices with signs is orthogonal, so a row has the
    length of a Gaussian vector of R^p, for p = `hadamard_order`, after it is multiplied by it.

    Returns
    -------
    signs : shape (n_blocks, 3, p)
    lengths : shape (n_blocks, p)
    """
    p = hadamard_order(n_inputs)
    n_blocks = -(-n_frequencies // p)
    signs, lengths = np.empty((n_blocks, 3, p), dtype), np.empty((n_blocks, p), dtype)
    for block in range(n_blocks):
        key = np.array([seed, block], np.uint64)
        generator = np.random.Generator(np.random.Philox(key=key))
        signs[block] = 2 * generator.integers(0, 2, (3, p)) - 1
        lengths[block] = np.sqrt(generator.chisquare(p, p)) / (scale * p**1.5)
    return signs, lengths


def _independent(generator: np.random.Generator, kernel: str, n_inputs: int, nu: float) -> Floats:
    shape = (FREQUENCIES_PER_BLOCK, n_inputs)
    if kernel == "laplacian":
        return generator.standard_cauchy(shape).T
    normal = generator.standard_normal(shape).T
    if kernel == "matern":
        return normal * np.sqrt(2 * nu / generator.chisquare(2 * nu, shape[0]))
    return normal


def _orthogonal(generator: np.random.Generator, n_inputs: int, n_used: int) -> Floats:
    """Draw at least ``n_used`` columns of a block, shape (n_inputs, n_inputs or n_used)."""
    if n_inputs <= DECOMPOSED_WHOLE:
        n_used = n_inputs
    # the first columns of Q are those of a decomposition of the first columns, up to rounding
    directions, r = np.linalg.qr(_first_columns(generator, n_inputs, n_used))
    lengths = np.sqrt(generator.chisquare(n_inputs, size=n_inputs))
    return directions * np.sign(np.diag(r)) * lengths[:n_used]


def _first_columns(generator: np.random.Generator, n_inputs: int, n_used: int) -> Floats:
    """Return columns of a square matrix of normal numbers, all of which are drawn."""
    rows = max(1, DRAWN_AT_ONCE // n_inputs)
    parts = [
        generator.standard_normal((min(rows, n_inputs - start), n_inputs))[:, :n_used].copy()
        for start in range(0, n_inputs, rows)
    ]
    return np.concatenate(parts)
