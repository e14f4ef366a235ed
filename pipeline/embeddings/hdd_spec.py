"""`HDDSpec`: the computation of a fitted HDD embedding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..core import Integer, Real
from ..core.errors import ParameterError
from ..core.moved import without_gone
from ..data.bags.bags import Bags, BagsInMemory, as_bags
from ..execution.pool import even_edges, weighted_edges
from .base import Functions, MarginalSpec
from .bases.coefficients import kernel_arguments, project
from .bases.functions import evaluate_basis
from .bases.index_sets import index_set, known_index_set
from .description import Description, SeriesShape
from .hdd_measures import Distance, NodesOfSpec, WeightsOfSpec, check_nodes, count_parts
from .kernels.hdd_kernels import POWERS
from .kernels.spread_kernels import CHUNK, spread_bags
from .launching import embed_by
from .projection import Norm
from .refusals import check_dims, refuse_outside
from .transforms import NO_ARRAYS, Arrays

MAX_FLOOR = 1e6  # in units of the uniform density; float32 can hold its squares
MAX_ORDER = 4  # largest order; larger powers of a density add no information
Floor = Annotated[float, Real(gt=0, le=MAX_FLOOR)]
Order = Annotated[float, Real(gt=0, le=MAX_ORDER)]

_BLOCK_BYTES = 2**22  # grids of a block of bags: what one core's fraction of the cache holds
_SECONDS_PER_VALUE = 4e-9  # for one grid value of a density or of one of its powers
# Limits per dimension, by the number of dimensions of a marginal (at most three).
MAX_COEFFICIENTS = {1: 256, 2: 64, 3: 24}  # the coefficients of a bag are at most about 2^14
MAX_GRID = {1: 4096, 2: 512, 3: 96}  # the grid of a bag takes some MB at most
# A point is spread on the midpoints within six bandwidths (_REACH). There, a Gaussian falls to
# float32's rounding of its peak. These midpoints are one or two chunks (_MAX_CHUNKS); with more
# chunks, coefficients are cheaper. If the bandwidth is less than an eighth of the distance between
# midpoints (MIN_WIDTH), the factors of the weights exceed the range of float32.
_REACH, _MAX_CHUNKS, MIN_WIDTH = 6, 2, 0.125


@dataclass(frozen=True, kw_only=True)
class HDDSpec(MarginalSpec):
    """A fitted HDD embedding; see `HDDEmbedding` for the fields.

    The density is evaluated on ``grid`` midpoints per dimension, from ``n_coefficients`` cosine
    coefficients per dimension. If ``n_coefficients`` is None, each point is spread on the midpoints
    around it instead.

    See Also
    --------
    bagbasis.HDDEmbedding : Density coefficients under a chosen density distance.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import HDDEmbedding
    >>> spec = HDDEmbedding('tv', n_per_dim=4).fit(X).spec_
    >>> spec.n_features
    160
    """

    distance: Distance
    order: Order
    n_per_dim: Functions | None
    max_norm: Norm | None
    lambdas: NodesOfSpec
    weights: WeightsOfSpec
    bandwidth: Annotated[float, Real(ge=0, lt=1)]
    floor: Floor
    n_coefficients: Annotated[int, Integer(1)] | None
    grid: Annotated[int, Integer(2)]

    @override
    def check_together(self) -> None:
        super().check_together()
        if self.group_size > max(MAX_COEFFICIENTS):
            raise ParameterError(
                f"density estimates in {self.group_size} dimensions are out of reach; use "
                "marginals=1, 2 or 3"
            )
        if self.n_coefficients is None and not reached(self.bandwidth, self.grid):
            raise ParameterError(
                f"n_coefficients is None; a bandwidth of {self.bandwidth} and a grid of "
                f"{self.grid} need some"
            )
        check_nodes(self.lambdas, self.weights)

    @property
    def indices(self) -> NDArray[np.int64]:
        """Multi-indices of the functions on which powers are projected, shape (|V|, g)."""
        return known_index_set(self.group_size, self.n_per_dim, self.max_norm)

    @property
    def n_parts(self) -> int:
        """Number of real functions per marginal: one for λ = 0, two for any other node."""
        return count_parts(self.lambdas)

    @property
    def is_linear(self) -> bool:
        """Whether A is linear in the density (L2 of order 2), so that no floor is needed."""
        return self.order == 2 and not any(self.lambdas)

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return len(self.groups) * self.n_parts * len(self.indices)

    @property
    @override
    def seconds_per_point(self) -> float:
        return 1e-10 * len(self.groups) * self._products_per_point

    @property
    def scratch_bytes(self) -> int:
        """Bytes for estimates and projections of two blocks, and for the matrices of the grid."""
        side = self.n_coefficients or self.grid
        numbers: int = len(self.groups) * side**self.group_size + 2 * self.n_features
        blocks = 2 * max(8 * numbers, _BLOCK_BYTES * numbers // self._grid_values)
        return super().scratch_bytes + blocks + 4 * 8 * side * self.grid

    @property
    @override
    def seconds_per_bag(self) -> float:
        # the grids of a bag cost the same for any number of points
        return 0.0 if self.is_linear else _SECONDS_PER_VALUE * self._grid_values

    @override
    def describe(self) -> Description:
        each = "densities" if self.is_joint else f"densities of {self.group_size} coordinates"
        text = f"{self.distance} geometry of {each}, bandwidth {self.bandwidth:.3g} of the box"
        return Description(
            text,
            series=SeriesShape(
                basis="cosine",
                n_per_dim=self.n_per_dim,
                max_norm=self.max_norm,
                joint=self.is_joint,
            ),
        )

    def fill(self, bags: Bags, out: NDArray[Any], outside: NDArray[np.int64]) -> None:
        """Write A of each bag (Sutherland et al. 2016, eq. 5 and 9); see `EmbeddingSpec.fill`."""
        for start, estimates, beyond in self._estimates(bags, out.dtype):
            # Check here: a bag without points is NaN, but a power of NaN may be a number.
            refuse_outside(beyond, estimates, self.out_of_box, self.box, start)
            stop = start + len(estimates)
            self.embed_estimates(estimates, out[start:stop])
            outside[start:stop] = beyond

    def embed_estimates(self, estimates: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the embeddings A of estimated densities.

        The estimates are cosine coefficients or, if ``n_coefficients`` is None, values on the grid.
        Coefficients are damped by the bandwidth. This gives the Gaussian density estimate with
        reflection at the edges. Then the densities are evaluated on the grid, transformed
        pointwise, and projected on the functions.

        Parameters
        ----------
        estimates : shape (n, n_groups · n_coefficients^g) or (n, n_groups · grid^g)
        out : shape (n, n_features), written; of the same dtype
        """
        g = self.group_size
        if self.is_linear and self.n_coefficients is not None:
            flat = np.ravel_multi_index(tuple(self.indices.T), (self.n_coefficients,) * g)
            scales = np.sqrt(self.weights[0]) * self._damping[self.indices].prod(axis=1)
            tensors = estimates.reshape(-1, self.n_coefficients**g)
            out[:] = (tensors[:, flat] * scales.astype(out.dtype)).reshape(out.shape)
            return
        dtype = estimates.dtype
        to_grid, from_grid = (m.astype(dtype) for m in (self._to_grid, self._from_grid))
        rows = estimates.reshape(-1, (self.n_coefficients or self.grid) ** g)
        chosen = np.ravel_multi_index(tuple(self.indices.T), (from_grid.shape[1],) * g)
        projected = np.empty((len(rows), self.n_parts * len(chosen)), dtype)
        floor, exponent, rates, weights = self._pointwise(dtype)
        embed_by(
            POWERS[dtype.itemsize],
            even_edges(len(rows), _SECONDS_PER_VALUE * self._grid_values / len(self.groups)),
            rows,
            g,
            self.n_coefficients or 0,
            *from_grid.shape,
            to_grid.ravel(),
            to_grid.T.ravel(),
            from_grid.ravel(),
            from_grid.T.ravel(),
            floor,
            exponent,
            rates,
            weights,
            self.n_parts,
            chosen,
            projected,
        )
        out[:] = projected.reshape(out.shape)

    def densities(self, bags: BagsInMemory) -> NDArray[np.float64]:
        """Return density estimates at the midpoints, shape (n_bags, n_groups, grid, …, grid).

        No floor is applied: a series may be negative where there are no points.
        """
        bags = as_bags(bags)
        check_dims(bags, self.n_dims)
        shape = (len(self.groups), *(self.grid,) * self.group_size)
        out = np.empty((len(bags), *shape))
        for start, estimates, _ in self._estimates(bags, out.dtype):
            side = self.n_coefficients or self.grid
            values = estimates.reshape(-1, *(side,) * self.group_size)
            if self.n_coefficients is not None:
                for axis in range(1, 1 + self.group_size):
                    values = np.moveaxis(np.tensordot(values, self._to_grid, (axis, 0)), -1, axis)
            out[start : start + len(estimates)] = values.reshape(-1, *shape)
        return out

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        return super().from_dict(without_gone("HDDSpec", values), arrays)

    def _estimates(
        self, bags: Bags, dtype: np.dtype[Any]
    ) -> Iterator[tuple[int, NDArray[Any], NDArray[np.int64]]]:
        """Yield (first bag, estimates, points outside) for blocks that fit the cache."""
        side = self.n_coefficients or self.grid
        step = max(1, _BLOCK_BYTES // (self._grid_values * np.dtype(dtype).itemsize))
        for start in range(0, len(bags), step):
            block = bags[start : start + step]
            out = np.empty((len(block), len(self.groups) * side**self.group_size), dtype=dtype)
            yield start, out, self._estimate(block, out)

    def _estimate(self, bags: Bags, out: NDArray[Any]) -> NDArray[np.int64]:
        """Write coefficients or densities; return the number of points outside for each bag."""
        drop = self.out_of_box == "drop"
        if self.n_coefficients is not None:
            indices = index_set(self.group_size, self.n_coefficients)
            return project(bags, indices, self.groups, "cosine", self.box, out, drop=drop)
        outside = np.zeros(len(bags), dtype=np.int64)
        gaps = np.arange(1 + reached(self.bandwidth, self.grid)) / (self.bandwidth * self.grid)
        embed_by(
            spread_bags,
            weighted_edges(bags.offsets, self.seconds_per_point),
            *kernel_arguments(bags, self.groups, self.box, drop, out.dtype),
            self.grid,
            np.exp(-0.5 * gaps**2).astype(out.dtype),
            (np.sqrt(2 * np.pi) * self.bandwidth) ** -self.group_size,
            out,
            outside,
        )
        return outside

    @property
    def _products_per_point(self) -> int:
        """Multiplications per point of one marginal; a spread value takes the time of four."""
        if self.n_coefficients is not None:
            return int(self.n_coefficients**self.group_size)
        return int(4 * (2 * reached(self.bandwidth, self.grid)) ** self.group_size)

    @property
    def _grid_values(self) -> int:
        """Number of grid values of a bag: of its density and of the powers."""
        return int(len(self.groups) * (self.n_parts + 1) * self.grid**self.group_size)

    def _pointwise(self, dtype: np.dtype[Any]) -> tuple[Any, ...]:
        """Return the arguments (floor, exponent, rates, weights) of the kernels."""
        return (
            dtype.type(-np.inf if self.is_linear else self.floor),
            dtype.type(0.5 * self.order),
            np.array(self.lambdas, dtype=dtype),
            np.sqrt(np.array(self.weights)).astype(dtype),
        )

    @property
    def _to_grid(self) -> NDArray[np.float64]:
        """Matrix from coefficients to density values in one dimension, (n_coefficients, grid)."""
        if self.n_coefficients is None:
            return np.empty((0, self.grid))
        values = evaluate_basis("cosine", self.n_coefficients, self._midpoints) * self._damping
        return np.ascontiguousarray(values.T)

    @property
    def _from_grid(self) -> NDArray[np.float64]:
        """Matrix from grid values to coefficients in one dimension, shape (grid, functions)."""
        n = int(self.indices.max()) + 1
        return evaluate_basis("cosine", n, self._midpoints) / self.grid

    @property
    def _damping(self) -> NDArray[np.float64]:
        """Factor by which the Gaussian damps each coefficient in one dimension."""
        k = np.arange(self.n_coefficients or 0)
        damping: NDArray[np.float64] = np.exp(-0.5 * (np.pi * k * self.bandwidth) ** 2)
        return damping

    @property
    def _midpoints(self) -> NDArray[np.float64]:
        return (np.arange(self.grid) + 0.5) / self.grid


def reached(bandwidth: float, grid: int) -> int:
    """Return the number of midpoints on each side on which a point is spread.

    0 means that coefficients are used instead.
    """
    width = bandwidth * grid
    half = CHUNK // 2 * math.ceil(2 * _REACH * width / CHUNK)
    return half if width >= MIN_WIDTH and half <= min(grid, _MAX_CHUNKS * CHUNK // 2) else 0
