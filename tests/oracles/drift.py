"""Two-sample tests the slow way: loops over pairs, over splits, and the test that pools points."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from .fourier import features, median_distance_by_loop


def mmd_unbiased_by_loop(kernel: NDArray, first: Iterable[int]) -> float:
    """Unbiased MMD² of the rows ``first`` against all others, pair by pair (002, eq. 13)."""
    single = set(first)
    two = set(range(len(kernel))) - single
    total = 0.0
    for i, j in itertools.product(range(len(kernel)), repeat=2):
        if i == j:
            continue
        if i in single and j in single:
            total += kernel[i, j] / (len(single) * (len(single) - 1))
        elif i in two and j in two:
            total += kernel[i, j] / (len(two) * (len(two) - 1))
        else:
            total -= kernel[i, j] / (len(single) * len(two))
    return total


def p_value_by_loop(
    kernel: NDArray, first: Sequence[int], splits: Iterable[Sequence[int]]
) -> float:
    """(1 + #{splits whose MMD² reaches the observed}) / (1 + #splits)."""
    observed = mmd_unbiased_by_loop(kernel, first)
    reached = [mmd_unbiased_by_loop(kernel, split) >= observed - 1e-12 for split in splits]
    return (1 + sum(reached)) / (1 + len(reached))


def exact_p_value(kernel: NDArray, first: Sequence[int]) -> float:
    """The share of all splits of that size whose MMD² reaches the observed."""
    observed = mmd_unbiased_by_loop(kernel, first)
    splits = itertools.combinations(range(len(kernel)), len(first))
    return float(np.mean([mmd_unbiased_by_loop(kernel, s) >= observed - 1e-12 for s in splits]))


def pooled_p_value(
    reference: Sequence[NDArray],
    new: Sequence[NDArray],
    rng: np.random.Generator,
    n_features: int = 64,
    n_permutations: int = 39,
) -> float:
    """The p-value of the naive test, wrong for bags: every point of a set is a unit of its own."""
    points = np.concatenate([*reference, *new])
    n_first = sum(map(len, reference))
    scale = median_distance_by_loop(rng.choice(points, 30))
    z = features(points, rng.standard_normal((points.shape[1], n_features // 2)) / scale)
    splits = np.tile(np.arange(len(points)) < n_first, (1 + n_permutations, 1))
    splits[1:] = rng.permuted(splits[1:], axis=1)
    first = splits @ z
    gaps = first / n_first - (z.sum(axis=0) - first) / (len(points) - n_first)
    mmd = (gaps**2).sum(axis=1)
    return float((1 + (mmd[1:] >= mmd[0]).sum()) / (1 + n_permutations))
