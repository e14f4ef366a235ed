"""`TasksWithFloors`: the default on tasks whose best possible error is known, and other methods.

It is not in the papers. The best prediction is the posterior mean, or the posterior probabilities,
of the label given the points, or the number of the bag that noise is added to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import ensemble
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagbasis import Bags, DoubleBasisClassifier, DoubleBasisRegressor
from bagbasis.core.arrays import Floats
from bagbasis.models.bag_summaries import MomentsAndExtremes

from ..kit import Callback, Experiment, GroupedBars, Measure, Params

_GRID = 240  # values of a parameter over which its posterior is summed


class DrawnBags(NamedTuple):
    """Labelled bags, the best possible predictions, and what these are compared with."""

    bags: list[Floats]
    labels: NDArray[Any]
    best: Floats
    truth: NDArray[Any]


@dataclass(frozen=True)
class FloorTask:
    """How to draw a task; no default may be changed for what is seen on those judged on."""

    draw: Callable[[np.random.Generator, int], DrawnBags]
    kind: Literal["regression", "classification"] = "regression"
    judged_on: bool = False


_DrawBag = Callable[[np.random.Generator], Floats]


def _posterior(
    draw: Callable[[np.random.Generator, float], Floats],
    log_density: Callable[[Floats, Floats], Floats],
    ends: tuple[float, float],
    judged_on: bool = False,
) -> FloorTask:
    """Return a task whose label is a parameter, uniform between its ends."""
    low, high = ends
    grid = low + (high - low) * (np.arange(_GRID) + 0.5) / _GRID

    def drawn(rng: np.random.Generator, n: int) -> DrawnBags:
        labels = rng.uniform(low, high, n)
        bags = [draw(rng, label) for label in labels]
        best = []
        for bag in bags:
            logs = log_density(bag, grid).sum(axis=0)
            weights = np.exp(logs - logs.max())
            best.append(weights @ grid / weights.sum())
        return DrawnBags(bags, labels, np.array(best), labels)

    return FloorTask(drawn, judged_on=judged_on)


def _of_bag(
    draw: _DrawBag, label: Callable[[Floats], float], noise: float, judged_on: bool = False
) -> FloorTask:
    """Return a task whose label is a number of the bag, with normal noise."""

    def drawn(rng: np.random.Generator, n: int) -> DrawnBags:
        bags = [draw(rng) for _ in range(n)]
        best = np.array([label(bag) for bag in bags])
        labels = best + rng.normal(0, noise, n)
        return DrawnBags(bags, labels, best, labels)

    return FloorTask(drawn, judged_on=judged_on)


def _correlated(rng: np.random.Generator, r: float) -> Floats:
    points: Floats = rng.normal(size=(100, 6))
    points[:, 1] = r * points[:, 0] + np.sqrt(1 - r * r) * points[:, 1]
    return points


def _one_of_ten(rng: np.random.Generator, n: int) -> DrawnBags:
    """sin(2.5 μ) of the mean μ of the first of ten coordinates, all of whose means vary."""
    means = rng.uniform(-1, 1, (n, 10))
    bags = [mean + rng.normal(size=(50, 10)) for mean in means]
    grid = -1 + 2 * (np.arange(_GRID) + 0.5) / _GRID
    sums = np.array([bag[:, 0].mean() for bag in bags])
    weights = np.exp(-25 * (sums[:, None] - grid) ** 2)
    best = weights @ np.sin(2.5 * grid) / weights.sum(axis=1)
    labels = np.sin(2.5 * means[:, 0])
    return DrawnBags(bags, labels, best, labels)


def _with_outliers(rng: np.random.Generator, n: int) -> DrawnBags:
    """Spreads, of which three in a hundred labels are wrong by about 20."""
    spreads = rng.uniform(0.5, 2, n)
    bags = [rng.normal(0, s, (100, 2)) for s in spreads]
    wild = 20 * rng.normal(size=n) * (rng.random(n) < 0.03)
    best = np.array([np.sqrt((bag**2).mean()) for bag in bags])
    return DrawnBags(bags, spreads + 0.05 * rng.normal(size=n) + wild, best, spreads)


def _classes(*classes: tuple[float, _DrawBag, Callable[[Floats], Floats]]) -> FloorTask:
    """Return a task of classes: shares, draws and log densities. At least two bags are of each."""
    fractions, draws, log_densities = zip(*classes, strict=True)
    shares = np.array(fractions)

    def drawn(rng: np.random.Generator, n: int) -> DrawnBags:
        codes = rng.choice(len(shares), n, p=shares)
        codes[: 2 * len(shares)] = np.repeat(np.arange(len(shares)), 2)
        bags = [draws[code](rng) for code in codes]
        logs = np.array([[log(bag).sum() for log in log_densities] for bag in bags])
        logs += np.log(shares)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        best = weights / weights.sum(axis=1, keepdims=True)
        return DrawnBags(bags, codes, best, codes)

    return FloorTask(drawn, "classification")


def _ring(rng: np.random.Generator, share: float) -> Floats:
    """Points of which a share lies on a ring, the others in a normal cloud of its covariance."""
    points: Floats = rng.normal(size=(80, 2)) * np.sqrt(0.5)
    on = rng.random(80) < share
    angles, radii = rng.uniform(0, 2 * np.pi, 80), rng.normal(1, 0.1, 80)
    ring = radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    return np.where(on[:, None], ring, points)


def _log_ring(points: Floats, shares: Floats) -> Floats:
    radii = np.hypot(*points.T)
    on = stats.norm.pdf(radii, 1, 0.1) / (2 * np.pi * radii)
    off = np.exp(-(radii**2)) / np.pi
    return np.asarray(np.log(shares * on[:, None] + (1 - shares) * off[:, None]))


FLOOR_TASKS: Mapping[str, FloorTask] = {
    "spread": _posterior(
        lambda rng, s: rng.normal(0, s, (100, 2)),
        lambda x, s: -0.5 * (x**2).sum(axis=1)[:, None] / s**2 - 2 * np.log(s),
        (0.5, 3),
    ),
    "correlation of two of six": _posterior(
        _correlated,
        lambda x, r: -0.5 * (x[:, 1:2] - r * x[:, :1]) ** 2 / (1 - r**2) - 0.5 * np.log(1 - r**2),
        (-0.9, 0.9),
    ),
    "one of ten": FloorTask(_one_of_ten),
    "number of points": _of_bag(
        lambda rng: rng.normal(size=(int(np.exp(rng.uniform(np.log(10), np.log(500)))), 2)),
        lambda bag: float(np.log(len(bag))),
        0.1,
    ),
    "sum": _of_bag(
        lambda rng: rng.gamma(3, rng.uniform(0.5, 1.5), (rng.integers(10, 100), 1)),
        lambda bag: float(np.log(bag.sum())),
        0.05,
    ),
    "range": _of_bag(lambda rng: rng.gamma(2, 1, (100, 1)), np.ptp, 0.1),
    "outliers among labels": FloorTask(_with_outliers),
    "four families": _classes(
        (0.25, lambda rng: rng.normal(size=(50, 1)), stats.norm.logpdf),
        (
            0.25,
            lambda rng: rng.uniform(-(3**0.5), 3**0.5, (50, 1)),
            lambda x: np.where(np.abs(x) <= 3**0.5, -np.log(12**0.5), -1e3),
        ),
        (
            0.25,
            lambda rng: rng.laplace(0, 0.5**0.5, (50, 1)),
            lambda x: stats.laplace.logpdf(x, 0, 0.5**0.5),
        ),
        (
            0.25,
            lambda rng: rng.normal(rng.choice([-0.8, 0.8], (50, 1)), 0.6),
            lambda x: np.log(sum(stats.norm.pdf(x, m, 0.6) for m in (0.8, -0.8)) / 2),
        ),
    ),
    "rare class": _classes(
        (0.95, lambda rng: rng.normal(0, 1, (50, 2)), stats.norm.logpdf),
        (
            0.05,
            lambda rng: rng.normal(0.3, 1.15, (50, 2)),
            lambda x: stats.norm.logpdf(x, 0.3, 1.15),
        ),
    ),
    "share on a ring": _posterior(_ring, _log_ring, (0, 1), judged_on=True),
    "shape of Weibull": _posterior(
        lambda rng, k: rng.weibull(k, (60, 1)),
        lambda x, k: np.log(k) + (k - 1) * np.log(x) - x**k,
        (0.6, 3),
        judged_on=True,
    ),
    "gap of neighbours": _of_bag(
        lambda rng: np.cumsum(rng.gamma(2, 1, (40, 1)), axis=0) / 40,
        lambda bag: float(np.log(np.diff(np.sort(bag[:, 0])).max())),
        0.1,
        judged_on=True,
    ),
}

JUDGED_ON, TUNED_ON = "judged on", "tuned on"
_MIN_PROBABILITY = 1e-6  # in the log loss of every method
MIN_LEAF = 2  # bags per leaf
_PENALTIES = np.logspace(-4, 4, 17)
_N_FOLDS = 3  # of the logistic regression


class TasksWithFloors(Experiment):
    name = "tasks-with-floors"
    title = "Tasks with known floors"
    pictures = (
        GroupedBars("ratios.png", "over floor.*", x="task", label="error / the least possible"),
    )

    def measures(self) -> list[Measure]:
        s = self.settings
        over: dict[str, Sequence[Any]] = {
            "task use": [
                (name, JUDGED_ON if FLOOR_TASKS[name].judged_on else TUNED_ON)
                for name in s.tasks or FLOOR_TASKS
            ],
            "n_train": s.n_train,
            "repeat": range(s.n_repeats),
        }
        fixed = {"seed": self.seed, "n_test": s.n_test, "n_trees": s.n_trees}
        return [Measure("", self._errors, "{task} {n_train} {repeat}", over, fixed)]

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return root mean squares or log losses on new bags, absolute and over the floor."""
        task = FLOOR_TASKS[p["task"]]
        rng = self.rng(p["repeat"], p["n_train"], *p["task"].encode())
        train, test = task.draw(rng, p["n_train"]), task.draw(rng, p["n_test"])
        known, new = Bags.from_list(train.bags), Bags.from_list(test.bags)
        is_class = task.kind == "classification"
        model = DoubleBasisClassifier() if is_class else DoubleBasisRegressor()
        model.fit(known, train.labels)
        errors = {"default": _error(_predictions(model, new), test.truth)}
        rows = MomentsAndExtremes(known.n_dims)
        for name, peer in _peers(is_class, p["n_trees"], p["seed"]).items():
            peer.fit(rows.of(known), train.labels)
            errors[name] = _error(_predictions(peer, rows.of(new)), test.truth)
        floor = _error(test.best, test.truth)
        return {
            "floor": floor,
            "error": errors,
            "over floor": {name: value / floor for name, value in errors.items()},
            "default / best": errors["default"] / min(errors["forest"], errors["ridge"]),
            "chosen": model.report_["choice"]["chosen"],
        }


def _predictions(model: Any, X: Any) -> Floats:  # noqa: ANN401 - of scikit-learn or ours
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return np.asarray(predict(X))


def _error(predicted: Floats, truth: NDArray[Any]) -> float:
    """Return the root mean squared error, or the log loss of probabilities."""
    if predicted.ndim == 1:
        return float(np.sqrt(np.mean((predicted - truth) ** 2)))
    of_true = predicted[np.arange(len(truth)), truth.astype(int)]
    return float(-np.log(of_true.clip(_MIN_PROBABILITY, 1)).mean())


def _peers(is_class: bool, n_trees: int, seed: int) -> dict[str, Any]:
    """Return the other methods, not fitted: on means, covariances, extremes and log n of bags."""
    trees = {"min_samples_leaf": MIN_LEAF, "random_state": seed}
    if is_class:
        forest: Any = ensemble.RandomForestClassifier(n_trees, **trees)
        extra: Any = ensemble.ExtraTreesClassifier(n_trees, **trees)
        linear: Any = LogisticRegressionCV(Cs=8, cv=_N_FOLDS, max_iter=500)
    else:
        forest = ensemble.RandomForestRegressor(n_trees, max_features=0.5, **trees)
        extra, linear = ensemble.ExtraTreesRegressor(n_trees, **trees), RidgeCV(_PENALTIES)
    ridge = make_pipeline(StandardScaler(), linear)
    return {"forest": forest, "extra trees": extra, "ridge": ridge}
