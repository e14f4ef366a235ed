"""`ActiveSearch`: finds regions that match a pattern, by observing few points (000, ch. 7).

There are two generated tasks: plumes, windows in which the mean of a scalar field is high, and
vortices of a flow, which a classifier of bags has learnt from other flows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bagbasis.search import Field, PatternSearch

from ....core.arrays import Floats
from ...terminal import Callback
from ..data.patterns import PROBLEMS, THRESHOLD, Pattern
from ..kit.experiment import Experiment, Measure, Params, Scale
from ..kit.plots import Curves

_OURS, LEVELS, UNCERTAIN, RANDOM = _METHODS = (
    "expected reward",
    "level sets",
    "uncertainty",
    "random",
)
BETA, EPSILON = 6.25, 0.1  # of level sets, as the paper has them
_N_DRAWS = 60  # draws of f, for the chances by which windows are flagged
EACH = 5  # queries after which they are


class Sizes(Scale):
    """Sizes of the field and its windows, and the numbers of queries and repeats."""

    n_repeats: int
    side: int
    window: int
    stride: int
    n_first: int
    n_queries: int
    n_candidates: int
    n_train: int


class ActiveSearch(Experiment[Sizes]):
    """A point is one field, searched by each method."""

    name = "active-search"
    title = "Active search for patterns"
    source = "000, ch. 7"
    kind = Sizes
    pictures = (Curves(file="recall.png", y="*.recall", panels="problem", label="recall"),)

    def measures(self) -> list[Measure]:
        over = {"problem": list(PROBLEMS), "repeat": range(self.settings.n_repeats)}
        shared = {"seed": self.seed, **dict(self.settings)}
        return [Measure("", self._recalls, "{problem} {repeat}", over, shared)]

    def _recalls(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the recall of each method after each query, and how many regions match."""
        key = (p["repeat"], list(PROBLEMS).index(p["problem"]))
        s, rng = self.settings, self.rng(*key)
        pattern = PROBLEMS[p["problem"]](s.side, s.window, s.stride, s.n_train, rng)
        first = rng.choice(len(pattern.truth), s.n_first, replace=False)
        begun = pattern.field
        for place in first.tolist():
            begun = begun.observe(place, pattern.measure(place, rng))
        recalls = {}
        for k, method in enumerate(_METHODS):
            search = self._search(method, pattern, begun, self.rng(*key, 2, k))
            recalls[method] = follow(search, pattern, s.n_queries, self.rng(*key, 1, k))
            progress(k + 1, len(_METHODS))
        return {**recalls, "n_matching": int(matching(pattern).sum())}

    def _search(
        self, method: str, pattern: Pattern, field: Field, rng: np.random.Generator
    ) -> FieldSearch | PatternSearch:
        if method == _OURS:
            n = None if pattern.is_exact else self.settings.n_candidates
            return PatternSearch(
                field,
                pattern.classifier,
                threshold=THRESHOLD,
                n_candidates=n,
                n_draws=_N_DRAWS,
                seed=self.seed,
            )
        scores: dict[str, _Score] = {
            LEVELS: LevelSets(pattern),
            UNCERTAIN: lambda field: field.variance,
            RANDOM: lambda field: rng.random(field.n_places),
        }
        return FieldSearch(field, scores[method])


_Score = Callable[[Field], Floats]
"""How much each place is worth observing, shape (n_places,)."""


class FieldSearch:
    """The baselines: the place of the largest score, with `PatternSearch`'s methods."""

    def __init__(self, field: Field, score: _Score) -> None:
        self.field, self._score = field, score

    def suggest(self) -> int:
        """Return the place to observe next."""
        return int(self._score(self.field).argmax())

    def observe(self, place: int, values: Floats) -> None:
        """Take what was observed."""
        self.field = self.field.observe(place, values)


class LevelSets:
    """Gotovos et al. (2013): the place whose side of a level is least certain.

    If the level may have either sign, the less certain of the two counts. No place is asked twice:
    a second time tells little of f and nothing of its curl, and the same place might stay the least
    certain for ever.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._low, self._high = np.array(-np.inf), np.array(np.inf)

    def __call__(self, field: Field) -> Floats:
        """Return ambiguities: how far the interval reaches beyond a level on its shorter side."""
        mean, variance = self._pattern.scalar(field)
        reach = (BETA * variance) ** 0.5
        self._low = np.maximum(self._low, mean - reach)
        self._high = np.minimum(self._high, mean + reach)
        ambiguity = np.max(
            [np.minimum(self._high - h, h - self._low) for h in self._pattern.levels], axis=0
        )
        score = ambiguity if ambiguity.max() > EPSILON else field.variance.copy()
        score[[observation.place for observation in field.observations]] = -np.inf
        return np.asarray(score)


def follow(
    search: FieldSearch | PatternSearch, pattern: Pattern, n_queries: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the recall of the regions flagged after each `EACH` queries, and their precision.

    A region is flagged, for good, when its chance exceeds the threshold.
    """
    recalls, match = [], matching(pattern)
    every, flagged = np.arange(len(match)), np.zeros(len(match), dtype=bool)
    for query in range(1, n_queries + 1):
        place = search.suggest()
        search.observe(place, pattern.measure(place, rng))
        if query % EACH == 0:
            chances = pattern.classifier.chances(search.field, every, n_draws=_N_DRAWS, rng=rng)
            flagged |= chances > THRESHOLD
            recalls.append(float(flagged[match].mean()))
    return {"recall": recalls, "precision": float(match[flagged].mean()) if flagged.any() else 1.0}


def matching(pattern: Pattern) -> Any:  # noqa: ANN401 - a mask
    """Return which regions match, by the classifier's judgement of the complete f."""
    every = np.arange(len(pattern.classifier.regions))
    return pattern.classifier.salience(pattern.truth[None], every)[0] > THRESHOLD
