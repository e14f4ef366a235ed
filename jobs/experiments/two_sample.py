"""Estimates of the squared maximum mean discrepancy (MMD²) of two sets of points, and their tests.

Of the kernel exp(−‖x − y‖² / 2σ²) and sets of equally many points, as in the experiments of 002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from bagbasis import RandomFourierFeatures
from bagbasis.embeddings import mmd_squared
from bagbasis.hypotheses.permutation import mmd_squared_of_splits, p_values

Floats = NDArray[np.float64]
Estimate = tuple[float, float]  # the biased and the unbiased one

TILE = 512  # points: the kernel values of a pair of tiles stay in the cache
FEATURES_A_BLOCK = 2**21
LEVEL = 0.05


def random_feature_mmd(
    X: Floats, Y: Floats, sigma: float, n_frequencies: int, seed: int
) -> Estimate:
    """Estimate MMD² from mean maps of L frequencies, O(L N d) (002, Algorithm 2)."""
    means = np.stack([mean_map(points, sigma, n_frequencies, seed) for points in (X, Y)])
    first, second = means[:1], means[1:]
    biased = mmd_squared(first, B=second, unbiased=False)
    unbiased = mmd_squared(first, [len(X)], second, [len(Y)])
    return float(biased[0, 0]), float(unbiased[0, 0])


def mean_map(points: Floats, sigma: float, n_frequencies: int, seed: int) -> Floats:
    """Mean of `RandomFourierFeatures` over the points, shape (2 L,)."""
    features = RandomFourierFeatures(2 * n_frequencies, scale=sigma, seed=seed)
    rows = max(1, FEATURES_A_BLOCK // (2 * n_frequencies))
    sums = np.zeros(2 * n_frequencies)
    for start in range(0, len(points), rows):
        z = features.fit_transform(points[start : start + rows].astype(np.float32))
        sums += np.ones(len(z), np.float32) @ z
    return sums / len(points)


@dataclass(frozen=True)
class Factors:
    """Points as rows of two matrices whose product is −‖x − y‖² / 2σ².

    Attributes
    ----------
    left, right : shape (n, d + 2)
    """

    left: NDArray[Any]
    right: NDArray[Any]

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, rows: slice) -> Factors:
        return Factors(self.left[rows], self.right[rows])


def factors(X: Floats, Y: Floats, sigma: float, dtype: str) -> tuple[Factors, Factors]:
    """Return the factors of both sets, about their common middle."""
    middle = 0.5 * (X.mean(axis=0) + Y.mean(axis=0))

    def of(points: Floats) -> Factors:
        scaled = (points - middle) / sigma
        half = -0.5 * (scaled**2).sum(axis=1, keepdims=True)
        one = np.ones_like(half)
        left, right = np.hstack([scaled, half, one]), np.hstack([scaled, one, half])
        return Factors(left.astype(dtype), right.astype(dtype))

    return of(X), of(Y)


def exact_mmd(X: Floats, Y: Floats, sigma: float, dtype: str = "float32") -> Estimate:
    """Compute MMD² from all pairs, O(N² d): a matrix product per tile, symmetric ones once."""
    first, second = factors(X, Y, sigma, dtype)
    n = len(X)
    own = _own_sum(first) + _own_sum(second)
    between = 2 * _sum_between(first, second) / n**2
    return own / n**2 - between, (own - 2 * n) / (n * (n - 1)) - between


def block_mmds(X: Floats, Y: Floats, sigma: float, block: int) -> Floats:
    """Unbiased estimates of blocks of points, O(N^{3/2} d) with √N points per block: the B-test."""
    first, second = factors(X, Y, sigma, "float32")
    out = np.empty(len(X) // block)
    for b in range(len(out)):
        rows = slice(b * block, (b + 1) * block)
        one, other = first[rows], second[rows]
        own = kernel(one, one).sum() + kernel(other, other).sum() - 2 * block
        crossed = kernel(one, other)
        between = 2 * (crossed.sum() - np.trace(crossed))
        out[b] = (own - between) / (block * (block - 1))
    return out


def pair_mmds(X: Floats, Y: Floats, sigma: float) -> Floats:
    """Unbiased estimates of two points of each set, O(N d): MMD-linear."""
    a, b, c, d = X[:-1:2], X[1::2], Y[:-1:2], Y[1::2]

    def values(p: Floats, q: Floats) -> Floats:
        found: Floats = np.exp(((p - q) ** 2).sum(axis=1) / (-2 * sigma**2))
        return found

    return values(a, b) + values(c, d) - values(a, d) - values(b, c)


def mean_test_rejects(estimates: Floats) -> bool:
    """Whether the mean of independent estimates of MMD² is above 0, by the normal limit."""
    error = estimates.std(ddof=1) / len(estimates) ** 0.5
    return bool(estimates.mean() > norm.ppf(1 - LEVEL) * error)


def splits(n: int, n_shuffles: int, seed: int) -> NDArray[np.float32]:
    """Which of 2 n points are in the first set, a row a shuffle; the first row is as it is."""
    rows = np.tile(np.repeat(np.array([1, 0], np.float32), n), (1 + n_shuffles, 1))
    np.random.default_rng(seed).permuted(rows[1:], axis=1, out=rows[1:])
    return rows


def random_feature_rejects(
    X: Floats, Y: Floats, sigma: float, n_frequencies: int, seed: int, shuffles: NDArray[np.float32]
) -> bool:
    """Return the test of shuffled sets by random features."""
    features = RandomFourierFeatures(2 * n_frequencies, scale=sigma, seed=seed)
    z = features.fit_transform(np.concatenate([X, Y]).astype(np.float32))
    sums = (shuffles @ z).astype(np.float64)
    values = mmd_squared_of_splits(sums, z.sum(axis=0, dtype=np.float64), len(X), len(Y))
    return bool(p_values(values[0], values[1:]) <= LEVEL)


def exact_rejects(X: Floats, Y: Floats, sigma: float, shuffles: NDArray[np.float32]) -> bool:
    """Return the test of shuffled sets by all pairs of points."""
    both, _ = factors(np.concatenate([X, Y]), np.concatenate([Y, X]), sigma, "float32")
    weights = (2 * shuffles - 1) / len(X)
    values = np.einsum("ij,ij->i", weights @ kernel(both, both), weights)
    return bool(p_values(values[0], values[1:]) <= LEVEL)


def kernel(rows: Factors, columns: Factors) -> NDArray[Any]:
    """exp(−‖x − y‖² / 2σ²) of all pairs."""
    values: NDArray[Any] = rows.left @ columns.right.T
    return np.exp(values, out=values)


def _own_sum(points: Factors) -> float:
    """Over all pairs of points of one set."""
    sums = 0.0
    for start in range(0, len(points), TILE):
        tile = points[start : start + TILE]
        sums += float(kernel(tile, tile).sum())
        sums += 2 * _sum_between(tile, points[start + TILE :])
    return sums


def _sum_between(rows: Factors, columns: Factors) -> float:
    return sum(
        float(kernel(rows[i : i + TILE], columns[j : j + TILE]).sum())
        for i in range(0, len(rows), TILE)
        for j in range(0, len(columns), TILE)
    )
