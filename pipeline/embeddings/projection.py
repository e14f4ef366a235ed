"""`ProjectionEmbedding`: a bag as its projection coefficients on an orthonormal basis."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ..bags import Bags, Box
from ..bases import index_set, project
from ..bases.functions import check_basis
from ..checks import is_integer, is_number
from ..errors import ParameterError
from .selection import choose_index_set
from .spec import Sample
from .transform import BagTransformer, check_dims, check_outside


@dataclass(frozen=True)
class ProjectionSpec:
    """A projection with everything decided; see `ProjectionEmbedding` for the fields."""

    basis: str
    n_per_dim: int | None
    max_norm: float | None
    marginals: int | None
    out_of_box: str
    box: Box

    @property
    def n_dims(self) -> int:
        return self.box.n_dims

    @property
    def indices(self) -> NDArray[np.int64]:
        """Multi-indices of one marginal, shape (s / n_groups, g)."""
        n_dims = self.marginals or self.n_dims
        return index_set(n_dims, self.n_per_dim, self.max_norm, self.basis)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Columns of each marginal, shape (n_groups, g)."""
        size = self.marginals or self.n_dims
        return np.array(list(combinations(range(self.n_dims), size)), dtype=np.int64)

    @property
    def n_features(self) -> int:
        return len(self.groups) * len(self.indices)

    @property
    def cost(self) -> float:
        return 1e-10 * self.n_features + 2e-9 * self.n_dims

    def embed(self, bags: Bags, out: NDArray[Any]) -> int:
        """Coefficients of each bag into ``out``; returns the points outside the box.

        Raises
        ------
        DataError
            Bags of another dimension; with out_of_box="error" a bag with a point outside, with
            "drop" a bag none of whose points is inside.
        """
        check_dims(bags, self.n_dims)
        drop = self.out_of_box == "drop"
        outside = project(bags, self.indices, self.groups, self.basis, self.box, out, drop=drop)
        check_outside(outside, out, self.out_of_box, self.box)
        return int(outside.sum())

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "box": self.box.bounds}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ProjectionSpec:
        """The inverse of `to_dict`; a wrong value is refused as it is by `ProjectionEmbedding`."""
        fields = {name: value for name, value in values.items() if value is not None}
        box = fields["box"]
        spec = ProjectionEmbedding(**fields).resolve(len(box), Box.of(box, len(box)), list)
        if spec.to_dict() != values:
            raise ParameterError(f"the fields {values} are not those of a projection")
        return spec


class ProjectionEmbedding(BagTransformer, TransformerMixin, BaseEstimator):
    """The first basis: empirical projection coefficients a_α(X) = (1/n) Σ_j φ_α(x_j).

    The Euclidean distance of two bags' coefficients is the L2 distance of their density
    estimates (004, §2.1, eq. 2.7 and 2.13; §3.2.1).

    Parameters
    ----------
    basis : {"cosine", "trigonometric", "legendre"}
        Cosine has no periodic seam and is the default; see `bases.evaluate_basis`.
    n_per_dim : int or "auto", default 10
        Tensor index set: 0 ≤ α_j < n_per_dim, s = n_per_dim^d.
    max_norm : float or "auto", optional
        Ball index set ‖α‖₂ ≤ max_norm instead (n_per_dim is then not used). "auto", here or
        there, minimises the leave-one-out score (004, eq. 2.24) averaged over bags of the
        data, among sets of at most 1,024 functions (and 64 a dimension).
    marginals : 1 or 2, optional
        One embedding a coordinate, or a pair of coordinates, concatenated: for d ≳ 4.
    out_of_box : {"clip", "drop", "error"}
        What becomes of points outside the box; clipped and dropped ones are counted.
    box : sequence of (lo, hi), optional
        Scaled to [0, 1]^d. Default the store's box; for bags in memory the unit cube if the
        data lie in it, else their range and 1 % on each side.
    dtype : {"float32", "float64"}
        Of what `transform` returns.

    Attributes
    ----------
    spec_ : ProjectionSpec
        What was decided at `fit`.
    """

    def __init__(
        self,
        basis: str = "cosine",
        n_per_dim: int | str = 10,
        max_norm: float | str | None = None,
        marginals: int | None = None,
        out_of_box: str = "clip",
        box: Any = None,
        dtype: str = "float32",
    ) -> None:
        self.basis = basis
        self.n_per_dim = n_per_dim
        self.max_norm = max_norm
        self.marginals = marginals
        self.out_of_box = out_of_box
        self.box = box
        self.dtype = dtype

    def resolve(self, n_dims: int, box: Box, sample: Sample) -> ProjectionSpec:
        """The spec for points in R^n_dims; ``sample()`` is read only for "auto"."""
        self._check(n_dims)
        box = box if self.box is None else Box.of(self.box, n_dims)
        n_per_dim: Any = self.n_per_dim
        max_norm: Any = self.max_norm
        if max_norm is not None:
            n_per_dim = None
        if "auto" in (n_per_dim, max_norm):
            shape = "ball" if max_norm is not None else "tensor"
            groups = ProjectionSpec(
                self.basis, 1, None, self.marginals, self.out_of_box, box
            ).groups
            drop = self.out_of_box == "drop"
            n_per_dim, max_norm = choose_index_set(sample(), shape, self.basis, groups, box, drop)
        spec = ProjectionSpec(
            self.basis,
            None if n_per_dim is None else int(n_per_dim),
            None if max_norm is None else float(max_norm),
            None if self.marginals is None else int(self.marginals),
            self.out_of_box,
            box,
        )
        spec.indices  # noqa: B018 - too many functions are refused here, not at transform
        return spec

    def _check(self, n_dims: int) -> None:
        check_basis(self.basis)
        self.check_common()
        if self.marginals is not None and not (
            is_integer(self.marginals, 1) and self.marginals <= n_dims
        ):
            raise ParameterError(f"marginals is {self.marginals}; expected 1 to {n_dims} or None")
        n_per_dim, max_norm = self.n_per_dim, self.max_norm
        unused = n_per_dim is None and max_norm is not None
        if not (unused or n_per_dim == "auto" or is_integer(n_per_dim, 1)):
            raise ParameterError(f"n_per_dim is {n_per_dim!r}; expected an integer ≥ 1 or 'auto'")
        if not (max_norm in (None, "auto") or is_number(max_norm, 0)):
            raise ParameterError(
                f"max_norm is {max_norm!r}; expected a finite number ≥ 0, 'auto' or None"
            )
