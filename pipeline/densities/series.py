"""`Densities`: a batch of density estimates given by coefficients on an orthonormal basis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import ConstraintTable, Instance, Integer, ListOf, None_, Text, checked
from ..core.arrays import Floats, Integers
from ..core.errors import DataError, ParameterError, shown
from ..data.bags.bags import Bags
from ..data.bags.box import BOUNDS, Box
from ..data.bags.coordinates import checked_names, order_of
from ..embeddings.bases.functions import check_basis
from .density_checks import (
    MAX_BYTES,
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
from .rejection import MAX_CELLS, draw_series
from .series_values import l2_distances, midpoints, row_blocks, series_at, series_on_lattice
from .valid_densities import MAX_GRID_DIMS, default_grid, thresholds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VALUES_PER_BLOCK = 2**16  # half a MiB: larger ones cost more in page faults than they save


@dataclass(frozen=True, eq=False)
class Densities:
    """Estimated densities of bags, as series in a box.

    The density of bag i is p_i(x) = (1 / |B|) Σ_α a_iα φ_α(u(x)) in a box B (Oliva 2018, eq. 2.8).

    u scales the box to the unit cube and |B| is the box's volume, so that points and values are
    in the units of the data; outside the box a density is zero. A series may dip below zero;
    `valid` gives the nearest densities that do not.

    Indexing with an integer, and iterating, gives batches of one density.

    Parameters
    ----------
    coefficients : array_like, shape (n, s)
        a_iα of each density; kept in double precision, read-only.
    indices : array_like of int, shape (s, d)
        Distinct multi-indices α in any order, the constant function among them; see
        `bases.index_set`.
    basis : {"cosine", "trigonometric", "legendre"}
    box : Box, or sequence of (lo, hi)
        Range of each coordinate. Default: the unit cube.
    threshold : array_like, shape (n,), optional
        c_i of valid densities max(p_i − c_i / |B|, 0); `valid` solves for it.
    grid : int, optional
        Midpoints per dimension of the grid on which `valid` solves, and the default of `on_grid`
        and `sample`; see `resolution`.
    coordinate_names : list of str, optional
        Names of the d coordinates. Tables of points are put in their order.

    Raises
    ------
    DataError
        Shapes that do not fit, another number of names than coordinates, or a coefficient or
        threshold that is not finite.
    ParameterError
        A basis that is not there, a grid below 1, or names that are not texts.

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
    basis: str
    box: Box
    threshold: Floats | None = None
    grid: int | None = None
    coordinate_names: Sequence[str] | None = None
    # the attribute is a Box; given may be what `Box.of` takes
    PARAMETERS: ClassVar[ConstraintTable] = {
        "box": Instance("Box") | BOUNDS | None_,
    }

    def __post_init__(self) -> None:
        """Check everything once, so that no method has to."""
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
        """Coordinates of a point."""
        return int(self.indices.shape[1])

    @property
    def volume(self) -> float:
        """Volume of the box, in the units of the data."""
        return box_volume(self.box)

    @property
    def resolution(self) -> int:
        """``grid``, or by default four midpoints per function.

        At least 256 in one dimension, 64 in two and 32 in three; fewer, but not less than two per
        function, where that makes more than 2^18 cells.
        """
        return default_grid(self.indices) if self.grid is None else self.grid

    @property
    def is_valid(self) -> bool:
        """Whether these are what `valid` gave."""
        return self.threshold is not None

    def __len__(self) -> int:
        """Return the number of densities."""
        return len(self.coefficients)

    def __getitem__(self, key: int | slice | NDArray[Any] | list[int]) -> Densities:
        """Return the densities of a slice, a mask or indices; for an integer a batch of one."""
        if isinstance(key, Integral):
            i = range(len(self))[int(key)]
            key = slice(i, i + 1)
        threshold = None if self.threshold is None else self.threshold[key]
        return replace(self, coefficients=self.coefficients[key], threshold=threshold)

    def __iter__(self) -> Iterator[Densities]:
        """Give batches of one density."""
        for i in range(len(self)):
            yield self[i]

    def __repr__(self) -> str:
        """Name sizes and basis; the coefficients are too many."""
        return (
            f"Densities(n={len(self)}, n_dims={self.n_dims}, n_functions={len(self.indices)}, "
            f"basis={self.basis!r}, valid={self.is_valid})"
        )

    def at(self, points: ArrayLike) -> Floats:
        """Density values at points in the units of the data, zero outside the box.

        Parameters
        ----------
        points : array_like or table, shape (n_points, d)
            The same points for all densities. In one dimension also shape (n_points,). Columns of
            a table are put in the order of ``coordinate_names``.

        Returns
        -------
        float64, shape (n, n_points)
            Per unit of volume of the data.

        Raises
        ------
        DataError
            Points of another dimension, of other names, or with a coordinate that is not finite.
        """
        x = checked_points(points, self.n_dims, self.coordinate_names)
        unit = in_unit_cube(self.box, x)
        values = self._cut(
            series_at(self.coefficients, self.indices, self.basis, unit), slice(None)
        )
        values /= self.volume
        values[:, ~box_contains(self.box, x)] = 0.0
        return values

    @checked(index=Integer())
    def plot(self, index: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draw one density: a curve, or a heat map of the first two coordinates.

        Parameters
        ----------
        index : int, default 0
            Position of the density.
        ax : matplotlib Axes, optional
            Axes to draw into; default those of a new figure.

        Raises
        ------
        DataError
            Without matplotlib (``pip install 'bagbasis[plots]'``).
        """
        from ..plotting.bags import plot_densities  # noqa: PLC0415 - an extra

        return plot_densities(self, index, ax=ax)

    @checked(n=Integer() | None_)
    def on_grid(self, n: int | None = None) -> Floats:
        """Density values at n midpoints per dimension of the box; `grid_axes` has their places.

        Parameters
        ----------
        n : int, optional
            Grid points per dimension. Default: `resolution`. The mean over the grid times the box's
            volume is the integral: exactly for a cosine or trigonometric series of frequencies
            below n, and for a valid density on its own grid (d ≤ 3).

        Returns
        -------
        float64, shape (n_densities, n, …, n)
            Per unit of volume of the data; axis 1 + j is dimension j.

        Raises
        ------
        ParameterError
            More than 8 GiB of values.
        """
        n = self.resolution if n is None else check_grid(n)
        check_bytes(n, self.n_dims, len(self))
        out = np.empty((len(self), n**self.n_dims))
        series = self.indices, self.basis
        for rows in row_blocks(len(self), out.shape[1], VALUES_PER_BLOCK):
            values = series_on_lattice(self.coefficients[rows], *series, midpoints(n))
            out[rows] = self._cut(values, rows)
        out /= self.volume
        return out.reshape(len(self), *(n,) * self.n_dims)

    @checked(n=Integer() | None_)
    def grid_axes(self, n: int | None = None) -> list[Floats]:
        """Where `on_grid` evaluates: the n midpoints of each dimension, in the data's units."""
        unit = midpoints(self.resolution if n is None else check_grid(n))
        return [lo + unit * (hi - lo) for lo, hi in zip(self.box.lo, self.box.hi, strict=True)]

    @checked(grid=Integer() | None_)
    def valid(self, grid: int | None = None) -> Densities:
        """Return the nearest valid densities max(p − c, 0), with c such that they integrate to one.

        It is the projection in L2 on the densities of the box, so never farther from any of them
        than p is (Gajek 1986). c is solved for exactly on a midpoint grid of ``grid`` a dimension
        (default `resolution`; with more than three dimensions on 2^14 quasi-random points): on
        it the theorem holds to rounding, elsewhere as far as the grid resolves p. c is negative
        where p integrates to less than one. A valid density has the c of its series.
        """
        n = self.resolution if grid is None else check_grid(grid)
        if self.n_dims <= MAX_GRID_DIMS:
            check_bytes(n, self.n_dims, 1)
        c = thresholds(self.coefficients, self.indices, self.basis, n)
        return replace(self, threshold=c, grid=n)

    def integral(self) -> Floats:
        """∫ p of each density, shape (n,): a_0 of a series, of a valid density over its grid."""
        if self.is_valid:
            values = self.on_grid().reshape(len(self), -1)
            return values.mean(axis=1) * self.volume
        constant = (self.indices == 0).all(axis=1)
        return self.coefficients[:, constant].sum(axis=1)

    @checked(other=Instance("Densities"))
    def l2_distance(self, other: Densities) -> Floats:
        """(∫ (p_i − q_i)²)^½ of each pair, shape (n,), by Parseval (Oliva 2018, eq. 2.10-2.13).

        Parameters
        ----------
        other : Densities
            As many densities in the same box. Two series of one basis may have different index
            sets. Any other pair is integrated over the finer of the two grids (d ≤ 3).

        Raises
        ------
        DataError
            Another number of densities, another box, or coordinates of other names.
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
            return np.sqrt((gap**2).mean(axis=1) * self.volume)
        distances = l2_distances(self.coefficients, self.indices, other.coefficients, other.indices)
        return distances / np.sqrt(self.volume)

    def marginal(self, dims: int | Sequence[int]) -> Densities:
        """Return the densities of the coordinates ``dims``, the others integrated out.

        All functions but the constant integrate to zero, so only indices that are zero in the
        other coordinates remain.

        Raises
        ------
        ParameterError
            Dimensions that are not there or given twice, or valid densities, whose marginals are
            no series.
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
            self.basis,
            box,
            coordinate_names=names,
        )

    @checked(n=Integer(), seed=Integer(0))
    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Bags:
        """Return n points drawn from each valid density, as one bag each, in the units of the data.

        Series are made `valid` first. Points are drawn by rejection sampling: the bound in each
        cell of a grid of `resolution` is 1.25 times the largest value at its midpoint and corners.
        So the points follow p exactly if p does not exceed this bound, which holds as far as the
        grid resolves p.

        Parameters
        ----------
        n : int
            Number of points to draw, at least 1.
        seed : int or numpy Generator
            Density i is drawn from the i-th stream of the seed, whatever the others are.

        Raises
        ------
        ParameterError
            n below 1, a seed below 0, more than 8 GiB of points, or a grid of more than 2^24 cells.
        """
        assert isinstance(seed, int)  # `checked` has drawn it
        Integer(1, MAX_BYTES // (8 * self.n_dims * max(1, len(self)))).check("n", n)
        grid = self.resolution
        if grid**self.n_dims > MAX_CELLS:
            raise ParameterError(
                f"sampling needs a grid of {grid}^{self.n_dims} cells, more than {MAX_CELLS:,}; "
                "sample marginals, or take fewer functions"
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
        """Return max(values − c, 0) of some densities, in place, if there are thresholds."""
        if self.threshold is not None:
            values -= self.threshold[rows, None]
            np.maximum(values, 0.0, out=values)
        return values
