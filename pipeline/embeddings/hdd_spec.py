"""`HDDSpec`: what an HDD embedding computes, everything decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, Box
from ..bases import evaluate_basis, index_set, project
from ..errors import DataError, ParameterError
from ..threads import KERNELS
from .hdd_kernels import powers_float32, powers_float64
from .transform import check_outside

BLOCK_BYTES = 2**22


@dataclass(frozen=True)
class HDDSpec:
    """An HDD embedding with everything decided; see `HDDEmbedding` for the fields.

    ``n_coefficients`` cosine coefficients a dimension describe the density, on ``grid``
    midpoints a dimension it is evaluated.
    """

    distance: str
    n_per_dim: int | None
    max_norm: float | None
    lambdas: tuple[float, ...]
    weights: tuple[float, ...]
    bandwidth: float
    floor: float
    n_coefficients: int
    grid: int
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
    def n_features(self) -> int:
        return len(self.groups) * self.n_parts * len(self.indices)

    @property
    def cost(self) -> float:
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
        parts = self._parts(self._on_grid(coefficients))
        back, chosen = self._from_grid(coefficients.dtype)
        projected = _separable(parts, [back] * self.group_size)
        out[:] = projected[..., chosen].reshape(out.shape)

    def densities(self, bags: Bags) -> NDArray[np.float64]:
        """Density estimates on the grid's midpoints, shape (n_bags, n_groups, grid, …, grid).

        Not floored: a series may dip below zero where there are no points.
        """
        shape = (len(self.groups), *(self.grid,) * self.group_size)
        out = np.empty((len(bags), *shape))
        for start, coefficients, _ in self._coefficients(bags, out.dtype):
            values = self._on_grid(coefficients)
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
        if bags.n_dims != self.n_dims:
            raise DataError(
                f"bags have dimension {bags.n_dims}, the embedding was made for {self.n_dims}"
            )
        indices = index_set(self.group_size, self.n_coefficients)
        values = len(self.groups) * (self.n_parts + 1) * self.grid**self.group_size
        step = max(1, BLOCK_BYTES // (values * np.dtype(dtype).itemsize))
        drop = self.out_of_box == "drop"
        for start in range(0, len(bags), step):
            block = bags[start : start + step]
            out = np.empty((len(block), len(self.groups) * len(indices)), dtype=dtype)
            outside = project(block, indices, self.groups, "cosine", self.box, out, drop=drop)
            yield start, out, outside

    def _on_grid(self, coefficients: NDArray[Any]) -> NDArray[Any]:
        """Density values, shape (n · n_groups, grid^g)."""
        k = np.arange(self.n_coefficients)
        damping = np.exp(-0.5 * (np.pi * k * self.bandwidth) ** 2)
        matrix = evaluate_basis("cosine", len(k), self._midpoints) * damping
        typed = np.ascontiguousarray(matrix.T.astype(coefficients.dtype))
        shape = (self.n_coefficients,) * self.group_size
        return _separable(coefficients.reshape(-1, *shape), [typed] * self.group_size)

    def _parts(self, density: NDArray[Any]) -> NDArray[Any]:
        """√w p^{½+iλ} on the grid, shape (n · n_groups, n_parts, grid, …, grid)."""
        dtype = density.dtype
        parts = np.empty((len(density), self.n_parts, density.shape[1]), dtype=dtype)
        kernel = powers_float32 if dtype == np.float32 else powers_float64
        with KERNELS:
            kernel(
                density,
                dtype.type(self.floor),
                np.array(self.lambdas, dtype=dtype),
                np.sqrt(np.array(self.weights)).astype(dtype),
                parts,
            )
        return parts.reshape(*parts.shape[:2], *(self.grid,) * self.group_size)

    def _from_grid(self, dtype: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Grid values to coefficients in one dimension (grid, n), and the wanted of n^g."""
        n = int(self.indices.max()) + 1
        matrix = evaluate_basis("cosine", n, self._midpoints) / self.grid
        chosen = np.ravel_multi_index(tuple(self.indices.T), (n,) * self.group_size)
        return np.ascontiguousarray(matrix.astype(dtype)), chosen

    @property
    def _midpoints(self) -> NDArray[np.float64]:
        return (np.arange(self.grid) + 0.5) / self.grid


def _separable(values: NDArray[Any], matrices: list[NDArray[Any]]) -> NDArray[Any]:
    """Apply one matrix a trailing dimension; shape (…, a_1, …, a_g) to (…, b_1 ⋯ b_g)."""
    g = len(matrices)
    lead = values.shape[:-g]
    out = values
    for j in range(g):
        # the last dimension becomes b_j and moves to the front of the g, so that after g steps
        # all are in order again
        shape = out.shape[-g:]
        matrix = matrices[g - 1 - j]
        out = out.reshape(-1, shape[-1]) @ matrix
        out = out.reshape(*lead, *shape[:-1], matrix.shape[1])
        if g > 1:
            out = np.moveaxis(out, -1, -g)
    return np.ascontiguousarray(out).reshape(*lead, -1)
