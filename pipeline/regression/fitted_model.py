"""The protocols of a fitted model: what other modules may ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import ArrayLike

from ..bags import Bags, BagStore
from ..execution.costs import Cost
from .feature_map import FeatureMap
from .outcomes import Outcome, Prediction
from .summary import Floats

COVERAGE = 0.9


class MoreColumns(NamedTuple):
    """Columns beside the prediction: their names, and the coverage of intervals."""

    names: Sequence[str] = ()
    coverage: float = COVERAGE


NO_COLUMNS = MoreColumns()

BagsLike = BagStore | Bags | Sequence[ArrayLike]
"""Bags as callers give them; in a sequence one array of shape (n_i, n_dims) per bag."""

Array = Any
"""A numpy array for bags in memory, a lazy dask.array for a BagStore."""


class Features(Protocol):
    """What a model is linear in."""

    @property
    def n_dims(self) -> int:
        """Coordinates of a point."""
        ...

    @property
    def n_features(self) -> int:
        """How many numbers a bag becomes."""
        ...

    @property
    def cost(self) -> Cost:
        """What they take."""
        ...


class ScoringModel(Protocol):
    """What the errors of a fitted estimator are computed from."""

    @property
    def outcome_(self) -> Outcome:
        """What was learnt."""
        ...

    @property
    def features_(self) -> Features:
        """What it is linear in."""
        ...

    def decision_rows(self, bags: Bags) -> Floats:
        """Return the raw rows that the outcome reads, shape (n_bags, k)."""
        ...


class FittedModel(ScoringModel, Protocol):
    """What predictions of a store are made with."""

    @property
    def features_(self) -> FeatureMap:
        """Both bases with everything decided."""
        ...

    @property
    def holdout_(self) -> float | dict[str, Any]:
        """What was left out of the fit, see `Holdout`."""
        ...

    def predicted(self, bags: Bags, columns: MoreColumns = NO_COLUMNS) -> Prediction:
        """Return everything that is predicted for bags in memory, and more columns."""
        ...

    def with_columns(self, rows: Floats, scores: Floats, columns: MoreColumns) -> Prediction:
        """Return predictions of raw rows (n, k) and scores (n, 2), with more columns."""
        ...
