"""The picture of where a difference lies: the locations of ME or NFSIC over two densities.

For two samples, these are the samples' densities. For dependence, they are the density of the pairs
and the density that x and y would have if they were independent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.stats import rankdata
from sklearn.decomposition import PCA

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import HypothesisResult
from bagbasis.plotting.style import BLUE, ORANGE

from .evaluation import new_figure, save_figure

_MAX_AXES = 10  # number of coordinates, or principal directions, from which a plane is chosen
_N_PARTS = 8  # parts of an axis, with equally many rows each, by which planes are compared
BINS, SMOOTH = 64, 2.5  # of an axis of a drawn density, and the width of its kernel in bins
# Rows between them are drawn: one outlier does not flatten the rest.
DRAWN_QUANTILES = (0.002, 0.998)
_LARGEST, _SMALLEST = 500.0, 15.0  # areas of locations, in points²

_Index = NDArray[np.int64]
Counts = Callable[[_Index, _Index, int], tuple[Floats, Floats]]
"""From the bins of rows on two axes, and the number of bins, to the two densities, (n, n) each."""


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction along which rows and locations are drawn, with the position of each."""

    name: str
    rows: Floats
    locations: Floats

    def parts(self) -> _Index:
        """Return the part of each row, one of `_N_PARTS`."""
        ranks = rankdata(self.rows, method="min") - 1
        parts: _Index = (ranks * _N_PARTS // len(ranks)).astype(np.int64)
        return parts

    def edges(self) -> Floats:
        """Return the edges of the bins of a density, which the locations are within, too."""
        shown = np.append(np.quantile(self.rows, DRAWN_QUANTILES), self.locations)
        low, high = float(shown.min()), float(shown.max())
        margin = 0.08 * (high - low) or 0.5
        return np.linspace(low - margin, high + margin, BINS + 1)


def draw_locations(path: str | os.PathLike[str], result: HypothesisResult) -> Path:
    """Draw each location: its size is its contribution, its colour the denser part there.

    The plane is the one in which the densities differ most. It is chosen among pairs of coordinates
    if there are at most ten, else among pairs of the first ten principal directions, as for
    embeddings of bags.

    Parameters
    ----------
    result : HypothesisResult
        With ``sampled_rows``.
    """
    names, rows = list(result.sampled_rows), list(result.sampled_rows.values())
    where = result.details["locations"]
    counts: Counts = _pairs_and_margins
    if isinstance(where, Mapping):
        x, y = (
            _directions(f"{name}, ", z, np.array(where[v]))
            for name, z, v in zip(names, rows, "vw", strict=True)
        )
        planes = list(product(x, y))
        kinds = "pairs", "x and y, were they independent"
    else:
        directions = _directions("", np.concatenate(rows), np.array(where))
        planes = list(combinations(directions, 2)) or [(directions[0], directions[0])]
        counts, kinds = _two_samples(len(rows[0])), (names[0], names[1])
    plane = max(
        planes, key=lambda two: _difference(*counts(two[0].parts(), two[1].parts(), _N_PARTS))
    )
    figure = new_figure(6.8, 6.0)
    axis = figure.subplots()
    _draw_densities(axis, plane, counts)
    _draw_locations(axis, plane, result.details)
    marks = [Line2D([], [], color=color, label=kind) for kind, color in
             zip(kinds, (BLUE, ORANGE), strict=True)]  # fmt: skip
    axis.legend(handles=marks, fontsize=8, title="lines: density; dots: more of", title_fontsize=8)
    what = {"bag": "embeddings of bags", "group": "rows in groups"}.get(result.unit, "points")
    axis.set_title(f"{result.name.partition('(')[0]} of {what}: where it finds a difference\n"
                   "numbers as in the report, areas as they contribute", fontsize=9)  # fmt: skip
    return save_figure(figure, path)


def _directions(prefix: str, rows: Floats, locations: Floats) -> list[Direction]:
    """Return the coordinates, or the first principal directions of more than ten."""
    n_dims = rows.shape[1]
    if n_dims == 1 and prefix:
        return [Direction(prefix.rstrip(", "), rows[:, 0], locations[:, 0])]
    if n_dims <= _MAX_AXES:
        return [
            Direction(f"{prefix}coordinate {j}", rows[:, j], locations[:, j]) for j in range(n_dims)
        ]
    pca = PCA(min(_MAX_AXES, len(rows)), svd_solver="randomized", random_state=0).fit(rows)
    moved, at = pca.transform(rows), pca.transform(locations)
    return [
        Direction(f"{prefix}principal direction {j + 1}, {share:.0%} of the variance",
                  moved[:, j], at[:, j])
        for j, share in enumerate(pca.explained_variance_ratio_)
    ]  # fmt: skip


def _two_samples(n_first: int) -> Counts:
    """Count the rows of each sample; the first one's rows come first."""

    def counts(a: _Index, b: _Index, n_bins: int) -> tuple[Floats, Floats]:
        return _table(a[:n_first], b[:n_first], n_bins), _table(a[n_first:], b[n_first:], n_bins)

    return counts


def _pairs_and_margins(a: _Index, b: _Index, n_bins: int) -> tuple[Floats, Floats]:
    pairs = _table(a, b, n_bins)
    return pairs, np.outer(pairs.sum(axis=1), pairs.sum(axis=0))


def _table(a: _Index, b: _Index, n_bins: int) -> Floats:
    """Return the fractions of rows in each pair of bins; a bin of −1 is none."""
    inside = (a >= 0) & (b >= 0)
    places = a[inside] * n_bins + b[inside]
    return np.bincount(places, minlength=n_bins**2).reshape(n_bins, -1) / max(1, len(a))


def _difference(first: Floats, second: Floats) -> float:
    """Return Σ (p − q)² / (p + q)."""
    both = first + second
    return float(((first - second)[both > 0] ** 2 / both[both > 0]).sum())


def _draw_densities(axis: Axes, plane: Sequence[Direction], counts: Counts) -> None:
    edges = [direction.edges() for direction in plane]
    bins = []
    for direction, at in zip(plane, edges, strict=True):
        bin_of_row = np.searchsorted(at, direction.rows) - 1
        bins.append(np.where((bin_of_row < 0) | (bin_of_row >= BINS), -1, bin_of_row))
    tables = counts(bins[0], bins[1], BINS)
    middles = [(at[1:] + at[:-1]) / 2 for at in edges]
    axis.set_xlabel(plane[0].name)
    if plane[0] is plane[1]:
        for table, color in zip(tables, (BLUE, ORANGE), strict=True):
            density = gaussian_filter(np.diag(table), SMOOTH) / (edges[0][1] - edges[0][0])
            axis.plot(middles[0], density, color=color)
        axis.set_ylabel("density")
        return
    for table, color in zip(tables, (BLUE, ORANGE), strict=True):
        density = gaussian_filter(table, SMOOTH)
        heights = density.max() * np.array([0.1, 0.3, 0.5, 0.7, 0.9])
        axis.contour(*middles, density.T, levels=heights, colors=color, linewidths=1, alpha=0.8)
    axis.set_ylabel(plane[1].name)


def _draw_locations(axis: Axes, plane: Sequence[Direction], details: Mapping[str, Any]) -> None:
    shares = np.maximum(details["contributions"], 0.0)
    colors = [BLUE if gap > 0 else ORANGE for gap in details["differences"]]
    x, y = plane[0].locations, plane[1].locations
    if plane[0] is plane[1]:
        y = np.full(len(x), 0.05 * axis.get_ylim()[1])
    sizes = np.maximum(
        _LARGEST * shares / max(float(shares.max()), np.finfo(float).tiny), _SMALLEST
    )
    axis.scatter(x, y, s=sizes, c=colors, alpha=0.5, edgecolors="black", zorder=3)
    for number, at in enumerate(zip(x, y, strict=True), 1):
        axis.annotate(str(number), at, (4, 4), textcoords="offset points", fontsize=8, zorder=4)
