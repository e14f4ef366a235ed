"""Pictures of densities: those that a model sees in bags, and those that it predicts."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from bagbasis import Box
from bagbasis.densities import Densities, estimate_densities
from bagbasis.embeddings import SeriesShape
from bagbasis.plotting.bags import DENSITY, DENSITY_GRID as PLOTTED_GRID, MAX_DOTS, draw_plane
from bagbasis.plotting.style import BLUE, GREY, ORANGE

from .evaluation import new_figure, save_figure

_DENSITY_GRID = {**PLOTTED_GRID, 3: 48}  # midpoints per dimension of a density that is drawn
TITLE_LETTERS = 44  # letters in a title line, which is as wide as a panel
SLICES = (0.1, 0.5, 0.9)  # quantiles of the third coordinate's range
MAX_MARGINALS = 6  # coordinates of a bag drawn one by one
COLOURS = (GREY, BLUE, ORANGE)

_Array = NDArray[Any]


def draw_bags(
    path: str | os.PathLike[str],
    bags: Sequence[_Array],
    titles: Sequence[str],
    box: Box,
    series: SeriesShape,
    coordinate_names: Sequence[str],
    downwards: bool = False,
) -> Path:
    """Draw bags and their series density estimates, one row or column per bag.

    One coordinate: histogram and curve. Two: heat map and points. Three: the points, and slices
    of the density at a low, a middle and a high third coordinate. More: each coordinate by
    itself. ``downwards`` turns the second axis around, as in images.
    """
    n_dims = box.n_dims
    joint = series.joint and n_dims <= 3
    across = {1: 1, 2: 1, 3: 1 + len(SLICES)}[n_dims] if joint else min(n_dims, MAX_MARGINALS)
    rows, columns = (1, len(bags)) if across == 1 else (len(bags), across)
    height = 4.6 if joint and n_dims == 2 else 3.9  # square panels, next to one colour bar
    figure = new_figure(4.4 * columns + 0.4, height * rows + 0.4)
    axes = figure.subplots(rows, columns, squeeze=False).reshape(len(bags), across)
    if joint and n_dims == 2:
        planes = [_estimate(bag, box, series).on_grid(_DENSITY_GRID[2])[0] for bag in bags]
        _draw_planes(axes[:, 0], bags, planes, box, coordinate_names)
    for row, bag in zip(axes, bags, strict=True):
        if joint and n_dims == 3:
            _draw_slices(row, bag, _estimate(bag, box, series), coordinate_names)
        elif not joint or n_dims != 2:
            for j, axis in enumerate(row):
                side = Box((box.lo[j],), (box.hi[j],))
                density = _estimate(bag[:, [j]], side, series)
                _draw_curve(axis, bag[:, j], density, coordinate_names[j])
    for row, title in zip(axes, titles, strict=True):
        lines = [*textwrap.wrap(title, TITLE_LETTERS), row[0].get_title()]
        row[0].set_title("\n".join(filter(None, lines)), fontsize=10)
    if joint and n_dims > 1 and downwards:
        for axis in axes.ravel():
            axis.invert_yaxis()
    kind = "densities" if joint else "densities of single coordinates"
    figure.suptitle(f"Bags and the {kind} estimated from them ({series.basis} series)")
    return save_figure(figure, path)


def draw_densities(
    path: str | os.PathLike[str],
    columns: Mapping[str, Densities],
    titles: Sequence[str],
    coordinate_names: Sequence[str],
) -> Path:
    """Draw one row per bag, one panel per kind of density; in one dimension one curve per kind.

    Three coordinates: the slice in the middle of the third. More: the marginal of the first two.

    Parameters
    ----------
    columns : mapping from the kind to its densities, one per bag, all in one box
    titles : one per bag
    """
    n_dims = next(iter(columns.values())).n_dims
    if n_dims == 1:
        return _curves(path, columns, titles, coordinate_names[0])
    if n_dims > 3:
        columns = {kind: densities.marginal([0, 1]) for kind, densities in columns.items()}
    figure = new_figure(3.9 * len(columns) + 1.0, 3.5 * len(titles) + 0.4)
    axes = figure.subplots(len(titles), len(columns), squeeze=False)
    values = {kind: _middle(densities) for kind, densities in columns.items()}
    for i, (row, title) in enumerate(zip(axes, titles, strict=True)):
        top = max(float(plane[i].max()) for plane in values.values())
        for axis, (kind, plane) in zip(row, values.items(), strict=True):
            image = _heat_map(axis, plane[i], columns[kind].box, coordinate_names, top)
            axis.set_title(kind, fontsize=10)
        row[0].set_title(f"{title}\n{row[0].get_title()}", fontsize=10)
        figure.colorbar(image, ax=list(row), label=DENSITY)
    what = {2: "Densities", 3: "Densities, sliced at the middle of " + coordinate_names[-1]}
    figure.suptitle(what.get(n_dims, "Densities of the first two coordinates"))
    return save_figure(figure, path)


def _curves(
    path: str | os.PathLike[str],
    columns: Mapping[str, Densities],
    titles: Sequence[str],
    name: str,
) -> Path:
    figure = new_figure(4.4 * len(titles) + 0.4, 4.0)
    axes = figure.subplots(1, len(titles), squeeze=False)[0]
    colours = COLOURS[-len(columns) :]
    for (kind, densities), colour in zip(columns.items(), colours, strict=True):
        at, values = densities.grid_axes(_DENSITY_GRID[1])[0], densities.on_grid(_DENSITY_GRID[1])
        for axis, curve in zip(axes, values, strict=True):
            axis.plot(at, curve, color=colour, label=kind)
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(name)
        axis.set_ylabel("density")
        axis.legend(loc="best", fontsize=8)
    return save_figure(figure, path)


def _estimate(bag: _Array, box: Box, series: SeriesShape) -> Densities:
    """Estimate the density of one bag; points outside the box count at its edge."""
    size: dict[str, Any] = {"shape": "tensor", "smoothness": series.n_per_dim}
    if series.max_norm is not None:
        size = {"shape": "ball", "smoothness": series.max_norm}
    return estimate_densities([bag], basis=series.basis, box=box, **size)


def _draw_curve(axis: Axes, values: _Array, density: Densities, name: str) -> None:
    span = density.box.lo[0], density.box.hi[0]
    axis.hist(values, bins=40, range=span, density=True, color=BLUE, alpha=0.4, label="points")
    at, curve = density.grid_axes(_DENSITY_GRID[1])[0], density.on_grid(_DENSITY_GRID[1])[0]
    axis.plot(at, curve, color=ORANGE, label="estimated density")
    axis.set_xlabel(name)
    axis.set_ylabel("density")
    axis.legend(loc="best", fontsize=8)


def _draw_planes(
    axes: _Array, bags: Sequence[_Array], planes: Sequence[_Array], box: Box, names: Sequence[str]
) -> None:
    """Draw a heat map per bag under its points, all on one scale of colours."""
    top = max(float(plane.max()) for plane in planes)
    for axis, bag, plane in zip(axes, bags, planes, strict=True):
        image = _heat_map(axis, plane, box, names, top)
        shown = _some(bag)
        part = f"{len(shown):,} of its points" if len(shown) < len(bag) else f"{len(bag):,} points"
        axis.plot(shown[:, 0], shown[:, 1], ".", color=ORANGE, markersize=2.5, label=part)
        axis.legend(loc="upper right", fontsize=8)
    axes[0].figure.colorbar(image, ax=list(axes), label=f"estimated {DENSITY}", shrink=0.65)


def _draw_slices(row: _Array, bag: _Array, density: Densities, names: Sequence[str]) -> None:
    box, shown = density.box, _some(bag)
    size = float(np.clip(6000 / len(shown), 6, 90))
    span = {"vmin": box.lo[2], "vmax": box.hi[2]}
    dots = row[0].scatter(*shown[:, :2].T, c=shown[:, 2], s=size, cmap="cividis", **span)
    row[0].figure.colorbar(dots, ax=row[0], label=names[2])
    row[0].set_title(f"{len(shown):,} points", fontsize=10)
    _frame(row[0], box, names)
    heights = [box.lo[2] + share * (box.hi[2] - box.lo[2]) for share in SLICES]
    slices = [_slice(density, height)[0] for height in heights]
    top = max(float(values.max()) for values in slices)
    for axis, values, height in zip(row[1:], slices, heights, strict=True):
        image = _heat_map(axis, values, box, names, top)
        axis.set_title(f"density at {names[2]} = {height:.3g}", fontsize=10)
    row[0].figure.colorbar(image, ax=list(row[1:]), label=f"estimated {DENSITY}")


def _some(bag: _Array) -> _Array:
    return bag[:: -(-len(bag) // MAX_DOTS)]


def _middle(densities: Densities) -> _Array:
    """Values over the first two coordinates, shape (n, grid, grid)."""
    if densities.n_dims == 2:
        return densities.on_grid(_DENSITY_GRID[2])
    return _slice(densities, 0.5 * (densities.box.lo[2] + densities.box.hi[2]))


def _slice(densities: Densities, height: float) -> _Array:
    """Values at one third coordinate, shape (n, grid, grid)."""
    grid = _DENSITY_GRID[3]
    x, y, _ = densities.grid_axes(grid)
    points = np.stack(np.meshgrid(x, y, [height], indexing="ij"), axis=-1).reshape(-1, 3)
    return densities.at(points).reshape(len(densities), grid, grid)


def _heat_map(
    axis: Axes, values: _Array, box: Box, names: Sequence[str], top: float | None = None
) -> AxesImage:
    _frame(axis, box, names)
    return draw_plane(axis, values, box, top)


def _frame(axis: Axes, box: Box, names: Sequence[str]) -> None:
    axis.set_xlim(box.lo[0], box.hi[0])
    axis.set_ylim(box.lo[1], box.hi[1])
    axis.set_box_aspect(1)
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])
