"""Exchange of coordinates between bags, and the drop in score that it causes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.arrays import Floats, Integers
from ...data.bags.bags import Bags


def exchange_coordinates(
    bags: Bags, coordinates: Sequence[int], donors: Integers, rng: np.random.Generator
) -> Bags:
    """Return bags with some coordinates of other bags: bag i gets those of bag ``donors[i]``.

    The exchanged coordinates of a point stay together. A donor with more points gives a random part
    of its points. A donor with fewer points gives each point equally often, or once more.
    """
    sizes, starts = bags.sizes, bags.offsets[:-1]
    of_points = np.repeat(np.arange(len(bags)), sizes)
    shuffled = np.lexsort((rng.random(bags.n_points), of_points))  # rows, bag by bag
    rank = np.empty_like(shuffled)
    rank[shuffled] = np.arange(bags.n_points) - np.repeat(starts, sizes)
    giver = donors[of_points]
    rows = shuffled[starts[giver] + rank % sizes[giver]]
    points = bags.points.copy()
    points[:, list(coordinates)] = bags.points[rows[:, None], list(coordinates)]
    return Bags.trusted(points, bags.offsets, names=bags.coordinate_names)


def drop_of_score(
    base: Floats,
    exchanged: Floats,
    donors: Integers,
    units: Floats,
    weights: Floats,
    codes: Integers,
) -> tuple[Floats, Floats]:
    """Return the drop of 1 − Σ w loss / Σ w unit by an exchange, and its standard error.

    The mean is over pairs of a predicted bag and a donor. Its standard error is linearised: a bag
    contributes by its losses in both parts, and by its own unit in the denominator.

    Parameters
    ----------
    base, units : shape (n, k)
        Losses of the unchanged bags, and the reference losses.
    exchanged : shape (n_repeats, n, k)
        Losses with values of the bags ``donors``, shape (n_repeats, n).
    weights, codes : shape (n,)
        Weights of bags, and codes of their independent groups, 0, 1, ….

    Returns
    -------
    float64, each of shape (k,)
    """
    total, w = weights.sum(), weights[:, None]
    mean_unit = weights @ units / total
    after = exchanged.mean(axis=0)
    mean_after, mean_base = weights @ after / total, weights @ base / total
    # of equal labels, which nothing tells apart, drop and error are 0
    over = np.divide(1.0, mean_unit, out=np.zeros_like(mean_unit), where=mean_unit > 0)
    drop = (mean_after - mean_base) * over
    received = w * (after - base - (mean_after - mean_base))
    donated = np.zeros_like(base)
    for bags, losses in zip(donors, exchanged, strict=True):
        np.add.at(donated, bags, w * (losses - mean_after) / len(donors))
    parts = (received + donated - drop * w * (units - mean_unit)) * over
    sums = np.zeros((codes.max() + 1, base.shape[1]))
    np.add.at(sums, codes, parts)
    n_groups = len(sums)
    variance = n_groups / (n_groups - 1) * ((sums - sums.mean(axis=0)) ** 2).sum(axis=0)
    return drop, np.sqrt(variance) / total


def draw_donors(codes: Integers, rng: np.random.Generator) -> Integers:
    """Return a random donor for each bag, from the next group in a random circle of groups."""
    order = rng.permutation(codes.max() + 1)
    follower = np.empty_like(order)
    follower[order] = np.roll(order, -1)
    members, counts = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.cumsum(counts) - counts
    next_group = follower[codes]
    drawn: Integers = members[
        starts[next_group] + (rng.random(len(codes)) * counts[next_group]).astype(np.int64)
    ]
    return drawn
