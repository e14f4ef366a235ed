"""`KernelDensityEmbedding`: a bag as the series coefficients of its kernel density estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from bagbasis import Bags, ProjectionEmbedding
from bagbasis.bags import Box
from bagbasis.embeddings import Description, ProjectionSpec
from bagbasis.execution.costs import Cost

REACH = 2.65  # in units of 1 / πh: functions that are damped to 3 % and more are kept


@dataclass(frozen=True)
class KernelDensitySpec:
    """A `KernelDensityEmbedding` with everything decided."""

    projection: ProjectionSpec
    bandwidth: float

    @property
    def box(self) -> Box:
        return self.projection.box

    @property
    def n_dims(self) -> int:
        return self.projection.n_dims

    @property
    def n_features(self) -> int:
        return self.projection.n_features

    @property
    def cost(self) -> Cost:
        return self.projection.cost

    def embed(self, bags: Bags, out: NDArray[Any]) -> int:
        """Damped coefficients of each bag into ``out``; returns the points outside the box."""
        n_outside = self.projection.embed(bags, out)
        squares = (self.projection.indices**2).sum(axis=1)
        out *= np.exp(-0.5 * (np.pi * self.bandwidth) ** 2 * squares).astype(out.dtype)
        return n_outside

    def describe(self) -> Description:
        """See `EmbeddingSpec.describe`."""
        return Description(f"kernel density estimate, bandwidth {self.bandwidth:.3g} of the box")

    def to_dict(self) -> dict[str, Any]:
        return {"bandwidth": self.bandwidth, **self.projection.to_dict()}


class KernelDensityEmbedding(BaseEstimator):
    """Cosine coefficients a_α(X) e^{−½(πh)²‖α‖²} of a Gaussian kernel density estimate.

    The estimate of 004, eq. 2.27-2.29, with reflection at the walls of the box: the Euclidean
    distance of two bags is the L2 distance of their estimates, which the Kernel-Kernel estimator
    of 004, eq. 3.4 takes, at the cost of the few coefficients that the kernel leaves of any size.

    Parameters
    ----------
    bandwidth : float > 0
        h as a share of the box's side.
    """

    def __init__(self, bandwidth: float = 0.05) -> None:
        self.bandwidth = bandwidth

    def resolve(self, n_dims: int, box: Box, sample: Any) -> KernelDensitySpec:
        """The spec for points in R^n_dims."""
        projection = ProjectionEmbedding(max_norm=REACH / (np.pi * self.bandwidth))
        return KernelDensitySpec(projection.resolve(n_dims, box, sample), self.bandwidth)
