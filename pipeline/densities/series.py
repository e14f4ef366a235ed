"""`Densities`: a batch of density estimates as coefficients on an orthonormal basis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import Instance, Integer, ListOf, None_, Text, checked, documented
from ..core.arrays import Floats, Integers
from ..core.errors import DataError, ParameterError, shown
from ..data.bags.bags import Bags
from ..data.bags.box import BOUNDS, Box
from ..data.bags.coordinates import checked_names, order_of
from ..embeddings.bases.functions import check_basis
from .density_checks import (
    MAX_VALUES_BYTES,
    box_contains,
    box_volume,
    check_bytes,
    check_grid,
    checked_coefficients,
    checked_dims,
    checked_indices,
    checked_points,
    checked_threshold,
    in_unit_cube,
)
from .rejection import MAX_GRID_CELLS, draw_series
from .series_values import l2_distances, midpoints, row_blocks, series_at, series_on_lattice
from .valid_densities import MAX_GRID_DIMS, SERIES_VALUES_PER_BLOCK, default_grid, thresholds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Densities:
    """Estimated densities of bags, as series in a box.

    The density of bag i is p_i(x) = (1 / |B|) Σ_α a_iα φ_α(u(x)) in a box B (Oliva 2018, eq. 2.8).

    u scales the box to the unit cube, and |B| is the volume of the box. Points and values are
    therefore in the units of the data. A density is zero outside the box. A series may be negative
    at some points; `valid` returns the nearest densities that are not.

    Indexing with an integer and iteration return batches of one density.

    Parameters
    ----------
    coefficients : array_like, shape (n, s)
        Coefficients a_iα of each density, stored as a read-only float64 array.
    indices : array_like of int, shape (s, d)
        Distinct multi-indices α in any order, including the constant function; see
        `bases.index_set`.
    basis : {"cosine", "trigonometric", "legendre"}
        Orthonormal basis.
    box : Box, or sequence of (lo, hi)
        Range of each coordinate. Default: the unit cube.
    threshold : array_like, shape (n,), optional
        Thresholds c_i of valid densities max(p_i − c_i / |B|, 0), which `valid` computes.
    grid : int, optional
        Number of midpoints per dimension of the grid on which `valid` computes thresholds. It is
        also the default grid of `on_grid` and `sample`; see `resolution`.
    coordinate_names : list of str, optional
        Names of the d coordinates. Columns of a table of points are put in their order.

    Raises
    ------
    DataError
        If shapes do not match, the number of names differs from the number of coordinates, or a
        coefficient or threshold is not finite.
    ParameterError
        If the basis is unknown, the grid is below 1, or names are not strings.

    See Also
    --------
    estimate_densities : Estimate the density of each bag.
    bagbasis.TripleBasisRegressor : Predict densities from bags.
    bagbasis.plotting.plot_densities : Plot an estimated density.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, s, (40, 1)) for s in (1.0, 1.1, 3.0)]
    >>> from bagbasis.densities import estimate_densities
    >>> densities = estimate_densities(X)
    >>> len(densities), densities.at([[-1.0], [0.0], [1.0]]).shape
    (3, (3, 3))
    >>> valid = densities.valid()  # nowhere negative
    >>> valid.is_valid, valid.integral().round(3)
    (True, array([1., 1., 1.]))
    >>> near, far = (densities[0].l2_distance(densities[i])[0] for i in (1, 2))
    >>> bool(near < far)
    True
    >>> [axis.shape for axis in densities.grid_axes(50)]  # where on_grid(50) evaluates
    [(50,)]
    """

    coefficients: Floats
    indices: Integers
    _: KW_ONLY
    basis: str
    # the attribute is a Box; the constructor accepts everything that `Box.of` accepts
    box: Annotated[Box, Instance("Box") | BOUNDS | None_]
    threshold: Floats | None = None
    grid: int | None = None
    coordinate_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Check all fields."""
        check_basis(self.basis)
        indices = checked_indices(self.indices)
        coefficients = checked_coefficients(self.coefficients, len(indices))
        threshold = self.threshold
        if threshold is not None:
            threshold = checked_threshold(threshold, len(coefficients))
        if self.grid is not None:
            check_grid(self.grid)
        box = Box.of(self.box, indices.shape[1])
        names = (ListOf(Text) | None_).check("coordinate_names", self.coordinate_names)
        if names is not None and checked_names(names, indices.shape[1]) is None:
            raise DataError(
                f"coordinate_names are {shown(names)}; expected {indices.shape[1]} texts, a name "
                "for each coordinate"
            )
        for name, value in zip(
            ("coefficients", "indices", "box", "threshold", "coordinate_names"),
            (coefficients, indices, box, threshold, None if names is None else list(names)),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    @property
    def n_dims(self) -> int:
        """Number of coordinates of a point."""
        return int(self.indices.shape[1])

    @property
    def volume(self) -> float:
        """Volume of the box, in the units of the data."""
        return box_volume(self.box)

    @property
    def resolution(self) -> int:
        """Number of midpoints per dimension: ``grid``, or by default four per function.

        The default is at least 256 in one dimension, 64 in two and 32 in three. If this gives more
        than 2^18 cells, the default is smaller, but not below two midpoints per function.
        """
        return default_grid(self.indices) if self.grid is None else self.grid

    @property
    def is_valid(self) -> bool:
        """Whether the densities are valid, that is, returned by `valid`."""
        return self.threshold is not None

    def __len__(self) -> int:
        """Return the number of densities."""
        return len(self.coefficients)

    def __getitem__(self, key: int | slice | NDArray[Any] | list[int]) -> Densities:
        """Return the densities of a slice, mask or indices; for an integer, a batch of one."""
        if isinstance(key, Integral):
            i = range(len(self))[int(key)]
            key = slice(i, i + 1)
        threshold = None if self.threshold is None else self.threshold[key]
        return replace(self, coefficients=self.coefficients[key], threshold=threshold)

    def __iter__(self) -> Iterator[Densities]:
        """Yield batches of one density."""
        for i in range(len(self)):
            yield self[i]

    def __repr__(self) -> str:
        """Return a text with the sizes and the basis, without coefficients."""
        return (
            f"Densities(n={len(self)}, n_dims={self.n_dims}, n_functions={len(self.indices)}, "
            f"basis={self.basis!r}, valid={self.is_valid})"
        )

    def at(self, points: ArrayLike) -> Floats:
        """Return density values at points in the units of the data, zero outside the box.

        Parameters
        ----------
        points : array_like or table, shape (n_points, d)
            Points at which all densities are evaluated. In one dimension, shape (n_points,) is
            accepted, too. Columns of a table are put in the order of ``coordinate_names``.

        Returns
        -------
        float64, shape (n, n_points)
            Density values per unit of volume of the data.

        Raises
        ------
        DataError
            If the points have another dimension, other names, or values that are not finite.
        """
        x = checked_points(points, self.n_dims, self.coordinate_names)
        unit = in_unit_cube(self.box, x)
        values = self._cut(
            series_at(self.coefficients, self.indices, self.basis, unit), slice(None)
        )
        values /= self.volume
        values[:, ~box_contains(self.box, x)] = 0.0
        return values

    @documented
    @checked
    def plot(self, index: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draw one density: a curve, or a heat map of the first two coordinates.

        Parameters
        ----------
        index
            Position of the density.
        ax : matplotlib Axes
            Axes to draw into; default those of a new figure.

        Raises
        ------
        DataError
            If matplotlib is not installed (``pip install 'bagbasis[plots]'``).
        """
        from ..plotting.bags import plot_densities  # noqa: PLC0415 - an extra

        return plot_densities(self, index, ax=ax)

    @checked
    def on_grid(self, n: int | None = None) -> Floats:
        """Return density values at n midpoints per dimension of the box.

        `grid_axes` returns the coordinates of the midpoints. The mean over the grid times the
        volume of the box approximates the integral. It is exact for a cosine or trigonometric
        series of frequencies below n, and for a valid density on its own grid (d ≤ 3).

        Parameters
        ----------
        n : int, optional
            Number of midpoints per dimension. Default: `resolution`.

        Returns
        -------
        float64, shape (n_densities, n, …, n)
            Density values per unit of volume of the data; axis 1 + j is dimension j.

        Raises
        ------
        ParameterError
            If the values take more than 8 GiB.
        """
        n = self.resolution if n is None else check_grid(n)
        check_bytes(n, self.n_dims, len(self))
        out = np.empty((len(self), n**self.n_dims))
        series = self.indices, self.basis
        for rows in row_blocks(len(self), out.shape[1], SERIES_VALUES_PER_BLOCK):
            values = series_on_lattice(self.coefficients[rows], *series, midpoints(n))
            out[rows] = self._cut(values, rows)
        out /= self.volume
        return out.reshape(len(self), *(n,) * self.n_dims)

    @checked
    def grid_axes(self, n: int | None = None) -> list[Floats]:
        """Return the midpoints of `on_grid` in each dimension, in the units of the data."""
        unit = midpoints(self.resolution if n is None else check_grid(n))
        return [lo + unit * (hi - lo) for lo, hi in zip(self.box.lo, self.box.hi, strict=True)]

    @checked
    def valid(self, grid: int | None = None) -> Densities:
        """Return the nearest valid densities max(p − c, 0), where c makes the integral one.

        The result is the L2 projection of p on the set of densities in the box. Its distance to
        any density is therefore at most the distance of p (Gajek 1986). c is computed on a grid of
        ``grid`` midpoints per dimension (default `resolution`), or on 2^14 quasi-random points with
        more than three dimensions. The projection is exact on this grid up to rounding. c is
        negative if p integrates to less than one. For a valid density, the threshold is computed
        again from its series.
        """
        n = self.resolution if grid is None else check_grid(grid)
        if self.n_dims <= MAX_GRID_DIMS:
            check_bytes(n, self.n_dims, 1)
        c = thresholds(self.coefficients, self.indices, self.basis, n)
        return replace(self, threshold=c, grid=n)

    def integral(self) -> Floats:
        """Return ∫ p of each density, shape (n,).

        The integral of a series is a_0. Valid densities are integrated over their grid.
        """
        if self.is_valid:
            means: Floats = self.on_grid().reshape(len(self), -1).mean(axis=1)
            return means * self.volume
        constant = (self.indices == 0).all(axis=1)
        integrals: Floats = self.coefficients[:, constant].sum(axis=1)
        return integrals

    @checked
    def l2_distance(self, other: Annotated[Densities, Instance()]) -> Floats:
        """Return the L2 distance (∫ (p_i − q_i)²)^½ of each pair of densities, shape (n,).

        Distances of series follow from Parseval's identity (Oliva 2018, eq. 2.10-2.13).

        Parameters
        ----------
        other : Densities
            The same number of densities in the same box. Two series on the same basis may have
            different index sets. Valid densities and series on different bases are integrated over
            the finer of the two grids (d ≤ 3).

        Raises
        ------
        DataError
            If ``other`` has another number of densities, another box, or other names of
            coordinates.
        """
        names = self.coordinate_names
        order = order_of(other.coordinate_names, names, "other", "these densities are of")
        if order is not None:
            indices, box = other.indices[:, order], other.box.in_order(order)
            other = replace(other, indices=indices, box=box, coordinate_names=names)
        if len(self) != len(other) or self.box != other.box:
            raise DataError(
                f"densities to compare differ: {len(self)} in {self.box.bounds}, {len(other)} in "
                f"{other.box.bounds}; they must be as many, in one box"
            )
        if self.is_valid or other.is_valid or self.basis != other.basis:
            n = max(self.resolution, other.resolution)
            gap = (self.on_grid(n) - other.on_grid(n)).reshape(len(self), -1)
            distances: Floats = np.sqrt((gap**2).mean(axis=1) * self.volume)
            return distances
        distances = l2_distances(self.coefficients, self.indices, other.coefficients, other.indices)
        return distances / float(np.sqrt(self.volume))

    def marginal(self, dims: int | Sequence[int]) -> Densities:
        """Return the marginal densities of the coordinates ``dims``.

        All functions except the constant integrate to zero. Only indices that are zero in all
        other coordinates therefore remain.

        Raises
        ------
        ParameterError
            If a dimension does not exist or is given twice, or the densities are valid densities.
            The marginal of a valid density is not a series.
        """
        chosen = checked_dims(dims, self.n_dims)
        if self.is_valid:
            raise ParameterError(
                "the marginal of a valid density is not a series; take marginal(…) of the series "
                "and then valid()"
            )
        others = [j for j in range(self.n_dims) if j not in chosen]
        constant_in_others = (self.indices[:, others] == 0).all(axis=1)
        box = Box(tuple(self.box.lo[j] for j in chosen), tuple(self.box.hi[j] for j in chosen))
        all_names = self.coordinate_names
        names = None if all_names is None else [all_names[j] for j in chosen]
        indices = self.indices[constant_in_others][:, chosen]
        return Densities(
            self.coefficients[:, constant_in_others],
            indices,
            basis=self.basis,
            box=box,
            coordinate_names=names,
        )

    @checked
    def sample(self, n: int, *, seed: Annotated[int | np.random.Generator, Integer(0)] = 0) -> Bags:
        """Draw n points from each density, as one bag per density, in the units of the data.

        Series are made `valid` first. Points are drawn by rejection sampling on a grid of
        `resolution` cells per dimension. The bound in each cell is 1.25 times the largest value at
        its midpoint and corners. Points follow p exactly if p does not exceed this bound, that is,
        if the grid resolves p.

        Parameters
        ----------
        n : int
            Number of points to draw, at least 1.
        seed : int or numpy Generator
            Seed for drawing the points. Density i uses the i-th stream of the seed, so that its
            points do not depend on other densities.

        Raises
        ------
        ParameterError
            If n is below 1, the seed is below 0, the points take more than 8 GiB, or the grid has
            more than 2^24 cells.
        """
        assert isinstance(seed, int)  # `checked` has drawn it
        Integer(1, MAX_VALUES_BYTES // (8 * self.n_dims * max(1, len(self)))).check("n", n)
        grid = self.resolution
        if grid**self.n_dims > MAX_GRID_CELLS:
            raise ParameterError(
                f"sampling needs a grid of {grid}^{self.n_dims} cells, more than "
                f"{MAX_GRID_CELLS:,}; sample marginals, or take fewer functions"
            )
        threshold = self.threshold
        if threshold is None:
            threshold = thresholds(self.coefficients, self.indices, self.basis, grid)
        points = np.empty((len(self), n, self.n_dims))
        for i in range(len(self)):
            series = self.coefficients[i : i + 1], self.indices, self.basis, float(threshold[i])
            points[i] = draw_series(*series, grid, n, seed, i)
        lo, hi = self.box.lo, self.box.hi
        in_box = np.clip(self.box.from_unit(points), lo, hi).reshape(-1, self.n_dims)
        return Bags(in_box, n * np.arange(len(self) + 1)).named(self.coordinate_names)

    def _cut(self, values: Floats, rows: slice) -> Floats:
        """Return max(values − c, 0) for the rows, in place; series are returned unchanged."""
        if self.threshold is not None:
            values -= self.threshold[rows, None]
            np.maximum(values, 0.0, out=values)
        return values
