"""`Scales`: kernels with many bandwidths, each with a block of paired random features.

A difference between two samples may be fine or coarse, and a single bandwidth detects only one of
the two. A test therefore uses several bandwidths per kernel: ten in equal ratios, or fewer in equal
steps. They range from half the 5 % quantile of the distances of two rows to twice their 95 %
quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import pdist

from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ...core.saved import Saved
from ...embeddings.random_features.base import SCALE_BOUNDS as WIDTH_RANGE
from ...embeddings.random_features.kernel_profiles import LAPLACIAN
from ...execution.costs import Cost
from ...execution.pool import run_parts
from .kernels import Kernel
from .scale_kernels import add_waves

N_WIDTHS = 10  # per kernel in equal ratios: neighbours differ by a factor of about 1.5
N_EQUAL_STEPS = 4  # per kernel in equal steps
# Of the distances: bandwidths range from half the first to twice the second.
_QUANTILES = (0.05, 0.95)
_BLOCK = 1024  # rows whose phases are in memory: 1 MiB of 128 frequencies
SECONDS_PER_WAVE = 1.5e-9  # of a sine and its cosine at one scale, on one core
SECONDS_PER_PHASE = 1e-10  # of a product in double precision
MAX_UNITS = 1024  # units whose sums a pass holds


@dataclass(frozen=True)
class Scales(Saved):
    """Kernels of several widths, and the random features that stand for each of them.

    The features of kernel k are R^(−½) [sin ωᵀx, cos ωᵀx] of R frequencies, of norm 1. All widths
    of one kernel share their frequencies but for the scale, so that phases are one product.

    Attributes
    ----------
    kernels : tuple of Kernel, K of them
    norms : tuple of float, K of them
        (mean k(x, x')²)^½ over pairs of rows of both samples: what a kernel's MMD² is divided by.
    centre : tuple of float, d of them
        Taken off the rows: it changes no kernel, and keeps the digits of phases.
    n_frequencies : int
        R.
    seed : int
    """

    kernels: tuple[Kernel, ...]
    norms: tuple[float, ...]
    centre: tuple[float, ...]
    n_frequencies: int
    seed: int
    PARTS: ClassVar = {"kernels": Kernel}

    @classmethod
    def choose(
        cls,
        names: Sequence[str],
        rows: Floats,
        n_frequencies: int,
        seed: int,
        *,
        equal_steps: bool = False,
    ) -> Scales:
        """Return several widths of each kernel for rows that are drawn from both samples.

        Parameters
        ----------
        equal_steps : bool, default False
            Whether there are four widths with equal differences, instead of ten with equal ratios.
            One width of four is narrow, instead of four of ten, so that the noise of other narrow
            kernels does not hide what it detects.

        Raises
        ------
        DataError
            If all rows are equal, or too far from each other.
        """
        kernels: list[Kernel] = []
        norms: list[float] = []
        for name in names:
            with np.errstate(over="ignore", invalid="ignore"):  # refused
                distances = pdist(rows, "cityblock" if name == LAPLACIAN else "euclidean")
            distances = np.where(np.isfinite(distances), distances, np.finfo(float).max)
            apart = distances
            if not distances.all():
                positive = distances[distances > 0]
                if not len(positive):
                    raise DataError(
                        "all rows are alike: there is no distance, and nothing to compare"
                    )
                apart = np.where(distances > 0, distances, np.median(positive))
            with np.errstate(over="ignore", invalid="ignore"):
                low, high = np.nan_to_num(np.quantile(apart, _QUANTILES), nan=np.inf)
            # the Laplacian kernel of MMD-FUSE is exp(−√2 ‖Δ‖₁ / λ), ours exp(−‖Δ‖₁ / σ)
            unit = 2**-0.5 if name == LAPLACIAN else 1.0
            if not (2 * WIDTH_RANGE[0] <= low * unit and high <= WIDTH_RANGE[1] / 2):
                raise DataError(
                    f"distances of two rows are from {low:.3g} to {high:.3g}, beyond "
                    f"{WIDTH_RANGE[0]:g} to {WIDTH_RANGE[1]:g}: take other units"
                )
            near = distances if name == LAPLACIAN else distances**2
            ends = low / 2, 2 * high
            widths = (
                np.linspace(*ends, N_EQUAL_STEPS) if equal_steps else np.geomspace(*ends, N_WIDTHS)
            )
            of_name = [Kernel(name, float(width)) for width in widths * unit]
            kernels += of_name
            norms += _norms(of_name, near)
        return cls(tuple(kernels), tuple(norms), tuple(rows.mean(axis=0).tolist()),
                   n_frequencies, seed)  # fmt: skip

    def __str__(self) -> str:
        """Return what reports call them."""
        widths = [
            [k.bandwidth for k in self.kernels if k.name == name]
            for name in dict.fromkeys(kernel.name for kernel in self.kernels)
        ]
        names = dict.fromkeys(kernel.name for kernel in self.kernels)
        return "; ".join(
            f"{name}, {len(scale)} bandwidths from {scale[0]:.4g} to {scale[-1]:.4g}"
            for name, scale in zip(names, widths, strict=True)
        )

    @property
    def n_features(self) -> int:
        """Numbers in a row's features: 2 K R."""
        return 2 * self.n_frequencies * len(self.kernels)

    def __call__(self, rows: Floats) -> Floats:
        """Return the features of rows (n, d), shape (n, k)."""
        return self.sums(rows, np.arange(len(rows)), len(rows))

    def sums(self, rows: Floats, units: Integers, n_units: int) -> Floats:
        """Return the sums of the features of each unit's rows, shape (n_units, 2 K R)."""
        out = np.zeros((len(self.kernels), n_units, 2 * self.n_frequencies))
        self.add(rows, units, out)
        return out.transpose(1, 0, 2).reshape(n_units, -1)

    def add(self, rows: Floats, units: Integers, out: Floats) -> None:
        """Add the features of rows to the sums of their units.

        Parameters
        ----------
        rows : shape (n, d)
        units : shape (n,)
        out : float64, shape (K, n_units, 2 R), added to
        """
        base, scales, family = _waves(self, len(self.centre))
        length, amplitude = len(rows), self.n_frequencies**-0.5
        sums = np.zeros_like(out)
        for start in range(0, length, _BLOCK):
            block = np.asarray(rows[start : start + _BLOCK], np.float64) - self.centre
            turns = [block @ frequencies for frequencies in base]
            of = units[start : start + _BLOCK]

            def add_scale(k: int, turns: list[Floats] = turns, of: Integers = of) -> None:
                add_waves(turns[family[k]], scales[k], of, sums[k])

            run_parts(add_scale, len(self.kernels))
        sums *= amplitude
        out += sums

    @property
    def cost(self) -> Cost:
        """What a row takes; a task holds the sums of units, and those they are merged with."""
        seconds = self.n_features / 2 * SECONDS_PER_WAVE
        n_families = len({kernel.name for kernel in self.kernels})
        seconds += n_families * len(self.centre) * self.n_frequencies * SECONDS_PER_PHASE
        return Cost(
            seconds_per_bag=seconds,
            bytes_per_bag=16 * len(self.centre),
            bytes_per_task=4 * 8 * self.n_features * MAX_UNITS,
        )


def _norms(kernels: Sequence[Kernel], distances: Floats) -> list[float]:
    """Return (mean k²)^½ of each kernel at the distances."""
    norms = [0.0] * len(kernels)

    def find_norm(k: int) -> None:
        norms[k] = float(np.mean(kernels[k].of_distances(distances.copy()) ** 2) ** 0.5)

    run_parts(find_norm, len(kernels))
    return norms


@lru_cache(maxsize=4)
def _waves(scales: Scales, n_dims: int) -> tuple[list[Floats], list[float], list[int]]:
    """Return frequencies of each kernel in turns at its widest width, and each scale's factor."""
    names = list(dict.fromkeys(kernel.name for kernel in scales.kernels))
    base, widest = [], []
    for i, name in enumerate(names):
        width = max(kernel.bandwidth for kernel in scales.kernels if kernel.name == name)
        wide = Kernel(name, width)
        drawn = wide.frequencies(n_dims, scales.n_frequencies, (scales.seed + i) % 2**64)
        base.append(drawn / (2 * np.pi))
        widest.append(width)
    family = [names.index(kernel.name) for kernel in scales.kernels]
    factors = [widest[f] / k.bandwidth for f, k in zip(family, scales.kernels, strict=True)]
    return base, factors, family
