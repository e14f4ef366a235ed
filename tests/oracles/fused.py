"""MMD-FUSE the slow way: matrices of all pairs, kernel by kernel, split by split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def mmd_of_gram(gram: NDArray, first: NDArray) -> float:
    """MMD_u² of the rows in ``first`` and the others, of a kernel with k(x, x) = 1."""
    value = 0.0
    for chosen in (first, ~first):
        n = int(chosen.sum())
        value += (gram[np.ix_(chosen, chosen)].sum() - n) / (n * (n - 1))
    return float(value - 2 * gram[np.ix_(first, ~first)].mean())


def mmd_of_groups(gram: NDArray, first: NDArray, groups: NDArray) -> float:
    """The same over pairs of rows of different groups alone."""
    apart = groups[:, None] != groups
    value = 0.0
    for chosen in (first, ~first):
        pairs = np.outer(chosen, chosen) & apart
        value += gram[pairs].mean()
    return float(value - 2 * gram[np.ix_(first, ~first)].mean())


def fuse_by_matrices(
    grams: Sequence[NDArray],
    norms: Sequence[float],
    first: NDArray,
    groups: NDArray | None = None,
) -> float:
    """T of MMD-FUSE: log of the mean of exp(λ MMD² / norm), over λ = 4 √(n(n − 1))."""
    of = groups if groups is not None else np.arange(len(first))
    n = min(len(np.unique(of[first])), len(np.unique(of[~first])))
    strength = 4 * (n * (n - 1)) ** 0.5
    terms = [
        np.exp(
            strength
            * (mmd_of_gram(g, first) if groups is None else mmd_of_groups(g, first, groups))
            / norm
        )
        for g, norm in zip(grams, norms, strict=True)
    ]
    return float(np.log(np.mean(terms)) / strength)


def harmonic_means_by_loops(table: NDArray, weights: Sequence[float]) -> NDArray:
    """Weighted harmonic mean of the p-values of each row's statistics among those of all rows.

    A p-value lies between rank / n and (rank + 1) / n: the nearer to the first, the more standard
    deviations its statistic is above the mean.
    """
    out = []
    for row in table:
        total = 0.0
        for value, column, weight in zip(row, table.T, weights, strict=True):
            rank = sum(other >= value - 1e-10 * np.abs(column).max() for other in column)
            far = max((value - column.mean()) / (column.std() or 1.0), 0.0)
            total += weight / (rank / len(table) * (1 + 1 / rank) ** (1 / (1 + far)))
        out.append(sum(weights) / total)
    return np.array(out)


def wild_mmd_by_loops(gram: NDArray, first: NDArray, units: NDArray, waves: NDArray) -> NDArray:
    """MMD_b² of each draw of weights, pairs of a unit with itself at the weights' mean square.

    Parameters
    ----------
    gram : shape (n, n)
    first, units : shape (n,)
        Whether each row is of the first sample, and its unit.
    waves : shape (n_draws, n_units)
    """
    same = first[:, None] == first
    centring = np.eye(len(gram)) - same / same.sum(axis=1)
    centred = centring @ gram @ centring.T
    n_units = waves.shape[1]
    out = np.zeros(len(waves))
    for u in range(n_units):
        for v in range(n_units):
            total = centred[np.ix_(units == u, units == v)].sum()
            if u == v:
                out += total / (first == first[units == u][0]).sum() ** 2
            else:
                out += waves[:, u] * waves[:, v] * total
    return out


def perturbed_uniforms(
    rng: np.random.Generator, n: int, n_dims: int, scale: float
) -> tuple[NDArray, NDArray]:
    """n uniform points of [0, 1]^d, and n of a density with two bumps up or down per dimension."""

    def bump(x: NDArray) -> NDArray:
        out = np.zeros_like(x)
        for low, sign, shift in ((-1.0, 1.0, 3.0), (-0.5, -1.0, 1.0)):
            inside = (x > low) & (x < low + 0.5)
            out[inside] = sign * np.exp(-1 / (1 - (4 * x[inside] + shift) ** 2))
        return out

    signs = rng.choice([-1.0, 1.0], (2,) * n_dims)
    saved = np.empty((0, n_dims))
    while len(saved) < n:
        x = rng.random((4 * n, n_dims))
        rise = np.zeros(len(x))
        for j in np.ndindex(*signs.shape):
            rise += signs[j] * np.prod(bump(2 * x - 1 - np.array(j)), axis=1)
        density = 1 + scale * np.e**n_dims * rise
        saved = np.vstack([saved, x[(1 + scale) * rng.random(4 * n) < density]])
    return rng.random((n, n_dims)), saved[:n]


def two_mixtures(rng: np.random.Generator, n: int, std: float) -> tuple[NDArray, NDArray]:
    """n points of four Gaussians at (±20, ±20), twice; one of the second is of ``std``."""

    def draw(deviation: float) -> NDArray:
        which = rng.integers(0, 4, n)
        centres = 20.0 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        return (
            centres[which]
            + rng.standard_normal((n, 2)) * np.where(which == 3, deviation, 1.0)[:, None]
        )

    return draw(1.0), draw(std)
