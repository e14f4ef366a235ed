"""Gaussian initial fields, and the particles' displacements by Lagrangian perturbation theory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from bagbasis.core.arrays import Floats
from bagbasis.execution.worker_threads import worker_cores

from .cosmology import Growth

Modes = NDArray[np.complex128]


class Displacements(NamedTuple):
    """Zel'dovich's displacements today, and of second order; Mpc/h, (n³, 3), as in `lattice`."""

    first: Floats
    second: Floats


def wavenumbers(n: int, box_size: float) -> tuple[Floats, Floats]:
    """Return k in h/Mpc along an axis of n cells, and along the halved last one."""
    spacing = box_size / n
    return 2 * np.pi * fft.fftfreq(n, spacing), 2 * np.pi * fft.rfftfreq(n, spacing)


def linear_density(
    rng: np.random.Generator, n: int, box_size: float, power: Callable[[Floats], Floats]
) -> Modes:
    """Fourier modes of a Gaussian density contrast on n³ cells, from white noise of the cells.

    n is even. The mean and the modes at the Nyquist wavenumber, which have no gradient, are zero.
    """
    modes: Modes = fft.rfftn(rng.standard_normal((n, n, n)), workers=worker_cores())
    full, half = wavenumbers(n, box_size)
    squared = full[:, None, None] ** 2 + full[:, None] ** 2 + half**2
    squared[0, 0, 0] = 1.0
    modes *= np.sqrt(power(np.sqrt(squared)) * (n / box_size) ** 3)
    _clear_mean_and_nyquist(modes)
    return modes


def _clear_mean_and_nyquist(modes: Modes) -> None:
    nyquist = len(modes) // 2
    modes[0, 0, 0] = 0
    modes[nyquist] = modes[:, nyquist] = modes[:, :, nyquist] = 0


def displacements(density: Modes, box_size: float) -> Displacements:
    """Zel'dovich and second order displacements of a linear density contrast.

    ψ1 = -∇φ, ∇²φ = δ, and ψ2 = ∇χ, ∇²χ = Σ_{i<j} φ,ii φ,jj - φ,ij² (Bouchet et al. 1995).
    """
    n = len(density)
    full, half = wavenumbers(n, box_size)
    k = (full[:, None, None], full[:, None], half)
    squared = k[0] ** 2 + k[1] ** 2 + k[2] ** 2
    squared[0, 0, 0] = 1.0
    potential = density / squared  # of ψ1: ψ1 = ∇ of it

    def real(modes: Modes) -> Floats:
        return fft.irfftn(modes, (n, n, n), overwrite_x=True, workers=worker_cores())

    def gradient(modes: Modes) -> Floats:
        rows = np.empty((n, n, n, 3))
        for axis in range(3):
            rows[..., axis] = real(1j * k[axis] * modes)
        return rows.reshape(-1, 3)

    xx, yy, zz = (real(k[i] ** 2 * potential) for i in range(3))
    source = xx * yy + xx * zz + yy * zz
    for i, j in ((0, 1), (0, 2), (1, 2)):
        source -= real(k[i] * k[j] * potential) ** 2
    second = fft.rfftn(source, overwrite_x=True, workers=worker_cores())
    _clear_mean_and_nyquist(second)
    return Displacements(gradient(potential), gradient(-second / squared))


def lattice(n: int, box_size: float) -> Floats:
    """Undisturbed positions of n³ particles, the centres of n³ cells; shape (n³, 3)."""
    ticks = (np.arange(n) + 0.5) * (box_size / n)
    return np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 3)


def perturbed(
    start: Floats, fields: Displacements, growth: Growth, a: float, box_size: float
) -> tuple[Floats, Floats]:
    """Positions in [0, box_size)³ and momenta a² dx/dt at scale factor a, by 2LPT."""
    positions = _combined(fields, growth.factors(a))
    positions += start
    wrap(positions, box_size)
    return positions, _combined(fields, growth.momenta(a))


def _combined(fields: Displacements, weights: ArrayLike) -> Floats:
    first, second = np.asarray(weights)
    total: Floats = first * fields.first
    total += second * fields.second
    return total


def wrap(positions: NDArray[Any], box_size: float) -> None:
    """Bring positions that left the periodic box back to [0, box_size), in place."""
    positions -= box_size * np.floor(positions / box_size)
    # Rounding may leave a coordinate just below zero, or lift a tiny negative one to the box size.
    np.maximum(positions, 0, out=positions)
    positions[positions >= box_size] = 0
