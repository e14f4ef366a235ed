"""`Anomalies`: collective anomalies among bags, found by scores that use no labels.

000, ch. 1, names the task, and 004, §8.4.4, its measure for single points. Here the planted bags
consist of points that are each ordinary; training and test bags contain them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score
from sklearn.svm import OneClassSVM

from bagbasis import (
    Bags,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.core.arrays import Floats
from bagbasis.datasets import Digits

from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import column, frame, select
from ..kit.learning import draw_bags
from ..kit.notes import remarks
from ..kit.plots import GREEN, PURPLE, RED, bars, finish
from ..kit.verdicts import SURE, lead, listing, standard_error

OURS = ("leverage", "Mahalanobis of features", "Mahalanobis of coefficients")
PEERS = ("one-class SVM, our Gram", "isolation forest, moments")
ALPHA = 1e-3  # λ per bag, of the leverage
N_POINTS = 50
N_PICTURED = 6  # strangest bags
PICTURED = "shape"  # of these bags
DIGITS = 10


class Sizes(Scale):
    """See ``configs/experiments/anomalies.yaml``."""

    n_train: int
    n_test: int
    n_repeats: int
    share: float
    n_per_dim: int
    n_features: int
    n_trees: int


class Anomalies(Experiment[Sizes]):
    """See the module; a point is one set of bags with all methods."""

    name = "anomalies"
    title = "Collective anomalies among bags"
    source = "000, ch. 1, and 004, §8.4.4"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_repeats} data sets of {s.n_train:,} training and {s.n_test:,} test bags of each "
            f"kind, {s.share:.0%} of them planted, D = {s.n_features}. The paper has single points "
            "of three data sets, and prints no number."
        )

    def measures(self) -> list[Measure]:
        over = {"data": list(DATA), "repeat": range(self.settings.n_repeats)}
        shared = {"seed": self.seed, **dict(self.settings)}
        return [Measure("", self._scores, "{data} {repeat}", over, shared)]

    def _scores(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the average precision of each method, and the strangest bags."""
        s, rng = self.settings, self.rng(p["repeat"], list(DATA).index(p["data"]))
        parts = [rng.permutation(n) < round(s.share * n) for n in (s.n_train, s.n_test)]
        planted, bags = parts[1], DATA[p["data"]](np.concatenate(parts), rng)
        train, test = bags[: s.n_train], bags[s.n_train :]
        found = score_bags(train, test, s, self.seed)
        worst = np.argsort(-found[OURS[0]])[: N_PICTURED if p["repeat"] == 0 else 0]
        return {
            "precision": {n: average_precision_score(planted, one) for n, one in found.items()},
            "strangest": [
                {"points": test[int(i)].round(3).tolist(), "planted": bool(planted[i])}
                for i in worst
            ],
        }

    def tables(self, results: Sequence[Result]) -> list[Table]:
        rows: list[list[Any]] = []
        ahead: list[str] = []
        behind: list[str] = []
        level: list[str] = []
        for data in DATA:
            found = precisions(results, data)
            ours = max(OURS, key=lambda name: found[name].mean())
            peer = max(PEERS, key=lambda name: found[name].mean())
            gap, error = lead(found[ours], found[peer])
            (ahead if gap > SURE * error else behind if gap < -SURE * error else level).append(
                f"{data} ({gap:+.2f} ± {error:.2f})"
            )
            for name, values in found.items():
                rows.append([data, name, values.mean(), standard_error(values), values.min()])
        columns = ["planted", "score", "average precision", "± standard error", "least"]
        given = {"ahead": listing(ahead), "behind": listing(behind), "level": listing(level)}
        text = remarks("anomalies", "all", share=self.settings.share, **given)
        title = f"Average precision on test bags; by chance {self.settings.share:g}"
        return [Table(title, columns, rows, text)]

    def draw(self, results: Sequence[Result]) -> None:
        with self.picture("precision.png", "Collective anomalies", 1, 9.0) as (_, [axis]):
            found = {data: precisions(results, data) for data in DATA}
            series = {n: [found[d][n].mean() for d in DATA] for n in (*OURS, *PEERS)}
            colors = (BLUE, GREEN, PURPLE, ORANGE, GREY)
            bars(axis, list(DATA), series, "average precision", colors=colors)
        [first, *_] = select(results, data=PICTURED)
        title = f"The strangest bags of {PICTURED!r}, by leverage; planted ones in red"
        shape = (N_PICTURED, 2.2 * N_PICTURED, 3.6)
        with self.picture("strangest.png", title, *shape, sharex=True, sharey=True) as (_, axes):
            for axis, bag in zip(axes, first.values["strangest"], strict=True):
                color = RED if bag["planted"] else GREY
                axis.plot(*np.array(bag["points"]).T, ".", color=color, markersize=4)
                finish(axis, "", "")


def precisions(results: Sequence[Result], data: str) -> dict[str, Floats]:
    """Return the average precisions of each method on a kind of bags, one per data set."""
    rows = frame(results, data=data)
    return {name: column(rows, f"precision.{name}") for name in (*OURS, *PEERS)}


def score_bags(train: Bags, test: Bags, sizes: Sizes, seed: int) -> dict[str, Floats]:
    """Return how strange each test bag is, by methods fitted to the training bags alone."""
    first = ProjectionEmbedding(n_per_dim=sizes.n_per_dim, box=[(0, 1)] * train.n_dims)
    second = RandomFourierFeatures(n_features=sizes.n_features, seed=seed)
    fixed: dict[str, Any] = {"alpha": ALPHA * len(train), "uncertainty": True}
    nothing = np.zeros(len(train))  # neither score looks at labels
    of_features = DoubleBasisRegressor(first, second, **fixed).fit(train, nothing)
    of_coefficients = DoubleBasisRegressor(first, False, **fixed).fit(train, nothing)
    scores = of_features.bag_scores(test)
    z, new = (_rows(of_features, bags) for bags in (train, test))
    machine = OneClassSVM(kernel="precomputed").fit(z @ z.T)  # ν = .5 found no less than .05
    moments = MomentsEmbedding(dtype="float64").fit(train)
    forest = IsolationForest(n_estimators=sizes.n_trees, random_state=seed).fit(
        moments.transform(train)
    )
    return dict(
        zip(
            (*OURS, *PEERS),
            (
                scores.leverage,
                scores.mahalanobis,
                of_coefficients.bag_scores(test).mahalanobis,
                -machine.decision_function(new @ z.T),
                -forest.score_samples(moments.transform(test)),
            ),
            strict=True,
        )
    )


def _rows(model: DoubleBasisRegressor, bags: Bags) -> Floats:
    blocks = [z.copy() for _, z, _ in model.features_.blocks(bags, "float64")]
    return np.concatenate(blocks)


# ---------------------------------------------------------------------- bags, some of them planted

Planted = NDArray[np.bool_]


def _moved(planted: Planted, rng: np.random.Generator) -> Bags:
    """Centres of bags lie on a ring; those of planted ones within it."""
    angle = rng.uniform(0, 2 * np.pi, len(planted))
    radius = np.where(planted, rng.uniform(0, 0.12, len(planted)), 0.25)
    centres = 0.5 + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _around(centres, 0.08 * rng.standard_normal((len(planted), N_POINTS, 2)))


def _dependence(planted: Planted, rng: np.random.Generator) -> Bags:
    """Coordinates depend on each other, with either sign; those of planted ones do not."""
    points = rng.standard_normal((len(planted), N_POINTS, 2))
    slope = np.where(planted, 0.0, 0.9 * rng.choice([-1, 1], len(planted)))[:, None]
    points[..., 1] = slope * points[..., 0] + np.sqrt(1 - slope**2) * points[..., 1]
    return _around(_centres(planted, rng), 0.1 * points)


def _shape(planted: Planted, rng: np.random.Generator) -> Bags:
    """Points of a normal law; planted ones have its mean and covariance, on a ring."""
    points = rng.standard_normal((len(planted), N_POINTS, 2))
    ring = points / np.linalg.norm(points, axis=2, keepdims=True) * np.sqrt(2)
    points = np.where(planted[:, None, None], ring, points)
    return _around(_centres(planted, rng), 0.1 * points)


def _mixed(planted: Planted, rng: np.random.Generator) -> Bags:
    """Points about one of two places; those of planted bags about both."""
    side = np.repeat(rng.choice([-1, 1], (len(planted), 1)), N_POINTS, axis=1)
    side = np.where(planted[:, None], rng.choice([-1, 1], side.shape), side)
    places = 0.18 * np.stack([side, np.zeros_like(side)], axis=2)
    noise = 0.1 * rng.standard_normal(places.shape)
    return _around(np.full((len(planted), 2), 0.5), places + noise)


def _digits(planted: Planted, rng: np.random.Generator) -> Bags:
    """Pixels of handwritten digits; planted ones are of a class that others are not."""
    bags, classes = draw_bags(Digits())
    strange = rng.integers(DIGITS)
    chosen = np.empty(len(planted), dtype=np.int64)
    for is_planted in (True, False):
        pool = np.flatnonzero((classes == strange) == is_planted)
        rows = np.flatnonzero(planted == is_planted)
        chosen[rows] = rng.choice(pool, len(rows), replace=False)
    return Bags.from_list([bags[i] for i in chosen.tolist()])


def _centres(planted: Planted, rng: np.random.Generator) -> Floats:
    return rng.uniform(0.4, 0.6, (len(planted), 2))


def _around(centres: Floats, points: Floats) -> Bags:
    return Bags.from_list(list((centres[:, None] + points).clip(0, 1)))


# By what people see: bags of which those that the mask says are planted
DATA: dict[str, Callable[[Planted, np.random.Generator], Bags]] = {
    "moved": _moved,
    "dependence": _dependence,
    "shape": _shape,
    "mixed": _mixed,
    "digits": _digits,
}
