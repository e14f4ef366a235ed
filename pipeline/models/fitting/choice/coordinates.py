"""Sets of coordinates that labels depend on, which ``embedding="auto"`` tries alone.

Distances of bags are sums over all coordinates, so that one coordinate of forty is lost among the
others. Coordinates are ranked by componentwise L2 boosting (Bühlmann and Yu 2003): summaries of
bags (means, spreads, quantiles, and products of pairs) explain the labels one at a time, each the
residuals of the earlier ones. The labels are used twice, to rank and to judge. Therefore a set is
tried only if it also comes first without each fold (stability selection, Meinshausen and Bühlmann
2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ....core.arrays import Floats, Integers
from ....data.bags.bags import Bags
from ....data.bags.box import range_of
from ....data.store.sampling import spread_rows
from ..fold_errors import FoldRows

MIN_DIMS = 4  # fewer coordinates are embedded together
_MAX_DIMS = 1000  # more would take longer than the choice may
_MIN_BAGS = 30  # with fewer bags, coordinates are ranked by chance
MIN_RANKED_BAGS, MAX_RANKED_BAGS = 200, 1000
RANKED_NUMBERS = 2**21  # summaries of all bags, for each target
MAX_POINTS_OF_BAG = 512  # evenly spread points of which quantiles are taken
_PAIRED_DIMS = 45  # more coordinates have more than a thousand pairs
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
QUANTILE_NUMBERS = 2**23  # coordinates of all points: with more, only means and spreads are used
BAGS_PER_BIN, _MAX_BINS = 25, 10  # of a summary, within which labels have one mean
_STEPS, SHRINKAGE = 20, 0.7  # of boosting
MIN_EXPLAINED = 0.01  # fraction of the labels' variance that a step has to explain
N_REPEATS = 2  # repetitions of the folds, without each of which coordinates are ranked
MIN_AGREEMENT = 0.8  # fraction of the rankings that begin with the same set
_MAX_COORDINATES = 12  # coordinates of a set
_MAX_TARGETS = 4  # of more targets, as many principal components are ranked by


def stable_sets(bags: Bags, rows: FoldRows) -> list[tuple[int, ...]]:
    """Return sets of coordinates that come first in the rankings of most folds, smallest first.

    Each set is in ascending order, and has at most half of the coordinates, because leaving out
    fewer coordinates gains little. The result is empty if labels depend on all coordinates alike.
    """
    d = bags.n_dims
    if not MIN_DIMS <= d <= _MAX_DIMS or len(bags) < _MIN_BAGS:
        return []
    n_summaries = d * (2 + len(_QUANTILES)) + d * (d - 1) * (d <= _PAIRED_DIMS)
    n_numbers = n_summaries * min(rows.y.shape[1], _MAX_TARGETS)
    most = np.clip(RANKED_NUMBERS // n_numbers, MIN_RANKED_BAGS, MAX_RANKED_BAGS)
    chosen = spread_rows(np.arange(len(bags)), int(most))
    if len(chosen) < len(bags):
        bags = bags[chosen]
    ranker = _Ranker(bags, _targets(rows, chosen))
    folds, weights = rows.folds[:N_REPEATS, chosen], rows.weights[chosen]
    fitted = [fold != f for fold in folds for f in range(int(fold.max()) + 1)]
    rankings = [ranker.rank(weights * inside) for inside in fitted]
    return _agreed(rankings, ranker.rank(weights), d)


def _agreed(
    rankings: Sequence[Sequence[int]], whole: Sequence[int], n_dims: int
) -> list[tuple[int, ...]]:
    """Return the beginnings of a ranking that are also beginnings of most other rankings."""
    sets = []
    for k in range(1, min(len(whole), _MAX_COORDINATES, n_dims // 2) + 1):
        beginning = frozenset(whole[:k])
        n_agreeing = sum(frozenset(ranking[:k]) == beginning for ranking in rankings)
        if n_agreeing >= MIN_AGREEMENT * len(rankings):
            sets.append(tuple(sorted(beginning)))
    return sets


def _targets(rows: FoldRows, chosen: Integers) -> Floats:
    """Return labels in their units, shape (n, k); for many columns, their principal components."""
    y = rows.y[chosen] / np.sqrt(rows.units)
    if y.shape[1] <= _MAX_TARGETS:
        return y
    y = y - y.mean(axis=0)
    vectors, values, _ = np.linalg.svd(y, full_matrices=False)
    targets: Floats = vectors[:, :_MAX_TARGETS] * values[:_MAX_TARGETS]
    return targets


@dataclass(frozen=True, eq=False)
class _Summaries:
    """Summary statistics of bags, one column each.

    Attributes
    ----------
    values : float64, shape (n, s)
    first, second : int64, shape (s,)
        Coordinates of each column; both are equal if a column has one coordinate.
    """

    values: Floats
    first: Integers
    second: Integers


def _summaries(bags: Bags) -> _Summaries:
    """Return means, spreads, quantiles, and mean products of each pair of coordinates."""
    d = bags.n_dims
    center = bags.points.mean(axis=0, dtype=np.float64)
    low, high = range_of(bags.points)
    scale = np.where(high > low, high - low, 1.0)
    pairs = np.array([*combinations(range(d), 2)] if d <= _PAIRED_DIMS else [], np.int64)
    first, second = pairs.reshape(-1, 2).T
    with_quantiles = bags.points.size <= QUANTILE_NUMBERS
    rows = []
    for i in range(len(bags)):
        points = (np.asarray(bags[i], np.float64) - center) / scale
        mean, spread = points.mean(axis=0), points.std(axis=0)
        parts = [mean, spread]
        if with_quantiles:
            ordered = np.sort(spread_rows(points, MAX_POINTS_OF_BAG), axis=0)
            parts += [ordered[round(q * (len(ordered) - 1))] for q in _QUANTILES]
        if len(pairs):
            products = (points.T @ points / len(points))[first, second]
            size = spread[first] * spread[second]
            correlations = (products - mean[first] * mean[second]) / np.where(size > 0, size, 1.0)
            parts += [products, correlations]
        rows.append(np.concatenate(parts))
    singles = np.tile(np.arange(d), 2 + len(_QUANTILES) * with_quantiles)
    first, second = (np.concatenate([singles, pair, pair]) for pair in (first, second))
    return _Summaries(np.stack(rows), first, second)


class _Ranker:
    """Ranks coordinates by the variance of targets (n, k) that their summaries explain."""

    def __init__(self, bags: Bags, targets: Floats) -> None:
        summaries = _summaries(bags)
        varies = np.ptp(summaries.values, axis=0) > 0
        values = summaries.values[:, varies]
        self._first, self._second = summaries.first[varies], summaries.second[varies]
        self._targets, (n, s) = targets, values.shape
        self._n_bins = int(np.clip(n // BAGS_PER_BIN, 2, _MAX_BINS))
        ordered = np.sort(values, axis=0)
        # bags with equal values are in one bin
        edges = ordered[[n * b // self._n_bins for b in range(1, self._n_bins)]]
        self._bins = np.zeros((n, s), np.int64)
        for edge in edges:
            self._bins += values >= edge
        self._cells = (self._bins + self._n_bins * np.arange(s)).ravel()

    def rank(self, weights: Floats) -> list[int]:
        """Return coordinates sorted by the variance they explain; others are left out."""
        y = self._targets - np.average(self._targets, axis=0, weights=weights)
        total = float(weights @ (y**2).sum(axis=1))
        s = self._bins.shape[1]
        if not total > 0 or not s:
            return []
        counts = self._sums(weights)
        used = (counts > 0).sum(axis=1)
        n = float(weights.sum() ** 2 / (weights**2).sum())
        # about half of what the best of s summaries explains by chance
        chance = (np.sqrt(self._n_bins * np.log(s)) + np.log(s)) / n
        gains: dict[int, float] = {}
        for _ in range(_STEPS):
            sums = np.stack([self._sums(weights * column) for column in y.T], axis=2)
            means = sums / np.where(counts > 0, counts, 1.0)[:, :, None]
            explained = (means * sums).sum(axis=(1, 2))
            unexplained = float(weights @ (y**2).sum(axis=1))
            adjusted = explained - (used - 1) * (unexplained - explained) / np.maximum(n - used, 1)
            best = int(adjusted.argmax())
            if adjusted[best] < max(MIN_EXPLAINED * total, chance * unexplained):
                break
            for j in {int(self._first[best]), int(self._second[best])}:
                gains[j] = gains.get(j, 0.0) + float(adjusted[best])
            y = y - SHRINKAGE * means[best, self._bins[:, best]]
            y -= np.average(y, axis=0, weights=weights)
        return sorted(gains, key=lambda j: -gains[j])

    def _sums(self, values: Floats) -> Floats:
        """Return the sums of values, shape (n,), in each bin of each summary."""
        s = self._bins.shape[1]
        sums = np.bincount(self._cells, np.repeat(values, s), minlength=s * self._n_bins)
        return np.asarray(sums.reshape(s, self._n_bins), np.float64)
