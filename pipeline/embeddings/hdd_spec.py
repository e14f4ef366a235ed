"""`HDDSpec`: what an HDD embedding computes, everything decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from ..bags import Bags, Box
from ..bases import evaluate_basis, index_set, project
from ..errors import ParameterError
from ..threads import KERNELS
from .hdd_direct import embed_at
from .hdd_kernels import powers, project_powers
from .transform import check_dims, check_outside

BLOCK_BYTES = 2**22


@dataclass(frozen=True)
class HDDSpec:
    """An HDD embedding with everything decided; see `HDDEmbedding` for the fields.

    ``n_coefficients`` cosine coefficients a dimension describe the density, on ``grid``
    midpoints a dimension it is evaluated; with ``n_integration`` points both are not used.
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
    n_integration: int | None
    seed: int
    marginals: int | None
    out_of_box: str
    box: Box

    @property
    def basis(self) -> str:
        """Of the functions the powers are projected on."""
        return "cosine"

    @property
    def n_dims(self) -> int:
        return self.box.n_dims

    @property
    def group_size(self) -> int:
        return self.marginals or self.n_dims

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """Columns of each marginal, shape (n_groups, g)."""
        return np.array(list(combinations(range(self.n_dims), self.group_size)), dtype=np.int64)

    @cached_property
    def indices(self) -> NDArray[np.int64]:
        """Multi-indices of the functions the powers are projected on, shape (|V|, g)."""
        return index_set(self.group_size, self.n_per_dim, self.max_norm)

    @property
    def n_parts(self) -> int:
        """Real and imaginary functions a marginal: two a node, one for λ = 0."""
        return sum(1 if rate == 0 else 2 for rate in self.lambdas)

    @property
    def is_linear(self) -> bool:
        """Whether A is linear in the density (L2 of order 2): nothing to floor."""
        return self.order == 2 and not any(self.lambdas)

    @property
    def integration_points(self) -> NDArray[np.float64]:
        """Of the direct method, the seed's scrambled Halton points, shape (n_integration, g)."""
        generator = np.random.default_rng(self.seed)
        return qmc.Halton(self.group_size, seed=generator).random(self.n_integration or 0)

    @property
    def n_features(self) -> int:
        return len(self.groups) * self.n_parts * len(self.indices)

    @property
    def cost(self) -> float:
        if self.n_integration is not None:
            return 4e-10 * len(self.groups) * self.n_integration
        return 1e-10 * len(self.groups) * self.n_coefficients**self.group_size

    def embed(self, bags: Bags, out: NDArray[Any]) -> int:
        """A of each bag (001, eq. 5 and 9) into ``out``; returns the points outside the box.

        Raises
        ------
        DataError
            Bags of another dimension.
        BagError
            With out_of_box="error" a bag with a point outside, with "drop" a bag none of whose
            points is inside.
        """
        check_dims(bags, self.n_dims)
        if self.n_integration is not None:
            return embed_at(self, bags, self.integration_points, out)
        n_outside = 0
        for start, coefficients, outside in self._coefficients(bags, out.dtype):
            check_outside(outside, coefficients, self.out_of_box, self.box, start)
            self.embed_coefficients(coefficients, out[start : start + len(coefficients)])
            n_outside += int(outside.sum())
        return n_outside

    def embed_coefficients(self, coefficients: NDArray[Any], out: NDArray[Any]) -> None:
        """A of densities given by cosine coefficients, damped by the bandwidth as a bag's are.

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

    def powers(self, density: NDArray[Any]) -> NDArray[Any]:
        """√w p^{α/2+iλ} of density values (n, m) that are floored first, (n, n_parts, m)."""
        parts = np.empty((len(density), self.n_parts, density.shape[1]), dtype=density.dtype)
        floor, exponent, rates, weights = self._pointwise(density.dtype)
        with KERNELS:
            powers(density, floor, exponent, rates, weights, parts)
        return parts

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

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "box": self.box.bounds}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> HDDSpec:
        """The inverse of `to_dict`; ParameterError for fields that are not an HDD embedding's."""
        names = {field.name for field in fields(cls)}
        if set(values) != names:
            raise ParameterError(f"the fields {sorted(values)} are not those of an HDD embedding")
        box = values["box"]
        pairs = {name: tuple(values[name]) for name in ("lambdas", "weights")}
        return cls(**{**values, **pairs, "box": Box.of(box, len(box))})

    def _coefficients(
        self, bags: Bags, dtype: Any
    ) -> Iterator[tuple[int, NDArray[Any], NDArray[np.int64]]]:
        """(first bag, empirical coefficients, points outside) of blocks whose grids fit a cache."""
        indices = index_set(self.group_size, self.n_coefficients)
        values = len(self.groups) * (self.n_parts + 1) * self.grid**self.group_size
        step = max(1, BLOCK_BYTES // (values * np.dtype(dtype).itemsize))
        drop = self.out_of_box == "drop"
        for start in range(0, len(bags), step):
            block = bags[start : start + step]
            out = np.empty((len(block), len(self.groups) * len(indices)), dtype=dtype)
            outside = project(block, indices, self.groups, "cosine", self.box, out, drop=drop)
            yield start, out, outside

    def _pointwise(self, dtype: Any) -> tuple[Any, ...]:
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
