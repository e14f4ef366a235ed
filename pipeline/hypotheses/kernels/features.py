"""Functions of rows whose sums statistics are made of: small, picklable, the same anywhere.

A feature map is a frozen dataclass: rows (n, d) in, features (n, k) out. What it is made of comes
from its fields and a seed, so that workers make it themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...embeddings.random_features.kernels.fourier_kernels import sine_cosine
from ...embeddings.random_features.kernels.hadamard_kernels import walsh_hadamard_rows
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.pool import even_edges, run_kernel
from .kernels import Kernel

SECONDS_PER_FEATURE = 2e-9  # of a sine and its cosine, or of a kernel value, on one core


class RowFeatures(Protocol):
    """Rows in, features out, and what that costs."""

    def __call__(self, rows: Floats) -> NDArray[Any]:
        """Return the features of rows (n, d), shape (n, k)."""
        ...

    @property
    def cost(self) -> Cost:
        """What a row takes."""
        ...


@dataclass(frozen=True)
class FourierFeatures:
    """L^(−½) [sin ωᵀx, cos ωᵀx], of norm 1, float32: products are k(x, y) on average.

    Attributes
    ----------
    fast : bool
        Frequencies by Fastfood: products of Hadamard matrices, n log d instead of n d each. They
        are dependent within blocks of the power of two that is not below d.
    """

    kernel: Kernel
    n_dims: int
    n_frequencies: int
    seed: int
    fast: bool = False

    def __call__(self, rows: Floats) -> NDArray[np.float32]:
        """Return the features of rows (n, d), shape (n, k)."""
        n = self.n_frequencies
        out = np.empty((len(rows), 2 * n), np.float32)
        if self.fast:
            out[:, :n] = _fastfood(self).phases(rows)[:, :n]
        else:
            np.matmul(rows.astype(np.float32), _frequencies(self), out=out[:, :n])
        edges = even_edges(len(out), SECONDS_PER_FEATURE * n)
        run_kernel(sine_cosine, edges, out, np.float32(n**-0.5))
        return out

    @property
    def cost(self) -> Cost:
        """What a row takes."""
        products = self.n_dims * self.n_frequencies * SECONDS_PER_PRODUCT
        return feature_cost(2 * self.n_frequencies, products)


def feature_cost(n_features: int, seconds: float = 0.0) -> Cost:
    """Return the cost of a row with so many features and ``seconds`` of other work."""
    return Cost(
        seconds_per_bag=seconds + n_features * SECONDS_PER_FEATURE, bytes_per_bag=12 * n_features
    )


@dataclass(frozen=True, eq=False)
class Fastfood:
    """Blocks of frequencies V = S H G Π H B / (σ √d'), as products of fast transforms (Le et al.).

    Attributes
    ----------
    signs, gaussians, lengths : shape (n_blocks, d')
        The diagonals of B, G and S; d' is the power of two that is not below d.
    orders : int64, shape (n_blocks, d')
        Π.
    """

    signs: Floats
    orders: Integers
    gaussians: Floats
    lengths: Floats

    @classmethod
    def draw(cls, kernel: Kernel, n_dims: int, n_frequencies: int, seed: int) -> Fastfood:
        """Return the blocks that hold ``n_frequencies``; a pure function of the arguments."""
        width = 1 << (n_dims - 1).bit_length()
        n_blocks = -(-n_frequencies // width)
        drawn = [_block(kernel, width, seed, block) for block in range(n_blocks)]
        return cls(*(np.stack(part) for part in zip(*drawn, strict=True)))

    def phases(self, rows: Floats) -> Floats:
        """Return ωᵀx of all blocks' frequencies, shape (n, n_blocks · d')."""
        n_blocks, width = self.signs.shape
        out = np.zeros((len(rows), n_blocks, width))
        out[:, :, : rows.shape[1]] = rows[:, None]
        out *= self.signs
        edges = even_edges(len(rows) * n_blocks, SECONDS_PER_FEATURE * width)
        run_kernel(walsh_hadamard_rows, edges, out.reshape(-1, width))
        out = np.take_along_axis(out, self.orders[None], axis=2)
        out *= self.gaussians
        run_kernel(walsh_hadamard_rows, edges, out.reshape(-1, width))
        out *= self.lengths
        return out.reshape(len(rows), -1)


def _block(
    kernel: Kernel, width: int, seed: int, block: int
) -> tuple[Floats, Integers, Floats, Floats]:
    generator = np.random.Generator(np.random.Philox(key=np.array([seed, block], np.uint64)))
    signs = generator.choice([-1.0, 1.0], width)
    order = generator.permutation(width)
    gaussians = generator.standard_normal(width)
    lengths = np.sqrt(generator.chisquare(width, width))
    if kernel.name == "matern":  # the radial distribution of its spectrum, a multivariate t
        lengths *= np.sqrt(2 * kernel.nu / generator.chisquare(2 * kernel.nu, width))
    scale = kernel.bandwidth * width**0.5 * np.sqrt((gaussians**2).sum())
    return signs, order, gaussians, lengths / scale


@lru_cache(maxsize=4)
def _frequencies(features: FourierFeatures) -> NDArray[np.float32]:
    drawn = features.kernel.frequencies(features.n_dims, features.n_frequencies, features.seed)
    return drawn.astype(np.float32)


@lru_cache(maxsize=4)
def _fastfood(features: FourierFeatures) -> Fastfood:
    return Fastfood.draw(features.kernel, features.n_dims, features.n_frequencies, features.seed)
