"""`Problem`: labelled bags as an estimator is fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..bags import Responses
from ..bags.labelled import LabelledBags
from .fitted_model import BagsLike
from .outcomes import Outcome
from .weights import Weights

Labels = ArrayLike | Sequence[ArrayLike | None] | Responses | None
"""Of bags in memory: targets, or one response per bag."""

Target = str | Sequence[str] | None
"""Columns of a store."""

TrainingBags = BagsLike | LabelledBags


@dataclass(frozen=True)
class Problem:
    """What an estimator is fitted to.

    Attributes
    ----------
    source : LabelledBags
        The labelled bags.
    outcome : Outcome
        What their labels are, as far as these alone decide it.
    weights : Weights, optional
    """

    source: LabelledBags
    outcome: Outcome
    weights: Weights | None = None
