"""`HDDSpec`: what an HDD embedding computes, everything decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags
from ..bases import evaluate_basis, index_set, project
from ..errors import ParameterError
from ..params import check_choice, check_integer, check_number
from ..threads import KERNELS
from .base import Description, MarginalSpec, SeriesShape
from .hdd_kernels import project_powers
from .hdd_measures import DISTANCES, checked_nodes, count_parts
from .refusals import refuse_outside

BLOCK_BYTES = 2**22  # of the grids of a block of bags: what a core's share of the cache holds
# By dimensions of a marginal, and so for marginals of at most three:
MAX_COEFFICIENTS = {1: 256, 2: 64, 3: 24}  # per dimension; a bag's take 2^12 numbers at most …
MAX_GRID = {1: 4096, 2: 512, 3: 96}  # … and its grid a megabyte or two
MAX_ORDER = 4  # of the measures' quadrature; larger powers of a density say nothing new
DIRECT_IS_GONE = (
    "the embedding has method='direct', which this version does not have; fit it anew without "
    "method, which takes the same distances from coefficients"
)


@dataclass(frozen=True)
class HDDSpec(MarginalSpec):
    """An HDD embedding with everything decided; see `HDDEmbedding` for the fields.

    ``n_coefficients`` cosine coefficients per dimension describe the density; it is evaluated on
    ``grid`` midpoints per dimension.
    """

    distance: str
    order: float
    n_per_dim: int | None
    max_norm: float | None
    lambdas: tuple[float, ...]
    weights: tuple[float, ...]
    bandwidth: float
    floor: float
    n_coefficients: int
    grid: int

    def checked(self) -> dict[str, Any]:
        """See `EmbeddingSpec.checked`."""
        values = super().checked()
        if self.group_size > max(MAX_COEFFICIENTS):
            raise ParameterError(
                f"density estimates in {self.group_size} dimensions are out of reach; use "
                "marginals=1, 2 or 3"
            )
        return {
            **values,
            **checked_nodes(self.lambdas, self.weights),
            "distance": check_choice("distance", self.distance, DISTANCES),
            "order": check_number("order", self.order, above=0, most=MAX_ORDER),
            "n_per_dim": check_integer("n_per_dim", self.n_per_dim, other=(None,)),
            "max_norm": check_number("max_norm", self.max_norm, 0, other=(None,)),
            "bandwidth": check_number("bandwidth", self.bandwidth, 0, below=1),
            "floor": check_number("floor", self.floor, above=0),
            "n_coefficients": check_integer("n_coefficients", self.n_coefficients),
            "grid": check_integer("grid", self.grid, 2),
        }

    @property
    def indices(self) -> NDArray[np.int64]:
        """Multi-indices of the functions the powers are projected on, shape (|V|, g)."""
        return index_set(self.group_size, self.n_per_dim, self.max_norm)

    @property
    def n_parts(self) -> int:
        """Real and imaginary functions per marginal: two per node, one for λ = 0."""
        return count_parts(self.lambdas)

    @property
    def is_linear(self) -> bool:
        """Whether A is linear in the density (L2 of order 2): nothing to floor."""
        return self.order == 2 and not any(self.lambdas)

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return len(self.groups) * self.n_parts * len(self.indices)

    @property
    def seconds_per_point(self) -> float:
        """See `EmbeddingSpec.seconds_per_point`."""
        return 1e-10 * len(self.groups) * self.n_coefficients**self.group_size

    @property
    def scratch_bytes(self) -> int:
        """Coefficients and projections of two blocks, and the matrices to the grid and back."""
        numbers = len(self.groups) * self.n_coefficients**self.group_size + 2 * self.n_features
        blocks = 2 * max(8 * numbers, BLOCK_BYTES * numbers // self._grid_values)
        return super().scratch_bytes + blocks + 4 * 8 * self.n_coefficients * self.grid

    @property
    def seconds_per_bag(self) -> float:
        """See `EmbeddingSpec.seconds_per_bag`: every bag has its grids, whatever its points."""
        return 0.0 if self.is_linear else 4e-9 * self._grid_values

    def describe(self) -> Description:
        """See `EmbeddingSpec.describe`."""
        each = "densities" if self.is_joint else f"densities of {self.group_size} coordinates"
        text = f"{self.distance} geometry of {each}, bandwidth {self.bandwidth:.3g} of the box"
        return Description(
            text, SeriesShape("cosine", self.n_per_dim, self.max_norm, self.is_joint)
        )

    def fill(self, bags: Bags, out: NDArray[Any], outside: NDArray[np.int64]) -> None:
        """Write A of each bag (001, eq. 5 and 9); see `EmbeddingSpec.fill`."""
        for start, coefficients, beyond in self._coefficients(bags, out.dtype):
            # here, as a power of NaN, where "drop" left no point, would be a number
            refuse_outside(beyond, coefficients, self.out_of_box, self.box, start)
            stop = start + len(coefficients)
            self.embed_coefficients(coefficients, out[start:stop])
            outside[start:stop] = beyond

    def embed_coefficients(self, coefficients: NDArray[Any], out: NDArray[Any]) -> None:
        """Write A of densities given by cosine coefficients, which the bandwidth damps.

        The damped coefficients are those of the Gaussian density estimate with reflection at
        the walls; the rest is separable: to the grid, pointwise, and back.

        Parameters
        ----------
        coefficients : shape (n, n_groups · n_coefficients^g)
            Of the tensor index set.
        out : shape (n, n_features), written; of the same dtype
        """
        g = self.group_size
        if self.is_linear:
            flat = np.ravel_multi_index(tuple(self.indices.T), (self.n_coefficients,) * g)
            scales = np.sqrt(self.weights[0]) * self._damping[self.indices].prod(axis=1)
            tensors = coefficients.reshape(-1, self.n_coefficients**g)
            out[:] = (tensors[:, flat] * scales.astype(out.dtype)).reshape(out.shape)
            return
        dtype = coefficients.dtype
        to_grid, from_grid = (m.astype(dtype) for m in (self._to_grid, self._from_grid))
        rows = coefficients.reshape(-1, self.n_coefficients**g)
        chosen = np.ravel_multi_index(tuple(self.indices.T), (from_grid.shape[1],) * g)
        projected = np.empty((len(rows), self.n_parts * len(chosen)), dtype)
        floor, exponent, rates, weights = self._pointwise(dtype)
        with KERNELS:
            project_powers(
                rows,
                g,
                to_grid,
                np.ascontiguousarray(to_grid.T),
                from_grid,
                np.ascontiguousarray(from_grid.T),
                floor,
                exponent,
                rates,
                weights,
                self.n_parts,
                chosen,
                projected,
            )
        out[:] = projected.reshape(out.shape)

    def densities(self, bags: Bags) -> NDArray[np.float64]:
        """Density estimates on the grid's midpoints, shape (n_bags, n_groups, grid, …, grid).

        Not floored: a series may dip below zero where there are no points.
        """
        shape = (len(self.groups), *(self.grid,) * self.group_size)
        out = np.empty((len(bags), *shape))
        for start, coefficients, _ in self._coefficients(bags, out.dtype):
            values = coefficients.reshape(-1, *(self.n_coefficients,) * self.group_size)
            for axis in range(1, 1 + self.group_size):
                values = np.moveaxis(np.tensordot(values, self._to_grid, (axis, 0)), -1, axis)
            out[start : start + len(coefficients)] = values.reshape(-1, *shape)
        return out

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """See `EmbeddingSpec.from_dict`; reads what versions with ``method`` wrote, too."""
        fields = dict(values)
        if fields.pop("n_integration", None) is not None:
            raise ParameterError(DIRECT_IS_GONE)
        fields.pop("seed", None)  # of the integration points
        return super().from_dict(fields)

    def _coefficients(
        self, bags: Bags, dtype: np.dtype[Any]
    ) -> Iterator[tuple[int, NDArray[Any], NDArray[np.int64]]]:
        """(first bag, empirical coefficients, points outside) of blocks whose grids fit a cache."""
        indices = index_set(self.group_size, self.n_coefficients)
        step = max(1, BLOCK_BYTES // (self._grid_values * np.dtype(dtype).itemsize))
        drop = self.out_of_box == "drop"
        for start in range(0, len(bags), step):
            block = bags[start : start + step]
            out = np.empty((len(block), len(self.groups) * len(indices)), dtype=dtype)
            outside = project(block, indices, self.groups, "cosine", self.box, out, drop=drop)
            yield start, out, outside

    @property
    def _grid_values(self) -> int:
        """Numbers on the grids of a bag: its density, and its powers."""
        return len(self.groups) * (self.n_parts + 1) * self.grid**self.group_size

    def _pointwise(self, dtype: np.dtype[Any]) -> tuple[Any, ...]:
        """(floor, exponent, rates, weights) of the kernels."""
        return (
            dtype.type(-np.inf if self.is_linear else self.floor),
            dtype.type(0.5 * self.order),
            np.array(self.lambdas, dtype=dtype),
            np.sqrt(np.array(self.weights)).astype(dtype),
        )

    @property
    def _to_grid(self) -> NDArray[np.float64]:
        """Coefficients to density values in one dimension, shape (n_coefficients, grid)."""
        values = evaluate_basis("cosine", self.n_coefficients, self._midpoints) * self._damping
        return np.ascontiguousarray(values.T)

    @property
    def _from_grid(self) -> NDArray[np.float64]:
        """Grid values to coefficients in one dimension, shape (grid, functions)."""
        n = int(self.indices.max()) + 1
        return evaluate_basis("cosine", n, self._midpoints) / self.grid

    @property
    def _damping(self) -> NDArray[np.float64]:
        """What the Gaussian leaves of each coefficient in one dimension."""
        k = np.arange(self.n_coefficients)
        return np.exp(-0.5 * (np.pi * k * self.bandwidth) ** 2)

    @property
    def _midpoints(self) -> NDArray[np.float64]:
        return (np.arange(self.grid) + 0.5) / self.grid
