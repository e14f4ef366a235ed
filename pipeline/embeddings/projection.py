"""`ProjectionEmbedding`: a bag as its projection coefficients on an orthonormal basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, Box
from ..bases import BASES, index_set, project
from ..bases.smoothness import choose_index_set
from ..params import check_choice, check_integer, check_number
from .base import BoxLike, Description, Embedding, MarginalSpec, Sample, SeriesShape


@dataclass(frozen=True)
class ProjectionSpec(MarginalSpec):
    """A projection with everything decided; see `ProjectionEmbedding` for the fields."""

    basis: str
    n_per_dim: int | None
    max_norm: float | None

    def checked(self) -> dict[str, Any]:
        """See `EmbeddingSpec.checked`."""
        values = {
            **super().checked(),
            "basis": check_choice("basis", self.basis, BASES),
            "n_per_dim": check_integer("n_per_dim", self.n_per_dim, other=(None,)),
            "max_norm": check_number("max_norm", self.max_norm, 0, other=(None,)),
        }
        self.indices  # noqa: B018 - too many functions are refused here, not at transform
        return values

    @property
    def indices(self) -> NDArray[np.int64]:
        """Multi-indices of one marginal, shape (s / n_groups, g)."""
        return index_set(self.group_size, self.n_per_dim, self.max_norm, self.basis)

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return len(self.groups) * len(self.indices)

    @property
    def seconds_per_point(self) -> float:
        """See `EmbeddingSpec.seconds_per_point`."""
        return 1e-10 * self.n_features + 2e-9 * self.n_dims

    def describe(self) -> Description:
        """See `EmbeddingSpec.describe`."""
        series = SeriesShape(self.basis, self.n_per_dim, self.max_norm, self.is_joint)
        each = "" if self.is_joint else f" per {self.group_size} coordinates"
        return Description(f"{len(self.indices):,} {self.basis} coefficients{each}", series)

    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        """See `EmbeddingSpec.feature_names`: the basis and the index α, as in ``cosine(1,0)``."""
        names = []
        for group in self.groups.tolist():
            of = "" if self.is_joint else "[" + ",".join(coordinates[j] for j in group) + "]"
            names += [f"{self.basis}{of}({','.join(map(str, a))})" for a in self.indices.tolist()]
        return names

    def fill(self, bags: Bags, out: NDArray[Any], outside: NDArray[np.int64]) -> None:
        """See `EmbeddingSpec.fill`."""
        drop = self.out_of_box == "drop"
        outside[:] = project(bags, self.indices, self.groups, self.basis, self.box, out, drop=drop)


class ProjectionEmbedding(Embedding[ProjectionSpec]):
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
        data, among sets of at most 1,024 functions (and 64 per dimension).
    marginals : int ≥ 1, optional
        1 for one embedding per coordinate, 2 per pair of coordinates, …, concatenated: for d ≳ 4.
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
        box: BoxLike | None = None,
        dtype: str = "float32",
    ) -> None:
        self.basis = basis
        self.n_per_dim = n_per_dim
        self.max_norm = max_norm
        self.marginals = marginals
        self.out_of_box = out_of_box
        self.box = box
        self.dtype = dtype

    def decide(self, sample: Sample, out_of_box: str, box: Box) -> ProjectionSpec:
        """See `Embedding.decide`; the sample is read only for "auto"."""
        unused = () if self.max_norm is None else (None,)
        n_per_dim = check_integer("n_per_dim", self.n_per_dim, other=("auto", *unused))
        max_norm = check_number("max_norm", self.max_norm, 0, other=("auto", None))
        if max_norm is not None:
            n_per_dim = None
        common: Any = {"marginals": self.marginals, "out_of_box": out_of_box, "box": box}
        if not (isinstance(n_per_dim, str) or isinstance(max_norm, str)):
            return ProjectionSpec(self.basis, n_per_dim, max_norm, **common)
        spec = ProjectionSpec(self.basis, 1, None, **common)  # for now
        shape = "tensor" if max_norm is None else "ball"
        drop = out_of_box == "drop"
        n_per_dim, max_norm = choose_index_set(sample(), shape, self.basis, spec.groups, box, drop)
        return replace(spec, n_per_dim=n_per_dim, max_norm=max_norm)
