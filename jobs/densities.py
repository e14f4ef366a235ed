"""A few bags with their estimated densities: what the model knows about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from bagbasis.bags import Box
from bagbasis.bases import evaluate_basis, evaluate_series, index_set

from .pictures.evaluation import BLUE, ORANGE, new_figure, save_figure

GRID = 80  # grid points a dimension
VALUES_AT_ONCE = 2**22  # of basis functions at points
MOST_DOTS = 1000
SLICES = (0.1, 0.5, 0.9)  # of the third coordinate's range
MOST_MARGINALS = 6
DENSITY = "estimated density (0 where negative)"

Array = NDArray[Any]


@dataclass(frozen=True)
class Series:
    """An orthogonal series density estimate: the basis and its index set.

    Attributes
    ----------
    basis : str
    n_per_dim : int or None
    max_norm : float or None
    joint : bool
        Over all coordinates, for up to three of them; else over each coordinate by itself.
    """

    basis: str
    n_per_dim: int | None
    max_norm: float | None
    joint: bool

    def density(self, points: Array, grid: Array) -> Array:
        """The estimate Σ a_α φ_α at grid points, from sample points, both in the unit cube."""
        indices = index_set(points.shape[1], self.n_per_dim, self.max_norm, self.basis)
        rows = max(1, VALUES_AT_ONCE // len(indices))
        total = np.zeros(len(indices))
        for start in range(0, len(points), rows):
            block = points[start : start + rows]
            values = np.ones((len(block), len(indices)))
            for j in range(indices.shape[1]):
                one_d = evaluate_basis(self.basis, int(indices[:, j].max()) + 1, block[:, j])
                values *= one_d[:, indices[:, j]]
            total += values.sum(axis=0)
        mean = total[None] / len(points)
        blocks = [grid[start : start + rows] for start in range(0, len(grid), rows)]
        return np.concatenate(
            [evaluate_series(mean, indices, self.basis, block)[0] for block in blocks]
        )


def draw_bags(
    path: str | os.PathLike[str],
    bags: Sequence[Array],
    titles: Sequence[str],
    box: Box,
    series: Series,
    coordinate_names: Sequence[str],
    downwards: bool = False,
) -> Path:
    """Draw bags and their series density estimates, one row or column a bag.

    One coordinate: histogram and curve. Two: heat map and points. Three: the points, and slices
    of the density at a low, a middle and a high third coordinate. More: each coordinate by
    itself. ``downwards`` turns the second axis around, as in images.
    """
    n_dims = box.n_dims
    joint = series.joint and n_dims <= 3
    across = {1: 1, 2: 1, 3: 1 + len(SLICES)}[n_dims] if joint else min(n_dims, MOST_MARGINALS)
    if across == 1:
        rows, columns = 1, len(bags)
    else:
        rows, columns = len(bags), across
    figure = new_figure(4.4 * columns + 0.4, 3.9 * rows + 0.4)
    axes = figure.subplots(rows, columns, squeeze=False).reshape(len(bags), across)
    for row, bag, title in zip(axes, bags, titles, strict=True):
        if joint and n_dims == 2:
            _heat_map(row[0], bag, box, series, coordinate_names)
        elif joint and n_dims == 3:
            _slices(row, bag, box, series, coordinate_names)
        else:
            for j, axis in enumerate(row):
                _curve(axis, bag[:, j], box, j, series, coordinate_names[j])
        for j, axis in enumerate(row):
            extra = axis.get_title()
            axis.set_title(
                title + (f"\n{extra}" if extra else "") if j == 0 else extra, fontsize=10
            )
    if joint and n_dims > 1 and downwards:
        for axis in axes.ravel():
            axis.invert_yaxis()
    kind = "densities" if joint else "densities of single coordinates"
    figure.suptitle(f"Bags and the {kind} estimated from them ({series.basis} series)")
    return save_figure(figure, path)


def _curve(axis: Axes, values: Array, box: Box, j: int, series: Series, name: str) -> None:
    lo, hi = box.lo[j], box.hi[j]
    grid = (np.arange(4 * GRID) + 0.5) / (4 * GRID)
    inside = np.clip((values.astype(np.float64) - lo) / (hi - lo), 0, 1)
    density = series.density(inside[:, None], grid[:, None]) / (hi - lo)
    axis.hist(values, bins=40, range=(lo, hi), density=True, color=BLUE, alpha=0.4, label="points")
    axis.plot(lo + grid * (hi - lo), density, color=ORANGE, label="estimated density")
    axis.set_xlabel(name)
    axis.set_ylabel("density")
    axis.legend(loc="best", fontsize=8)


def _heat_map(axis: Axes, bag: Array, box: Box, series: Series, names: Sequence[str]) -> None:
    unit = np.clip(box.to_unit(bag), 0, 1)
    density = series.density(unit, _plane()) / _volume(box)
    image = _image(axis, density, box, names)
    axis.figure.colorbar(image, ax=axis, label=DENSITY)
    shown = bag[:: -(-len(bag) // MOST_DOTS)]
    label = f"{len(bag):,} points" if len(shown) == len(bag) else f"{len(shown):,} of its points"
    axis.plot(shown[:, 0], shown[:, 1], ".", color=ORANGE, markersize=2.5, label=label)
    axis.legend(loc="upper right", fontsize=8)


def _slices(row: Array, bag: Array, box: Box, series: Series, names: Sequence[str]) -> None:
    shown = bag[:: -(-len(bag) // MOST_DOTS)]
    dots = row[0].scatter(
        shown[:, 0],
        shown[:, 1],
        c=shown[:, 2],
        s=float(np.clip(6000 / len(shown), 6, 90)),
        cmap="cividis",
        vmin=box.lo[2],
        vmax=box.hi[2],
    )
    row[0].figure.colorbar(dots, ax=row[0], label=names[2])
    row[0].set_title(f"{len(shown):,} points", fontsize=10)
    _frame(row[0], box, names)
    unit = np.clip(box.to_unit(bag), 0, 1)
    plane = _plane()
    grids = [np.column_stack([plane, np.full(len(plane), at)]) for at in SLICES]
    density = series.density(unit, np.concatenate(grids)).reshape(len(SLICES), -1) / _volume(box)
    for axis, values, at in zip(row[1:], density, SLICES, strict=True):
        image = _image(axis, values, box, names, float(density.max()))
        third = box.lo[2] + at * (box.hi[2] - box.lo[2])
        axis.set_title(f"density at {names[2]} = {third:.3g}", fontsize=10)
    row[0].figure.colorbar(image, ax=list(row[1:]), label=DENSITY)


def _image(
    axis: Axes, density: Array, box: Box, names: Sequence[str], top: float | None = None
) -> AxesImage:
    """A heat map from 0 up; a series estimate may dip below, and is drawn as 0 there."""
    _frame(axis, box, names)
    return axis.imshow(
        density.reshape(GRID, GRID).T,
        origin="lower",
        extent=(box.lo[0], box.hi[0], box.lo[1], box.hi[1]),
        aspect="auto",
        cmap="viridis",
        vmin=0,
        vmax=top,
    )


def _frame(axis: Axes, box: Box, names: Sequence[str]) -> None:
    axis.set_xlim(box.lo[0], box.hi[0])
    axis.set_ylim(box.lo[1], box.hi[1])
    axis.set_box_aspect(1)
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])


def _plane() -> Array:
    at = (np.arange(GRID) + 0.5) / GRID
    return np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1).reshape(-1, 2)


def _volume(box: Box) -> float:
    return float(np.prod(np.array(box.hi) - np.array(box.lo)))
