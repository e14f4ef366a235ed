"""Kernels of points, their bandwidths, and tiles for the values of all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from scipy.spatial.distance import cdist, pdist

from ...core import None_, OneOf, Real, keep_checked
from ...core.arrays import Floats
from ...core.errors import DataError
from ...core.saved import Saved
from ...core.units import in_units, units_of
from ...data.store.sampling import MEDIAN_ROWS, spread_rows
from ...embeddings.random_features.base import SCALE_BOUNDS
from ...embeddings.random_features.frequencies import draw_frequencies
from ...embeddings.random_features.kernel_profiles import LAPLACIAN, kernel_profile
from ..declared import KERNEL, KERNEL_WIDTH

_TILE = 1024  # rows of a tile: the kernel values of a pair of tiles take 8 MiB


@dataclass(frozen=True)
class Kernel(Saved):
    """A shift-invariant kernel with k(x, x) = 1.

    Parameters
    ----------
    name : {"gaussian", "laplacian", "matern"}
        exp(−‖Δ‖₂² / 2σ²), exp(−‖Δ‖₁ / σ), or the Matérn kernel with smoothness ν and length σ.
    bandwidth : float from 1e-30 to 1e30
        Bandwidth σ, in the units of the rows.
    nu : float ≥ ½
        Smoothness ν of the Matérn kernel.
    """

    name: Annotated[str, KERNEL] = "gaussian"
    bandwidth: Annotated[float, KERNEL_WIDTH] = 1.0
    nu: Annotated[float, Real(ge=0.5)] = 1.5

    at_zero = 1.0
    """k(x, x)."""

    exponent = 0
    """Values are divided by 2^exponent."""

    def __post_init__(self) -> None:
        """Check the parameters."""
        keep_checked(self)

    def __str__(self) -> str:
        """Return the kernel's name in reports."""
        nu = f", ν = {self.nu:g}" if self.name == "matern" else ""
        return f"{self.name}, bandwidth {self.bandwidth:.4g}{nu}"

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Return the values of all pairs, shape (n, m)."""
        return self.of_distances(self.distances(X, Y))

    def distances(self, X: Floats, Y: Floats) -> Floats:
        """Return L1 distances (Laplacian) or squared distances, shape (n, m)."""
        distances: Floats = cdist(X, Y, "cityblock" if self.name == LAPLACIAN else "sqeuclidean")
        return distances

    def paired(self, X: Floats, Y: Floats) -> Floats:
        """Return k(x_i, y_i) for each row i, shape (n,)."""
        gaps = X - Y
        if self.name == LAPLACIAN:
            return self.of_distances(np.abs(gaps).sum(axis=1))
        return self.of_distances(np.einsum("ij,ij->i", gaps, gaps))

    def frequencies(self, n_dims: int, n_frequencies: int, seed: int) -> Floats:
        """Draw frequencies from the kernel's spectral density, shape (n_dims, n_frequencies)."""
        return draw_frequencies(self.name, n_dims, n_frequencies, self.bandwidth, seed, self.nu)

    def with_bandwidth(self, bandwidth: float) -> Kernel:
        """Return the same kernel with another bandwidth."""
        return replace(self, bandwidth=bandwidth)

    def of_distances(self, distances: Floats) -> Floats:
        """Return the values at the results of `distances`, which are overwritten."""
        distances /= self.bandwidth if self.name == LAPLACIAN else self.bandwidth**2
        return kernel_profile(self.name, distances, self.nu)


@dataclass(frozen=True)
class NegativeDistance:
    """The "kernel" −‖x − y‖₂ / 2^exponent, whose MMD² is the energy distance / 2^exponent."""

    exponent: int = 0

    at_zero = 0.0
    """k(x, x)."""

    @classmethod
    def of(cls, rows: Floats) -> NegativeDistance:
        """Choose the exponent so that squared distances of the rows do not over- or underflow."""
        return cls(int(units_of(rows.reshape(-1, 1))[0]))

    def __str__(self) -> str:
        """Return the kernel's name in reports."""
        return "−‖x − y‖"

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Return the values of all pairs, shape (n, m)."""
        unit = np.array([self.exponent])
        kernel: Floats = -cdist(in_units(X, unit), in_units(Y, unit))
        return kernel


AnyKernel = Kernel | NegativeDistance


def resolve_kernel(name: str, bandwidth: object, rows: Floats) -> Kernel:
    """Return a kernel with its bandwidth.

    Parameters
    ----------
    bandwidth : float > 0, "median" or None
        None is "median": the median distance of two rows that differ (L1 for the Laplacian
        kernel), of up to 1,024 evenly spread rows.
    rows : shape (n, d)
        Rows of all samples together.

    Raises
    ------
    DataError
        If all rows are equal, or too far from each other.
    """
    number = (KERNEL_WIDTH | OneOf("median") | None_).check("bandwidth", bandwidth)
    if isinstance(number, float):
        return Kernel(name, number)
    metric = "cityblock" if name == LAPLACIAN else "euclidean"
    distances = pdist(spread_rows(rows, MEDIAN_ROWS), metric)
    positive = distances[distances > 0]
    if not len(positive):
        if (rows == rows[0]).all():
            raise DataError(
                "all rows are alike: there is no median distance, and nothing to compare"
            )
        positive = distances
    median = float(np.median(positive))
    if not SCALE_BOUNDS[0] <= median <= SCALE_BOUNDS[1]:
        raise DataError(
            f"the median distance of two rows is {median:.3g}, not from {SCALE_BOUNDS[0]:g} to "
            f"{SCALE_BOUNDS[1]:g}: take other units, or a bandwidth"
        )
    return Kernel(name, median)


def tiles(n_rows: int, tile: int = _TILE) -> Iterator[slice]:
    """Yield the slices of up to ``tile`` rows that make up ``n_rows``."""
    return (slice(start, min(start + tile, n_rows)) for start in range(0, n_rows, tile))
