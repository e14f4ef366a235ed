"""`ActiveSearch`: finds regions that match a pattern, by observing few points (000, ch. 7).

There are two generated tasks: plumes, windows in which the mean of a scalar field is high, and
vortices of a flow, which a classifier of bags has learnt from other flows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from bagbasis import DoubleBasisClassifier, MomentsEmbedding, RandomFourierFeatures
from bagbasis.core.arrays import Floats, Integers
from bagbasis.search import BagRegions, Field, PatternSearch, ProbitRegions, RegionClassifier

from ..kit import Callback, Curves, Experiment, Measure, Params, counted

_NOISE = 0.01  # variance of an observation's error
STEEPNESS = 20.0  # c of Φ(c · mean + b)
RARE = 0.85  # quantile of windows' means that is a plume's level
_N_LEARNT = 120  # places that the kernel's parameters are learnt from, of another field
_N_FEATURES = 64  # D of the classifier of flows
SHAPES = ("vortex", "saddle", "shear")
MIN_WINDOWS = 3  # windows that match: a flow with fewer is drawn again
THRESHOLD = 0.7  # θ of the paper
CURL = 1.0  # the level of |curl|; a vortex of strength 1 has 2 at its centre


@dataclass(frozen=True)
class Pattern:
    """A field to search before any observation, and what is there.

    Level sets are of the mean and variance that ``scalar`` returns; rewards that are exact have
    closed forms, so that all places are compared.
    """

    field: Field
    truth: Floats
    classifier: RegionClassifier
    scalar: Callable[[Field], tuple[Floats, Floats]]
    levels: tuple[float, ...]
    is_exact: bool

    def measure(self, place: int, rng: np.random.Generator) -> Floats:
        noise = _NOISE**0.5 * rng.standard_normal(self.truth.shape[1])
        return self.truth[place] + noise


PatternProblem = Callable[[int, int, int, int, np.random.Generator], Pattern]
"""From the sides of the field and of a window, the windows' stride, and training windows."""


def _grid(side: int) -> Floats:
    """Return the places of a square, one apart, shape (side², 2)."""
    return np.indices((side, side), dtype=float).reshape(2, -1).T.copy()


def windows(side: int, window: int, stride: int) -> list[Integers]:
    at = np.arange(side * side).reshape(side, side)
    starts = range(0, side - window + 1, stride)
    return [at[i : i + window, j : j + window].ravel() for i in starts for j in starts]


def plumes(side: int, window: int, stride: int, n_train: int, rng: np.random.Generator) -> Pattern:
    """Return a draw of the prior, and windows whose mean is among the highest."""
    places, regions = _grid(side), windows(side, window, stride)
    field = Field(places, RBF(0.5 * window), noise=_NOISE)
    truth = field.draw(1, seed=rng)[0]
    level = float(np.quantile([truth[region].mean() for region in regions], RARE))
    steep = {"scale": STEEPNESS, "offset": -STEEPNESS * level}
    highest = ProbitRegions.of_means(regions, n_places=len(places), **steep)
    return Pattern(field, truth, highest, lambda f: (f.mean[:, 0], f.variance), (level,), True)


def vortices(
    side: int, window: int, stride: int, n_train: int, rng: np.random.Generator
) -> Pattern:
    """Return a flow, and windows that a classifier of flows in windows says hold a vortex.

    The kernel's parameters are of largest likelihood at some places of another flow.
    """
    places = _grid(side)
    seen = rng.choice(len(places), min(_N_LEARNT, len(places)), replace=False)
    learnt = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(0.3 * window), alpha=_NOISE)
    learnt.fit(places[seen], flow(places, window, rng)[seen])
    field = Field(places, learnt.kernel_, noise=_NOISE, n_components=2)
    model, regions = learn(window, n_train, rng), windows(side, window, stride)
    classifier = BagRegions(model, regions, label="vortex", coordinates=places)
    every = np.arange(len(classifier.regions))
    truth = flow(places, window, rng)
    while (classifier.salience(truth[None], every) > THRESHOLD).sum() < MIN_WINDOWS:
        truth = flow(places, window, rng)

    def curl(field: Field) -> tuple[Floats, Floats]:
        u, v = np.moveaxis(field.mean.reshape(side, side, 2), 2, 0)
        covariance = field.covariance.reshape([side] * 4)
        along = [np.gradient(np.gradient(covariance, axis=k), axis=k + 2) for k in (0, 1)]
        variance = np.einsum("ijij->ij", along[0]) + np.einsum("ijij->ij", along[1])
        mean = np.gradient(v, axis=0) - np.gradient(u, axis=1)
        return mean.ravel(), variance.ravel().clip(0)

    return Pattern(field, truth, classifier, curl, (CURL, -CURL), False)


def shape(kind: str, places: Floats, centre: Floats, strength: float, width: float) -> Floats:
    """Return the flow of one shape at places, shape (n_places, 2)."""
    x, y = (places - centre).T
    if kind == "shear":
        return strength * width * np.column_stack([np.tanh(y / width), np.zeros_like(x)])
    fade = strength * np.exp(-(x**2 + y**2) / (2 * width**2))[:, None]
    return fade * np.column_stack([-y, x] if kind == "vortex" else [x, -y])


def flow(places: Floats, window: int, rng: np.random.Generator) -> Floats:
    """Return vortices, saddles and a shear at random places over a weak current."""
    velocity = np.tile(0.3 * rng.standard_normal(2), (len(places), 1))
    n = max(2, round(len(places) / (2 * window) ** 2))  # of vortices, and of saddles
    for kind, times in zip(SHAPES, (n, n, 1), strict=True):
        for _ in range(times):
            centre = rng.uniform(places.min(axis=0) + window / 3, places.max(axis=0) - window / 3)
            velocity += shape(kind, places, centre, _strength(rng), window / 4)
    return velocity


def learn(window: int, n_train: int, rng: np.random.Generator) -> DoubleBasisClassifier:
    """Return a classifier of flows in a window: whether a vortex is in its middle."""
    bags, labels = [], []
    places = _grid(window) - (window - 1) / 2
    for i in range(n_train):
        kind = SHAPES[0] if i % 2 else rng.choice(SHAPES)
        centre = rng.uniform(-0.1, 0.1, 2) * window
        if i % 2 == 0 and kind == SHAPES[0]:  # another's vortex, next to the window's middle
            angle = rng.uniform(0, 2 * np.pi)
            centre = rng.uniform(0.4, 0.8) * window * np.array([np.cos(angle), np.sin(angle)])
        velocity = shape(kind, places, centre, _strength(rng), window / 4)
        velocity += 0.3 * rng.standard_normal(2)
        aside = rng.choice([-1, 1], 2) * rng.uniform(0.7, 1.2, 2) * window
        velocity += shape(rng.choice(SHAPES), places, aside, _strength(rng), window / 4)
        bags.append(np.column_stack([places, velocity]))
        labels.append("vortex" if i % 2 else "none")
    features = RandomFourierFeatures(n_features=_N_FEATURES, seed=0)
    return DoubleBasisClassifier(MomentsEmbedding(), features).fit(bags, labels)


def _strength(rng: np.random.Generator) -> float:
    return float(rng.choice([-1, 1]) * rng.uniform(0.7, 1.5))


PROBLEMS: dict[str, PatternProblem] = {"plumes": plumes, "vortices": vortices}


_METHODS = ("expected reward", "level sets", "uncertainty", "random")
BETA, EPSILON = 6.25, 0.1  # of level sets, as the paper has them
_N_DRAWS = 60  # draws of f, for the chances by which windows are flagged
EACH = 5  # queries after which they are


class ActiveSearch(Experiment):
    name = "active-search"
    title = "Active search for patterns"
    source = "000, ch. 7"
    pictures = (Curves("recall.png", "*.recall", panels="problem", label="recall"),)

    def measures(self) -> list[Measure]:
        over = {"problem": list(PROBLEMS), "repeat": range(self.settings.n_repeats)}
        return [Measure("", self._recalls, "{problem} {repeat}", over, self.shared())]

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
        for k, method in enumerate(counted(_METHODS, progress)):
            search = self._search(method, pattern, begun, self.rng(*key, 2, k))
            recalls[method] = follow(search, pattern, s.n_queries, self.rng(*key, 1, k))
        return {**recalls, "n_matching": int(matching(pattern).sum())}

    def _search(
        self, method: str, pattern: Pattern, field: Field, rng: np.random.Generator
    ) -> FieldSearch | PatternSearch:
        scores: dict[str, _Score] = {
            "level sets": LevelSets(pattern),
            "uncertainty": lambda field: field.variance,
            "random": lambda field: rng.random(field.n_places),
        }
        if method in scores:
            return FieldSearch(field, scores[method])
        n = None if pattern.is_exact else self.settings.n_candidates
        return PatternSearch(
            field, pattern.classifier, threshold=THRESHOLD, n_candidates=n, n_draws=_N_DRAWS,
            seed=self.seed,
        )  # fmt: skip


_Score = Callable[[Field], Floats]
"""How much each place is worth observing, shape (n_places,)."""


class FieldSearch:
    """The baselines: the place of the largest score, with `PatternSearch`'s methods."""

    def __init__(self, field: Field, score: _Score) -> None:
        self.field, self._score = field, score

    def suggest(self) -> int:
        return int(self._score(self.field).argmax())

    def observe(self, place: int, values: Floats) -> None:
        self.field = self.field.observe(place, values)


class LevelSets:
    """Gotovos et al. (2013): the place whose side of a level is least certain.

    If the level may have either sign, the less certain of the two counts. No place is asked twice:
    it tells little of f and nothing of its curl, and might stay the least certain for ever.
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
        shorter = [np.minimum(self._high - h, h - self._low) for h in self._pattern.levels]
        ambiguity = np.max(shorter, axis=0)
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
