"""Features of a row at a few locations, and their gradients in the locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...core.arrays import Floats
from ...execution.costs import Cost
from ..kernels.features import RowFeatures, feature_cost
from ..kernels.kernels import Kernel
from ..samples.held_out import kernel_gradient


class LocationFeatures(RowFeatures, Protocol):
    """Features at J locations."""

    def gradient(self, rows: Floats, slopes: Floats) -> Floats:
        """Return the gradient in (locations, log σ), shape (J d + 1,), of a function of features.

        Parameters
        ----------
        slopes : shape (n, k)
            The function's slope in each feature of the rows.
        """
        ...


@dataclass(frozen=True, eq=False)
class KernelsAt:
    """Features k(x, v_j) at J locations; `gradient` is for the Gaussian kernel."""

    kernel: Kernel
    locations: Floats

    def __call__(self, rows: Floats) -> Floats:
        """Return the features of rows (n, d), shape (n, k)."""
        return self.kernel(rows, self.locations)

    def gradient(self, rows: Floats, slopes: Floats) -> Floats:
        """Return the gradient in (locations, log σ), shape (J d + 1,)."""
        at, width = self.locations, self.kernel.bandwidth
        moved, widened = kernel_gradient(rows, at, width, slopes * self(rows))
        return np.append(moved.ravel(), widened)

    @property
    def cost(self) -> Cost:
        """Cost per row."""
        return feature_cost(self.locations.size)


@dataclass(frozen=True, eq=False)
class SmoothedWaves:
    """Features f(x) sin vᵀx / σ and f(x) cos vᵀx / σ, with f(x) = exp(−‖x − c‖² / 2τ²).

    Attributes
    ----------
    locations : shape (J, d)
        Frequencies v.
    bandwidth : float
        Bandwidth σ.
    centre : shape (d,)
        Centre c.
    width : float
        Width τ.
    """

    locations: Floats
    bandwidth: float
    centre: Floats
    width: float

    def __call__(self, rows: Floats) -> Floats:
        """Return the features of rows (n, d), shape (n, k)."""
        _, smooth, phases = self._parts(rows)
        waves: Floats = np.hstack([np.sin(phases), np.cos(phases)])
        return smooth * waves

    def gradient(self, rows: Floats, slopes: Floats) -> Floats:
        """Return the gradient in (locations, log σ), shape (J d + 1,)."""
        centred, smooth, phases = self._parts(rows)
        of_sine, of_cosine = np.split(slopes * smooth, 2, axis=1)
        turned = of_sine * np.cos(phases) - of_cosine * np.sin(phases)
        moved = turned.T @ centred / self.bandwidth
        return np.append(moved.ravel(), -np.vdot(moved, self.locations))

    def _parts(self, rows: Floats) -> tuple[Floats, Floats, Floats]:
        centred = rows - self.centre
        smooth = np.exp((centred**2).sum(axis=1, keepdims=True) / (-2 * self.width**2))
        return centred, smooth, centred @ self.locations.T / self.bandwidth

    @property
    def cost(self) -> Cost:
        """Cost per row."""
        return feature_cost(2 * self.locations.size)
