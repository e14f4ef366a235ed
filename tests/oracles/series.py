"""Orthogonal series the slow way: numpy's cosines, products written out, loops over bags."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray


def basis_function(basis: str, k: int, x: ArrayLike) -> NDArray[np.float64]:
    """φ_k on [0, 1], of norm 1, from its textbook formula."""
    u = np.asarray(x, dtype=np.float64)
    if k == 0:
        return np.ones_like(u)
    if basis == "cosine":
        return np.sqrt(2) * np.cos(np.pi * k * u)
    if basis == "trigonometric":
        turn = 2 * np.pi * ((k + 1) // 2) * u
        return np.sqrt(2) * (np.cos(turn) if k % 2 else np.sin(turn))
    if basis == "legendre":
        polynomial = np.polynomial.Legendre.basis(k, domain=[0, 1])
        return np.sqrt(2 * k + 1) * polynomial(u)
    raise ValueError(basis)


def product_function(basis: str, alpha: Sequence[int], x: ArrayLike) -> NDArray[np.float64]:
    """φ_α(x) = Π_j φ_{α_j}(x_j) at points (n, d) of the unit cube."""
    points = np.asarray(x, dtype=np.float64)
    value = np.ones(len(points))
    for j, k in enumerate(alpha):
        value = value * basis_function(basis, int(k), points[:, j])
    return value


def _factor(basis: str, points: NDArray, j: int, k: int) -> NDArray[np.float64]:
    return basis_function(basis, k, points[:, j])


def index_set_by_loop(
    n_dims: int, n_per_dim: int | None, max_norm: float | None, basis: str
) -> list[tuple[int, ...]]:
    """Every multi-index of a cube that surely holds the set, kept if it is in it."""
    reach = n_per_dim if n_per_dim is not None else 2 * int(np.floor(max_norm or 0)) + 2
    values = []
    for alpha in itertools.product(range(reach), repeat=n_dims):
        frequency = [(k + 1) // 2 if basis == "trigonometric" else k for k in alpha]
        square = sum(f * f for f in frequency)
        if max_norm is None or square <= max_norm**2 + 1e-9:
            values.append(alpha)
    return values


def to_unit(bag: NDArray, lo: Sequence[float], hi: Sequence[float]) -> NDArray[np.float64]:
    """The box scaled to the unit cube, in double precision."""
    low, high = np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64)
    return (bag.astype(np.float64) - low) / (high - low)


def confined(unit: NDArray, mode: str) -> tuple[NDArray[np.float64], int]:
    """Points outside the unit cube clipped to its edges or dropped, and how many there were."""
    outside = ((unit < 0) | (unit > 1)).any(axis=1)
    selected = unit[~outside] if mode == "drop" else np.clip(unit, 0, 1)
    return selected, int(outside.sum())


def project_by_loop(
    bags: Sequence[NDArray],
    indices: Sequence[Sequence[int]],
    basis: str,
    lo: Sequence[float],
    hi: Sequence[float],
    *,
    marginals: int | None = None,
    mode: str = "clip",
    squared: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Means of φ_α (004, eq. 2.7) or φ_α² over each bag, and its points outside the box.

    With marginals one block of columns a subset of coordinates; the count is that of the subset
    where most points are outside.
    """
    n_dims = bags[0].shape[1]
    groups = subsets(n_dims, marginals or n_dims)
    means = np.full((len(bags), len(groups) * len(indices)), np.nan)
    n_outside = np.zeros(len(bags), dtype=np.int64)
    for i, bag in enumerate(bags):
        unit = to_unit(bag, lo, hi)
        for g, group in enumerate(groups):
            selected, outside = confined(unit[:, list(group)], mode)
            n_outside[i] = max(n_outside[i], outside)
            if len(selected) == 0:
                continue
            once = cache(
                partial(_factor, basis, selected)
            )  # indices share functions of one dimension
            for a, alpha in enumerate(indices):
                values = np.ones(len(selected))
                for j, k in enumerate(alpha):
                    values = values * once(j, int(k))
                means[i, g * len(indices) + a] = (values**2 if squared else values).mean()
    return means, n_outside


def leave_one_out_score(
    unit: NDArray, indices: Sequence[Sequence[int]], basis: str
) -> NDArray[np.float64]:
    """Each index's share of Ŝ_t = Σ a_α² − (2/n) Σ_i p̃^{−i}(x_i) (004, eq. 2.17 and 2.20).

    The density without point i is made from the other points, one i after the other.
    """
    n = len(unit)
    values = np.stack([product_function(basis, alpha, unit) for alpha in indices], axis=1)
    score = values.mean(axis=0) ** 2
    for i in range(n):
        others = np.delete(values, i, axis=0)
        score -= 2 / n * others.sum(axis=0) / (n - 1) * values[i]
    return score


def least_score(
    bags: Sequence[NDArray],
    candidates: Sequence[Sequence[Sequence[int]]],
    basis: str,
    lo: Sequence[float],
    hi: Sequence[float],
    *,
    marginals: int | None = None,
    mode: str = "clip",
) -> int:
    """Which candidate index set has the least leave-one-out score, averaged over the bags."""
    n_dims = bags[0].shape[1]
    largest = max(candidates, key=len)
    position = {tuple(alpha): a for a, alpha in enumerate(largest)}
    average = np.zeros(len(largest))
    for group in subsets(n_dims, marginals or n_dims):
        scores = []
        for bag in bags:
            selected, _ = confined(to_unit(bag, lo, hi)[:, list(group)], mode)
            if len(selected) > 1:
                scores.append(leave_one_out_score(selected, largest, basis))
        if scores:
            average += np.mean(scores, axis=0)
    totals = [sum(average[position[tuple(alpha)]] for alpha in indices) for indices in candidates]
    return int(np.argmin(totals))


def subsets(n_dims: int, size: int) -> list[tuple[int, ...]]:
    """All subsets of ``size`` coordinates, in lexicographic order."""
    return list(itertools.combinations(range(n_dims), size))
