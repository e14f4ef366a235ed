"""What is searched, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ..embeddings import (
    Embedding,
    HDDEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    SlicedWassersteinEmbedding,
)
from ..parameters import Table, check_parameters
from ..parameters.tuning import TABLES

DEFAULT_MULTIPLIERS = (0.5, 0.7, 1.0, 1.4, 2.0)


@dataclass(frozen=True)
class Search:
    """Candidates, and the rungs they are compared on.

    Random features that learn from labels are compared as the Gaussian ones they begin with, and
    learn in the winner's last fit: `EmbeddingUnion` with ``join="sum"`` is none for them.

    Parameters
    ----------
    embeddings : sequence of embeddings, not fitted
    scale_multipliers : list of float > 0, default (0.5, 0.7, 1.0, 1.4, 2.0)
        Of σ, tried with each embedding; the coefficients are shared among them.
    eta : int ≥ 2, default 3
        A rung keeps the best 1/eta of its candidates and has eta times the bags of the one before.
    first_bags : int ≥ 1, optional
        Bags of the first rung. Default: as many as make the rungs end when one candidate is left
        for the fit to all bags, and at least 2,000.
    seed : int from 0 to 2^64 − 1, default 0
        Of the order in which bags are taken.
    linear : sequence of embeddings
        Tried besides, without random features.
    join : bool, default False
        After the rungs the best embedding is joined with others by `EmbeddingUnion`, one at a
        time, as long as that lowers the error by more than its standard error.
    """

    embeddings: Sequence[Embedding[Any]]
    scale_multipliers: Sequence[float] = DEFAULT_MULTIPLIERS
    eta: int = 3
    first_bags: int | None = None
    seed: int = 0
    linear: Sequence[Embedding[Any]] = ()
    join: bool = False
    PARAMETERS: ClassVar[Table] = TABLES["Search"]

    @classmethod
    def auto(cls) -> Self:
        """Return a search for users who have no embedding in mind.

        It compares ridge on the means of bags, moments, mean map, Jensen-Shannon and sliced
        Wasserstein, and joins them.
        """
        kernels: list[Embedding[Any]] = [
            MomentsEmbedding(),
            MeanMapEmbedding(),
            HDDEmbedding("js"),
            SlicedWassersteinEmbedding(),
        ]
        return cls(kernels, linear=[MomentsEmbedding(covariance=False)], join=True)

    def check(self) -> None:
        """Raise ParameterError for what can not be used."""
        check_parameters(self)
