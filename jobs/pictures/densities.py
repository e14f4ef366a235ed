"""Predicted densities beside those of the bag and of its response."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from bagbasis.densities import Densities

from .evaluation import BLUE, GREY, ORANGE, new_figure, save_figure

GRID = {1: 320, 2: 96, 3: 48}
COLOURS = (GREY, BLUE, ORANGE)

Array = NDArray[Any]


def draw_densities(
    path: str | os.PathLike[str],
    columns: Mapping[str, Densities],
    titles: Sequence[str],
    coordinate_names: Sequence[str],
) -> Path:
    """One row a bag, one panel a kind of density; in one dimension one panel, one curve a kind.

    Three coordinates: the slice in the middle of the third. More: the marginal of the first two.

    Parameters
    ----------
    columns : mapping from the kind to its densities, one a bag, all in one box
    titles : one a bag
    """
    n_dims = next(iter(columns.values())).n_dims
    if n_dims == 1:
        return _curves(path, columns, titles, coordinate_names[0])
    if n_dims > 3:
        columns = {kind: densities.marginal([0, 1]) for kind, densities in columns.items()}
    figure = new_figure(3.9 * len(columns) + 1.0, 3.5 * len(titles) + 0.4)
    axes = figure.subplots(len(titles), len(columns), squeeze=False)
    values = {kind: _plane(densities) for kind, densities in columns.items()}
    for i, (row, title) in enumerate(zip(axes, titles, strict=True)):
        top = max(float(plane[i].max()) for plane in values.values())
        for axis, (kind, plane) in zip(row, values.items(), strict=True):
            image = _heat_map(axis, plane[i], columns[kind], top, coordinate_names)
            axis.set_title(kind, fontsize=10)
        row[0].set_title(f"{title}\n{row[0].get_title()}", fontsize=10)
        figure.colorbar(image, ax=list(row), label="density (0 where negative)")
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
        at, values = densities.grid_axes(GRID[1])[0], densities.on_grid(GRID[1])
        for axis, curve in zip(axes, values, strict=True):
            axis.plot(at, curve, color=colour, label=kind)
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(name)
        axis.set_ylabel("density")
        axis.legend(loc="best", fontsize=8)
    return save_figure(figure, path)


def _plane(densities: Densities) -> Array:
    """Values over the first two coordinates, shape (n, grid, grid)."""
    grid = GRID[densities.n_dims]
    if densities.n_dims == 2:
        return densities.on_grid(grid)
    x, y, _ = densities.grid_axes(grid)
    middle = 0.5 * (densities.box.lo[2] + densities.box.hi[2])
    points = np.stack(np.meshgrid(x, y, [middle], indexing="ij"), axis=-1).reshape(-1, 3)
    return densities.at(points).reshape(len(densities), grid, grid)


def _heat_map(
    axis: Axes, values: Array, densities: Densities, top: float, names: Sequence[str]
) -> Any:
    box = densities.box
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])
    axis.set_box_aspect(1)
    return axis.imshow(
        values.T,
        origin="lower",
        extent=(box.lo[0], box.hi[0], box.lo[1], box.hi[1]),
        aspect="auto",
        cmap="viridis",
        vmin=0,
        vmax=top,
    )
