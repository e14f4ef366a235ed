"""What every first basis provides: an estimator people configure, a frozen spec that travels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from ..bags import Bags, Box

Sample = Callable[[], Iterable[Bags]]


@runtime_checkable
class EmbeddingSpec(Protocol):
    """An embedding with everything decided: immutable, small, picklable.

    `n_features` is s; `cost` the seconds one point takes on one core, for planning.
    """

    @property
    def n_dims(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def cost(self) -> float: ...
    def embed(self, bags: Bags, out: NDArray[Any]) -> int:
        """Write A, shape (n_bags, s), in out's dtype; returns points outside the box."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description that `embeddings.spec_from_dict` reads."""
        ...


@runtime_checkable
class SeriesSpec(Protocol):
    """The spec of an embedding that starts from an orthogonal series estimate of the density."""

    @property
    def basis(self) -> str: ...
    @property
    def n_per_dim(self) -> int | None: ...
    @property
    def max_norm(self) -> float | None: ...
    @property
    def marginals(self) -> int | None: ...
    @property
    def box(self) -> Box: ...
    @property
    def n_dims(self) -> int: ...


class Embedding(Protocol):
    """A configurable embedding (a scikit-learn transformer over bags)."""

    def resolve(self, n_dims: int, box: Box, sample: Sample) -> EmbeddingSpec:
        """Decide what is left open, from a sample of bags where that needs one."""
        ...
