"""Greedy joining of embeddings, as long as the error on held-out bags falls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from ...embeddings.base import Embedding
from ...embeddings.composed.union import JOINS, EmbeddingUnion, name_parts
from ...execution.progress import Progress
from ..base import fit_parameters_of
from .candidates import resolve_widths
from .leads import Losses, difference
from .records import Lead, Score

if TYPE_CHECKING:
    from .halving import Tuner

_WEIGHTS = (1.0, 0.3)  # weights of an added part, relative to the parts of weight 1
_MIN_LEAD = 1.0  # standard errors by which a union has to lead; a smaller lead is often chance
_MAX_COMPARED = 3  # unions with one part more, compared on as many bags as the last rung has


class Joining:
    """The comparison of unions; their scores are added to ``found``, the scores of the rungs."""

    def __init__(self, tune: Tuner, scores: list[dict[int, Score]], progress: Progress) -> None:
        self._tune, self._scores, self._progress = tune, scores, progress
        self._losses: dict[int, Losses] = {}
        self._groups = None if tune.groups is None else tune.groups.held()

    def run(self) -> tuple[int, list[Lead]]:
        """Return the winner among the best of each embedding and their unions, and its leads.

        Linear candidates are compared but not joined.
        """
        candidates = self._tune.candidates
        finalists = self._best_of_each()
        kernels = [c for c in finalists if candidates[c].scale_multiplier is not None]
        best = min(kernels, key=self._error)
        widths = self._widths_about(best)
        compared = [best, *(c for c in finalists if c not in kernels)]
        parts, weights = [candidates[best].first], [1.0]
        others = [candidates[c].first for c in kernels if c != best]
        second = fit_parameters_of(self._tune.estimator).random_features
        joins = ["product"] if second and second.learns else list(JOINS)  # learnt is one kernel
        while others:
            made = {}
            for other, join, weight in product(others, joins, _WEIGHTS):
                named = name_parts([*parts, other])
                union = EmbeddingUnion(named, join=join, weights=[*weights, weight])
                added = self._add(union, widths)
                made[min(added, key=self._first_error)] = (other, weight)
            few = sorted(made, key=self._first_error)[:_MAX_COMPARED]
            new = min(few, key=self._error)
            finalists.append(new)
            gain, standard_error = self._differ(new, best)
            if gain <= _MIN_LEAD * standard_error:
                break
            best, (other, weight) = new, made[new]
            compared.append(best)
            parts, weights = [*parts, other], [*weights, weight]
            others = [candidate for candidate in others if candidate is not other]
        winner = min(compared, key=self._error)
        leads = [self._lead(winner, c) for c in finalists if c != winner]
        return winner, sorted(leads, key=lambda lead: lead.gap)

    def _lead(self, winner: int, c: int) -> Lead:
        gap, standard_error = self._differ(winner, c)
        return Lead(c, gap=gap, standard_error=standard_error)

    def _best_of_each(self) -> list[int]:
        """Return the candidate of each embedding that reached the latest rung, the best there."""
        rungs = enumerate(self._scores)
        reached = {c: (-r, scores[c].error) for r, scores in rungs for c in scores}
        best: dict[int, int] = {}
        for c in sorted(reached, key=lambda c: reached[c]):
            best.setdefault(self._tune.candidates[c].embedding, c)
        return [best[place] for place in sorted(best)]

    def _widths_about(self, c: int) -> list[float]:
        """Return the multiplier of σ of a candidate, and the neighbouring multipliers."""
        widths = sorted(self._tune.search.scale_multipliers)
        at = widths.index(self._tune.candidates[c].scale_multiplier or 1.0)
        return widths[max(0, at - 1) : at + 2]

    def _add(self, embedding: Embedding[Any], widths: Sequence[float]) -> list[int]:
        """Add an embedding with some multipliers of σ, and return the new candidates."""
        tune = self._tune
        place, first = len(tune.embeddings), len(tune.candidates)
        tune.embeddings.append(embedding)
        for candidate in resolve_widths(tune.compared, tune.estimator, embedding, place, widths):
            tune.check_memory(candidate)
            tune.candidates.append(candidate)
        return list(range(first, len(tune.candidates)))

    def _first_error(self, c: int) -> float:
        return self._score(c, 0).error

    def _error(self, c: int) -> float:
        return self._score(c, len(self._scores) - 1).error

    def _score(self, c: int, r: int) -> Score:
        if c not in self._scores[r]:
            self._scores[r][c] = self._tune.score(c, r, self._progress)
        return self._scores[r][c]

    def _differ(self, ours: int, theirs: int) -> tuple[float, float]:
        """Return the difference of the errors of two candidates, and its standard error."""
        for c in (ours, theirs):
            if c not in self._losses:
                self._losses[c] = self._tune.losses(c, self._score(c, len(self._scores) - 1))
        first = self._losses[ours]
        groups = None if self._groups is None else self._groups.at(first.index)
        return difference(first, self._losses[theirs], groups)
