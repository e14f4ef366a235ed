"""The passes that learn frequencies: sums over the fitted bags, whose embeddings are kept."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import TracebackType
from typing import Self

import numpy as np

from ...data.store.plan import Range
from ...data.store.sampling import RunSample
from ...embeddings.random_features.base import FeatureSpec
from ...embeddings.random_features.spectrum_evidence import SpectrumSums
from ...execution.affinity import WorkerAffinity
from ...execution.checkpoint_stores import StateCheckpoints
from ...execution.passes import Reduction, plan_ranges, run_pass
from ...execution.progress import Progress, note
from ..ridge.partial_regression import PartialSummary, RidgeSums
from ..ridge.ridge import check_rows
from ..ridge.sums import RidgeStatistics, statistics_cost
from .accumulate import SplitSums
from .feature_map import FeatureMap
from .feature_rows import FeatureRows, Keeping, RowBlock, discard_everywhere
from .plan import FitPlan


class LearningSums:
    """Collects the sums of one task: of bags that are fitted, not those to validate on."""

    def __init__(self, rows: FeatureRows, features: FeatureMap) -> None:
        self._sums = SplitSums(features, rows.outcome.n_targets, rows.precision, has_held=False)

    def add(self, block: RowBlock) -> None:
        """Count the rows of a block."""
        if n := block.n_fitted:
            weights = None if block.weights is None else block.weights[:n]
            self._sums.add(block.index[:n], block.embeddings[:n], block.y[:n], None, weights)

    def finish(self) -> RidgeSums:
        """Return the sums of all blocks."""
        return self._sums.finish().train  # type: ignore[return-value]  # no other summary


@dataclass
class LearningPasses:
    """A `LabelledSums` of bags: one pass per spec, on the open cluster or in this process.

    Parameters
    ----------
    plan : FitPlan
        The bags to fit, with the first basis and a baseline's columns alone, in double.
    remainder : callable
        The sums of these features without the part that a baseline explains.
    progress : Progress, optional
        Progress reporter of each pass.
    checkpoint_store : StateCheckpoints, optional
        CheckpointStore of the state of learning.
    """

    plan: FitPlan
    remainder: Callable[[RidgeSums, FeatureMap], RidgeSums | PartialSummary]
    progress: Progress | None = None
    checkpoint_store: StateCheckpoints | None = None
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _affinity: WorkerAffinity = field(default_factory=WorkerAffinity)
    _ranges: list[Range] | None = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Drop the embeddings that are kept."""
        discard_everywhere(self._token, self.plan.bags.in_memory)

    def __call__(self, spec: FeatureSpec, n_bags: int, text: str) -> SpectrumSums:
        """Return the centred sums of about ``n_bags`` bags; DataError if none has a label."""
        note(self.progress, text)
        source, features = self.plan.bags, replace(self.plan.features, second=spec)
        sizes = features.n_features, self.plan.outcome.n_targets, self.plan.precision
        cost = features.cost_in(self.plan.precision) + statistics_cost(*sizes)
        if self._ranges is None:  # of every pass, so that what is kept is found
            runs = RunSample.of_about(n_bags).ranges(source.start, source.start + source.n_bags)
            self._ranges = runs if len(runs) > 1 else plan_ranges(source, cost)
        sums = partial(LearningSums, self._rows, features)
        rows = run_pass(
            self._rows,
            Reduction(sums, operator.add, cost, name="learn"),
            ranges=self._ranges,
            progress=self.progress,
            preferred_workers=[] if source.in_memory else self._affinity(len(self._ranges)),
        )
        check_rows(rows)
        outcome = self.plan.outcome
        share = outcome.n_independent / outcome.n_targets
        return _as_sums(self.remainder(rows, features), share)

    @cached_property
    def _rows(self) -> FeatureRows:
        plan = self.plan
        narrow = 8 * (plan.features.n_embedded + plan.outcome.n_targets)
        here = plan.bags.in_memory
        keeping = Keeping.of(self._token, plan.bags.n_bags, narrow + 1, narrow, here)
        return FeatureRows.of(plan, replace(keeping, share=0.0))


def _as_sums(rows: RidgeSums | PartialSummary, share: float) -> SpectrumSums:
    """Return the sums with weights that are 1 on average: doubled, they say as much."""
    residual = rows.remainder if isinstance(rows, PartialSummary) else rows
    assert isinstance(residual, RidgeStatistics)
    factor = residual.n_weighted / residual.weight
    lower = np.tril(residual.matrix())
    gram = lower + np.tril(lower, -1).T
    cross, squares = residual.right_side(), residual.centred_yy()
    sums = gram * factor, cross * factor, squares * factor
    return SpectrumSums.of(*sums, residual.n_weighted, share)
