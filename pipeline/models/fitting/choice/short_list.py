"""The short list of embeddings for ``embedding="auto"``, by the number of coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ....core.errors import plural
from ....embeddings.base import Embedding
from ....embeddings.composed.point_maps import keeping
from ....embeddings.composed.point_transformer import PointTransformer
from ....embeddings.composed.shrunk import ShrunkEmbedding
from ....embeddings.composed.union import JOINS, EmbeddingUnion, name_parts, named_parts
from ....embeddings.extremes import ExtremesEmbedding
from ....embeddings.hdd import JOINT_DIMS, HDDEmbedding
from ....embeddings.mean_map import MeanMapEmbedding
from ....embeddings.moments import MomentsEmbedding
from ....embeddings.projection import ProjectionEmbedding
from ....embeddings.ranked import RankedSummariesEmbedding
from ....embeddings.size import SizeEmbedding
from ....embeddings.sliced import SlicedWassersteinEmbedding

_PAIRED_DIMS = 4  # up to so many coordinates, densities are of pairs
MARGINAL_DIMS = 64  # beyond, densities of single coordinates take thousands of numbers
COVARIANCE_DIMS = 80  # beyond, covariances do
N_DIRECTIONS = 64  # of sliced Wasserstein distances with more dimensions than `JOINT_DIMS`

AS_THEY_ARE, STANDARDISED, DRAWN_IN = "as they are", "standardised", "tails drawn in"
_SCALES = (AS_THEY_ARE, STANDARDISED, DRAWN_IN)
CUBE_ROOTS, NINTH_ROOTS = "cube roots", "ninth roots"
LINEAR_IN_MEANS = "linear in means"  # a candidate of every choice, and the simplest rival
ROOTS = (CUBE_ROOTS, NINTH_ROOTS)  # for points over many decades, about 0


View = tuple[str, tuple[int, ...] | None]
"""A scale of points, and those of their coordinates that are embedded; None: all."""


@dataclass(frozen=True)
class Choosable:
    """An embedding of points on one of the `_SCALES` or `ROOTS`.

    Attributes
    ----------
    name : str
        Name of the embedding.
    embedding : Embedding
        Embedding of points on the scale, not fitted.
    scale : str
        Scale of the points.
    linear : bool
        Whether the model is linear in the embedding, without random features.
    columns : tuple of int or None
        Coordinates of a point that are embedded; None: all.
    """

    name: str
    embedding: Embedding[Any]
    scale: str = AS_THEY_ARE
    linear: bool = False
    columns: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        """Name in reports."""
        parts = [self.name]
        if self.columns is not None:
            n = len(self.columns)
            parts.append(f"{n} {plural('coordinate', n)}")
        parts += [] if self.scale == AS_THEY_ARE else [self.scale]
        return ", ".join(parts)

    @property
    def view(self) -> View:
        """Scale and coordinates of the points that are embedded."""
        return self.scale, self.columns

    def on(self, scale: str) -> Choosable:
        """Return the embedding of points on another scale."""
        return replace(self, scale=scale)

    def of(self, columns: tuple[int, ...] | None) -> Choosable:
        """Return the embedding of some coordinates of the points; None: of all coordinates."""
        return replace(self, columns=columns)

    def made(self) -> Embedding[Any]:
        """Return the unfitted embedding for an estimator."""
        inner = clone(self.embedding)
        transformer = transformer_of_view(self.view)
        return inner if transformer is None else PointTransformer(transformer, inner)

    @property
    def weights(self) -> list[float]:
        """Weights of the kernels of a sum, whose sum is 1; empty if they are equal."""
        inner: Embedding[Any] | None = self.embedding
        if isinstance(inner, ShrunkEmbedding):
            inner = inner.embedding
        return list(inner.weights or ()) if isinstance(inner, EmbeddingUnion) else []

    def shrunk(self) -> Choosable:
        """Return the embedding shrunk by bag size."""
        inner = ShrunkEmbedding(clone(self.embedding))
        return replace(self, name=f"{self.name}, shrunk", embedding=inner)

    def plus(self, other: Choosable, weight: float | None = None) -> Choosable:
        """Return the sum of the kernels of two embeddings, of points on the scale of this one.

        The other one has a ``weight`` from 0 to 1, this one has the rest. Without a weight, all
        parts have equal weights, unless those of this one have weights.
        """
        joined = self._joined(other, "sum")
        if weight is None and not self.weights:
            return joined
        n, m = len(_parts_of(self.embedding)), len(_parts_of(other.embedding))
        of_others = m / (n + m) if weight is None else weight
        own = [(1 - of_others) * w for w in self.weights or [1 / n] * n]
        joined.embedding.set_params(weights=[*own, *[of_others / m] * m])
        return joined

    def times(self, other: Choosable) -> Choosable:
        """Return one kernel of two embeddings joined, of points on the scale of this one."""
        return self._joined(other, "product")

    def _joined(self, other: Choosable, join: str) -> Choosable:
        both = [*_parts_of(self.embedding), *_parts_of(other.embedding)]
        union = EmbeddingUnion(name_parts(both), join=join)
        return replace(self, name=f"{self.name}{JOINS[join]}{other.name}", embedding=union)


def _parts_of(embedding: Embedding[Any]) -> list[Embedding[Any]]:
    """Return clones of the parts of a union; for another embedding, a clone of itself."""
    if not isinstance(embedding, EmbeddingUnion):
        return [clone(embedding)]
    return [clone(part) for _, part in named_parts(embedding.parts)]


def transformer_of_view(view: View) -> Any:  # noqa: ANN401 - scikit-learn's have no types
    """Return the transformer of points, or of some coordinates, to a scale; None if not needed."""
    scale, columns = view
    on_scale = _transformer_of_scale(scale)
    if columns is None:
        return on_scale
    return keeping(columns) if on_scale is None else make_pipeline(keeping(columns), on_scale)


def _transformer_of_scale(scale: str) -> Any:  # noqa: ANN401 - as above
    if scale == AS_THEY_ARE:
        return None
    root = FunctionTransformer(np.cbrt)
    if scale in ROOTS:
        return root if scale == CUBE_ROOTS else make_pipeline(root, root)
    scaler = StandardScaler()
    if scale == STANDARDISED:
        return scaler
    return make_pipeline(scaler, FunctionTransformer(np.arcsinh))


def short_list(n_dims: int) -> list[Choosable]:
    """Return the embeddings to try for points with so many coordinates, the cheapest first.

    With more than three dimensions, no embedding estimates the joint density.
    """
    joint = n_dims <= JOINT_DIMS
    marginals = None if joint else 2 if n_dims <= _PAIRED_DIMS else 1
    directions = 32 if joint else N_DIRECTIONS
    embeddings: list[tuple[str, Embedding[Any]]] = [
        ("moments", MomentsEmbedding(covariance=n_dims <= COVARIANCE_DIMS)),
        ("mean map", MeanMapEmbedding()),
        ("sliced Wasserstein", SlicedWassersteinEmbedding(n_directions=directions)),
        ("extremes", ExtremesEmbedding(n_directions=directions)),
    ]
    if n_dims <= MARGINAL_DIMS:
        embeddings += [
            ("projection", ProjectionEmbedding(marginals=marginals)),
            ("js", HDDEmbedding("js", marginals=marginals)),
        ]
    scale = AS_THEY_ARE if joint else STANDARDISED
    return [Choosable(name, embedding, scale) for name, embedding in embeddings]


def linear_list(n_dims: int) -> list[Choosable]:
    """Return the embeddings to try with a linear model, the shortest first."""
    embeddings: list[tuple[str, Embedding[Any]]] = [
        (LINEAR_IN_MEANS, MomentsEmbedding(covariance=False))
    ]
    if n_dims <= COVARIANCE_DIMS:
        embeddings.append(("linear in moments", MomentsEmbedding()))
    n_directions = 32 if n_dims <= JOINT_DIMS else N_DIRECTIONS
    embeddings.append(("linear in extremes", ExtremesEmbedding(n_directions=n_directions)))
    scale = AS_THEY_ARE if n_dims <= JOINT_DIMS else STANDARDISED
    return [Choosable(name, embedding, scale, linear=True) for name, embedding in embeddings]


def size_beside(other: Choosable) -> Choosable:
    """Return the number of points as an embedding, in addition to one of points on a scale."""
    return replace(other, name="number of points", embedding=SizeEmbedding(), linear=False)


def ranks_beside(other: Choosable) -> Choosable:
    """Return the ranks of summaries as an embedding, of the points of another one."""
    return replace(other, name="ranks", embedding=RankedSummariesEmbedding(), linear=False)


def others_of(scale: str) -> Sequence[str]:
    """Return the scales to try after this one."""
    return [other for other in _SCALES if other != scale]
