"""Histograms, their homogeneous maps, moments and quantiles the slow way: loops over bags."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .series import confined, subsets, to_unit


def shares_by_loop(
    bags: Sequence[NDArray],
    n_bins: int,
    lo: Sequence[float],
    hi: Sequence[float],
    *,
    size: int,
    mode: str = "clip",
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the fraction of a bag's points in each bin, (n_bags, n_groups, n_bins^size), and its
    points outside the box in the group where they are most."""
    groups = subsets(bags[0].shape[1], size)
    shares = np.zeros((len(bags), len(groups), n_bins**size))
    n_outside = np.zeros(len(bags), dtype=np.int64)
    for i, bag in enumerate(bags):
        for g, group in enumerate(groups):
            selected, outside = confined(to_unit(bag, lo, hi)[:, list(group)], mode)
            n_outside[i] = max(n_outside[i], outside)
            for point in selected:
                cell = 0
                for u in point.tolist():
                    cell = n_bins * cell + min(int(u * n_bins), n_bins - 1)
                shares[i, g, cell] += 1 / len(selected)
    return shares, n_outside


def homogeneous_map(
    shares: NDArray, lambdas: Sequence[float], weights: Sequence[float]
) -> NDArray[np.float64]:
    """√w h^{½+iλ}, 0 where h = 0: real and imaginary parts of each node, group by group."""
    parts = []
    for rate, weight in zip(lambdas, weights, strict=True):
        power = np.where(shares > 0, np.sqrt(weight) * np.maximum(shares, 1e-300) ** 0.5, 0)
        phase = rate * np.log(np.maximum(shares, 1e-300))
        parts += [power * np.cos(phase), power * np.sin(phase)]
    return np.concatenate(parts, axis=-1).reshape(len(shares), -1)


def moments_by_loop(
    bags: Sequence[NDArray], lo: Sequence[float], hi: Sequence[float], mode: str = "clip"
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Mean and upper triangle of numpy's covariance (1/n) of each bag, and its points outside."""
    rows, n_outside = [], []
    for bag in bags:
        selected, outside = confined(to_unit(bag, lo, hi), mode)
        covariance = np.atleast_2d(np.cov(selected, rowvar=False, bias=True))
        upper = [covariance[j, k] for j in range(len(lo)) for k in range(j, len(lo))]
        rows.append([*selected.mean(axis=0), *upper])
        n_outside.append(outside)
    return np.array(rows), np.array(n_outside)


def quantiles_by_loop(
    bags: Sequence[NDArray],
    directions: NDArray,
    n_quantiles: int,
    lo: Sequence[float],
    hi: Sequence[float],
    mode: str = "clip",
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Means of each bag's quantile function over equal intervals, by the overlap of each interval
    with the step of each point, over the root of the row's length; and its points outside."""
    rows, n_outside = [], []
    ends = np.arange(n_quantiles + 1) / n_quantiles
    for bag in bags:
        selected, outside = confined(to_unit(bag, lo, hi), mode)
        steps = np.arange(len(selected) + 1) / len(selected)
        overlap = np.minimum.outer(ends[1:], steps[1:]) - np.maximum.outer(ends[:-1], steps[:-1])
        shares = n_quantiles * overlap.clip(min=0)
        rows.append(np.concatenate([shares @ np.sort(selected @ theta) for theta in directions]))
        n_outside.append(outside)
    return np.array(rows) / np.sqrt(len(directions) * n_quantiles), np.array(n_outside)


def extremes_by_loop(
    bags: Sequence[NDArray],
    directions: NDArray,
    shares: Sequence[float],
    lo: Sequence[float],
    hi: Sequence[float],
    mode: str = "clip",
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each direction and share u the least projection that at least u of the points do not
    exceed, over the root of the row's length; and each bag's points outside."""
    rows, n_outside = [], []
    for bag in bags:
        selected, outside = confined(to_unit(bag, lo, hi), mode)
        row = []
        for theta in directions:
            projected = selected @ theta
            reached = [(projected <= value).mean() for value in projected]
            for share in shares:
                enough = [p for p, r in zip(projected, reached, strict=True) if r >= share - 1e-12]
                row.append(min(enough))
        rows.append(row)
        n_outside.append(outside)
    return np.array(rows) / np.sqrt(len(directions) * len(shares)), np.array(n_outside)


def ranks_by_loop(
    bags: Sequence[NDArray],
    knots: NDArray,
    lo: Sequence[float],
    hi: Sequence[float],
    mode: str = "clip",
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each moment, and each minimum, quantile .01, .99 and maximum of a coordinate, how far it
    is from each of its ``knots`` (one row per statistic) to the next; and each bag's points
    outside."""
    axes, shares = np.eye(len(lo)), (0, 0.01, 0.99, 1)
    moments, outside = moments_by_loop(bags, lo, hi, mode)
    extremes, _ = extremes_by_loop(bags, axes, shares, lo, hi, mode)
    rows = []
    for statistics in np.concatenate([moments, extremes], axis=1):
        row = []
        for value, levels in zip(statistics, knots, strict=True):
            for low, high in pairwise(levels):
                if value <= low:
                    row.append(0.5 if value == low == high else 0.0)
                else:
                    row.append(1.0 if value >= high else (value - low) / (high - low))
        rows.append(row)
    return np.array(rows), outside


def sizes_by_loop(
    bags: Sequence[NDArray], lo: Sequence[float], hi: Sequence[float], mode: str = "clip"
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The logarithm of how many points of each bag count; and each bag's points outside."""
    counted = [confined(to_unit(bag, lo, hi), mode) for bag in bags]
    rows = [[np.log(len(saved))] for saved, _ in counted]
    return np.array(rows), np.array([outside for _, outside in counted])


def words_by_loop(
    bags: Sequence[NDArray],
    centres: NDArray,
    lo: Sequence[float],
    hi: Sequence[float],
    mode: str = "clip",
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Roots of the fractions of points by the nearest centre, and each bag's points outside."""
    rows, n_outside = [], []
    for bag in bags:
        selected, outside = confined(to_unit(bag, lo, hi), mode)
        nearest = ((selected[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        rows.append(np.sqrt(np.bincount(nearest, minlength=len(centres)) / len(selected)))
        n_outside.append(outside)
    return np.array(rows), np.array(n_outside)
