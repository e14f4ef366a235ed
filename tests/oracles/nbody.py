"""The particle mesh and its fields the slow way: tents as dense matrices, modes as full arrays."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

Floats = NDArray[np.float64]


def tents(x: Floats, n: int, box_size: float) -> Floats:
    """The cloud-in-cell weight of each of n cells, centred at (i + ½) L/n, at each x."""
    width = box_size / n
    distance = np.abs(x[:, None] - (np.arange(n) + 0.5) * width)
    distance = np.minimum(distance, box_size - distance)
    return np.maximum(1 - distance / width, 0)


def cloud_in_cell(positions: Floats, n: int, box_size: float) -> Floats:
    """The mass of unit particles in each of n³ cells."""
    weights = [tents(column, n, box_size) for column in positions.T]
    return np.einsum("pi,pj,pk->ijk", *weights, optimize=True)


def interpolated(mesh: Floats, positions: Floats, box_size: float) -> Floats:
    """The mesh at the particles, shape (n_points,)."""
    weights = [tents(column, len(mesh), box_size) for column in positions.T]
    return np.einsum("pi,pj,pk,ijk->p", *weights, mesh, optimize=True)


def force(positions: Floats, n_mesh: int, n_particles: int, box_size: float) -> Floats:
    """-∇∇⁻²δ at the particles, of the modes below their lattice's Nyquist wavenumber."""
    mass = cloud_in_cell(positions, n_mesh, box_size)
    contrast = np.fft.fftn(mass / mass.mean() - 1)
    m = np.fft.fftfreq(n_mesh, 1 / n_mesh).round()
    numbers = np.stack(np.meshgrid(m, m, m, indexing="ij"))
    window = np.sinc(numbers / n_mesh).prod(axis=0) ** 2
    saved = (np.abs(numbers) < n_particles / 2).all(axis=0)
    k = 2 * np.pi / box_size * numbers
    squared = (k**2).sum(axis=0)
    squared[0, 0, 0] = np.inf
    fields = np.fft.ifftn(
        1j * k * np.where(saved, contrast / window**2, 0) / squared, axes=(1, 2, 3)
    )
    return np.stack([interpolated(field.real, positions, box_size) for field in fields], axis=1)


def power_spectrum(contrast: NDArray, box_size: float) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Mean wavenumber, mean power and number of modes in shells one 2π/L wide, without k = 0."""
    n = len(contrast)
    m = np.fft.fftfreq(n, 1 / n)
    radius = np.sqrt((np.stack(np.meshgrid(m, m, m, indexing="ij")) ** 2).sum(axis=0)).ravel()
    power = np.abs(np.fft.fftn(contrast).ravel()) ** 2 * box_size**3 / n**6
    shell = radius.round().astype(np.int64)
    count = np.bincount(shell)
    k = 2 * np.pi / box_size * np.bincount(shell, radius) / count
    mean = np.bincount(shell, power) / count
    return k[1 : n // 2], mean[1 : n // 2], count[1 : n // 2]


def oscillating_transfer(k: Floats, omega_m: float, omega_b: float, h: float) -> Floats:
    """The full fit of Eisenstein & Hu 1998, eq. 2-24, acoustic oscillations included."""
    matter, baryons, fraction = omega_m * h**2, omega_b * h**2, omega_b / omega_m
    theta, k = 2.7255 / 2.7, k * h
    z_eq, k_eq = 2.5e4 * matter * theta**-4, 0.0746 * matter * theta**-2
    b1 = 0.313 * matter**-0.419 * (1 + 0.607 * matter**0.674)
    z_drag = 1291 * matter**0.251 / (1 + 0.659 * matter**0.828)
    z_drag *= 1 + b1 * baryons ** (0.238 * matter**0.223)
    r_drag, r_eq = (31.5 * baryons * theta**-4 * 1000 / z for z in (z_drag, z_eq))
    horizon = np.log((np.sqrt(1 + r_drag) + np.sqrt(r_drag + r_eq)) / (1 + np.sqrt(r_eq)))
    horizon *= 2 / (3 * k_eq) * np.sqrt(6 / r_eq)
    silk = 1.6 * baryons**0.52 * matter**0.73 * (1 + (10.4 * matter) ** -0.95)

    def pressureless(alpha: float, beta: float) -> Floats:
        q = k / (13.41 * k_eq)
        log = np.log(np.e + 1.8 * beta * q)
        return log / (log + (14.2 / alpha + 386 / (1 + 69.9 * q**1.08)) * q**2)

    a1 = (46.9 * matter) ** 0.670 * (1 + (32.1 * matter) ** -0.532)
    a2 = (12.0 * matter) ** 0.424 * (1 + (45.0 * matter) ** -0.582)
    b1 = 0.944 / (1 + (458 * matter) ** -0.708)
    alpha = a1**-fraction * a2 ** -(fraction**3)
    beta = 1 / (1 + b1 * ((1 - fraction) ** ((0.395 * matter) ** -0.0266) - 1))
    ks = k * horizon
    f = 1 / (1 + (ks / 5.4) ** 4)
    cold = f * pressureless(1, beta) + (1 - f) * pressureless(alpha, beta)

    y = (1 + z_eq) / (1 + z_drag)
    root = np.sqrt(1 + y)
    g = y * (-6 * root + (2 + 3 * y) * np.log((root + 1) / (root - 1)))
    alpha = 2.07 * k_eq * horizon * (1 + r_drag) ** -0.75 * g
    beta = 0.5 + fraction + (3 - 2 * fraction) * np.sqrt((17.2 * matter) ** 2 + 1)
    shifted = ks / (1 + (8.41 * matter**0.435 / ks) ** 3) ** (1 / 3)
    baryonic = pressureless(1, 1) / (1 + (ks / 5.2) ** 2)
    baryonic += alpha / (1 + (beta / ks) ** 3) * np.exp(-((k / silk) ** 1.4))
    return fraction * baryonic * np.sinc(shifted / np.pi) + (1 - fraction) * cold


def rms_in_spheres(power, radius: float) -> float:
    """The linear rms contrast in spheres of a radius, by adaptive quadrature over ln k."""

    def integrand(log_k: float) -> float:
        k = np.exp(log_k)
        x = k * radius
        window = 3 * (np.sin(x) - x * np.cos(x)) / x**3
        return float(k**3 * power(k) * window**2 / (2 * np.pi**2))

    pieces = np.linspace(np.log(1e-5), np.log(20.0), 30)
    return float(np.sqrt(sum(quad(integrand, a, b)[0] for a, b in pairwise(pieces))))
