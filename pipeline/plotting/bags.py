"""Figures of bags and densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from ..core import Instance, checked, documented
from ..core.checks import check_position
from ..core.errors import DataError
from ..data.bags.frames import names_of_table
from ..data.bags.point_rows import points_in_order
from .style import BLUE, ORANGE, axes_of, label_of

if TYPE_CHECKING:
    from ..core.arrays import Floats
    from ..data.bags.box import Box
    from ..densities.series import Densities

MAX_DOTS = 1000  # largest number of points of a bag that are drawn
DENSITY_GRID = {1: 320, 2: 96}  # midpoints per dimension at which densities are drawn
DENSITY = "density (0 where negative)"  # a series may be negative


def plot_bag(
    bag: ArrayLike,
    density: Densities | None = None,
    *,
    coordinate_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the points of a bag over a density estimate of its coordinates.

    Points with one coordinate are drawn as a histogram. If there are more than two coordinates, the
    first two are drawn.

    Parameters
    ----------
    bag : array_like or table, shape (n_points, n_dims)
        Points of the bag. The columns of a table give the names of the axes. If the coordinates of
        the density have names, columns are put in their order.
    density : Densities, optional
        Density of one bag, for example from `estimate_densities([bag])`. With more than two
        coordinates, the marginal of the first two is drawn.
    coordinate_names : sequence of str, optional
        Names of the axes. Default: the names of the coordinates, if they are known.
    ax : matplotlib Axes, optional
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the bag is not an array of points, or the density has another dimension or other names of
        coordinates.

    See Also
    --------
    plot_densities : Plot an estimated density.
    bagbasis.Bags : Bags in memory.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.plotting import plot_bag
    >>> ax = plot_bag(rng.normal(size=(50, 2)), coordinate_names=['pulse', 'pressure'])
    >>> ax.get_xlabel()
    'pulse'
    """
    own = names_of_table(bag)
    known = None if density is None else density.coordinate_names
    points, _ = points_in_order(bag, known, "bag", "the density is of", np.float64)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or not points.size:
        raise DataError(f"bag has shape {points.shape}; expected (n_points, n_dims)")
    n_dims = points.shape[1]
    if density is not None and density.n_dims != n_dims:
        raise DataError(f"the bag has {n_dims} coordinates, the density {density.n_dims}")
    names = _names_of(coordinate_names or known or own, n_dims)
    ax = axes_of(ax)
    if n_dims == 1:
        ax.hist(points[:, 0], bins=40, density=True, color=BLUE, alpha=0.4, label="points")
        if density is not None:
            plot_densities(density, ax=ax, coordinate_names=names)
        ax.set_ylabel("density")
    else:
        if density is not None:
            plot_densities(density, ax=ax, coordinate_names=names)
        shown = points[:: -(-len(points) // MAX_DOTS)]
        part = f"{len(shown):,} of {len(points):,} points"
        label = part if len(shown) < len(points) else f"{len(points):,} points"
        color = BLUE if density is None else ORANGE
        ax.plot(shown[:, 0], shown[:, 1], ".", color=color, markersize=3, label=label)
        ax.set_ylabel(label_of(names[1]))
    ax.set_xlabel(label_of(names[0]))
    ax.legend(fontsize=9)
    return ax


def _names_of(names: Sequence[str] | None, n_dims: int) -> list[str]:
    return list(names or [f"coordinate {j}" for j in range(n_dims)])


@documented
@checked
def plot_densities(
    densities: Annotated[Densities, Instance()],
    index: int = 0,
    *,
    coordinate_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one density, as a curve (one coordinate) or a heat map (two).

    With more than two coordinates, the marginal of the first two is drawn.

    Parameters
    ----------
    densities : Densities
        Estimated or predicted densities.
    index
        Position of the density that is drawn.
    coordinate_names : sequence of str
        Names of the axes. Default: the names of the coordinates, if they are known.
    ax : matplotlib Axes
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ParameterError
        If there is no density at ``index``.

    See Also
    --------
    bagbasis.densities.estimate_densities : Estimate the density of each bag.
    plot_bag : Plot the points of a bag.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.densities import estimate_densities
    >>> from bagbasis.plotting import plot_densities
    >>> ax = plot_densities(estimate_densities([rng.normal(size=(50, 1))]))
    >>> len(ax.lines) > 0
    True
    """
    check_position("index", index, len(densities))
    n_dims = densities.n_dims
    names = _names_of(coordinate_names or densities.coordinate_names, n_dims)
    shown = densities if n_dims <= 2 else densities.marginal([0, 1])
    values, box = shown.on_grid(DENSITY_GRID[min(n_dims, 2)])[index], shown.box
    ax = axes_of(ax)
    ax.set_xlabel(label_of(names[0]))
    if n_dims == 1:
        ax.plot(shown.grid_axes(DENSITY_GRID[1])[0], values, color=ORANGE, label="density")
        ax.set_ylabel("density")
        return ax
    ax.figure.colorbar(draw_plane(ax, values, box), ax=ax, label=DENSITY)
    ax.set_ylabel(label_of(names[1]))
    return ax


def draw_plane(ax: Axes, values: Floats, box: Box, top: float | None = None) -> AxesImage:
    """Draw values over two coordinates as a heat map; negative values are drawn as 0."""
    return ax.imshow(
        values.T,
        origin="lower",
        extent=(box.lo[0], box.hi[0], box.lo[1], box.hi[1]),
        aspect="auto",
        cmap="viridis",
        vmin=0,
        vmax=top,
    )
