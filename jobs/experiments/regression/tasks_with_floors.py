"""`TasksWithFloors`: the default on tasks whose best possible error is known, and other methods.

It is not in the papers. The best prediction is the posterior mean, or the posterior probabilities,
of the label given the points, or, where the label is a number of the bag with noise, that number.
Some tasks are judged on alone: no default may be changed for what is seen on them. Another seed
draws other bags of every task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagbasis import Bags, DoubleBasisClassifier, DoubleBasisRegressor
from bagbasis.core.arrays import Floats
from bagbasis.models.bag_summaries import MomentsAndExtremes

from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params
from ..kit.plots import GroupedBars

_GRID = 240  # values of a parameter over which its posterior is summed

_Draw = Callable[[np.random.Generator, int], "DrawnBags"]


@dataclass(frozen=True, eq=False)
class DrawnBags:
    """Labelled bags, and what can be known of their labels.

    Attributes
    ----------
    bags : list of arrays, shape (n_i, d)
    labels : shape (n,)
        Numbers, or the codes of classes.
    best : shape (n,) or (n, n_classes)
        The best possible predictions.
    truth : shape (n,)
        The labels that predictions are compared with, without outliers.
    """

    bags: list[Floats]
    labels: NDArray[Any]
    best: Floats
    truth: NDArray[Any]


@dataclass(frozen=True)
class FloorTask:
    """How to draw a task.

    Attributes
    ----------
    draw : callable
        Labelled bags, from a generator and their number.
    kind : {"regression", "classification"}
    judged_on : bool
        Whether no default may be changed for what is seen on it.
    """

    draw: _Draw
    kind: Literal["regression", "classification"] = "regression"
    judged_on: bool = False


def _posterior(
    draw: Callable[[np.random.Generator, float], Floats],
    log_density: Callable[[Floats, Floats], Floats],
    ends: tuple[float, float],
) -> _Draw:
    """Return a task whose label is a parameter, uniform between its ends.

    ``log_density`` has a row per point and a column per value of the parameter.
    """
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

    return drawn


def _of_bag(
    draw: Callable[[np.random.Generator], Floats], label: Callable[[Floats], float], noise: float
) -> _Draw:
    """Return a task whose label is a number of the bag, with normal noise."""

    def drawn(rng: np.random.Generator, n: int) -> DrawnBags:
        bags = [draw(rng) for _ in range(n)]
        best = np.array([label(bag) for bag in bags])
        labels = best + rng.normal(0, noise, n)
        return DrawnBags(bags, labels, best, labels)

    return drawn


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


def _classes(
    draws: Sequence[Callable[[np.random.Generator], Floats]],
    fractions: Sequence[float],
    log_densities: Callable[[Floats], list[float]],
) -> _Draw:
    """Return a task of classes that are drawn by their shares; two bags at least of each."""
    shares = np.array(fractions)

    def drawn(rng: np.random.Generator, n: int) -> DrawnBags:
        codes = rng.choice(len(shares), n, p=shares)
        codes[: 2 * len(shares)] = np.repeat(np.arange(len(shares)), 2)
        bags = [draws[code](rng) for code in codes]
        logs = np.array([log_densities(bag) for bag in bags]) + np.log(shares)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        best = weights / weights.sum(axis=1, keepdims=True)
        return DrawnBags(bags, codes, best, codes)

    return drawn


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


def _normal(location: float, spread: float) -> Callable[[np.random.Generator], Floats]:
    return lambda rng: rng.normal(location, spread, (50, 2))


FLOOR_TASKS: Mapping[str, FloorTask] = {
    "spread": FloorTask(
        _posterior(
            lambda rng, s: rng.normal(0, s, (100, 2)),
            lambda x, s: -0.5 * (x**2).sum(axis=1)[:, None] / s**2 - 2 * np.log(s),
            (0.5, 3),
        )
    ),
    "correlation of two of six": FloorTask(
        _posterior(
            _correlated,
            lambda x, r: (
                -0.5 * (x[:, 1:2] - r * x[:, :1]) ** 2 / (1 - r**2) - 0.5 * np.log(1 - r**2)
            ),
            (-0.9, 0.9),
        )
    ),
    "one of ten": FloorTask(_one_of_ten),
    "number of points": FloorTask(
        _of_bag(
            lambda rng: rng.normal(size=(int(np.exp(rng.uniform(np.log(10), np.log(500)))), 2)),
            lambda bag: float(np.log(len(bag))),
            0.1,
        )
    ),
    "sum": FloorTask(
        _of_bag(
            lambda rng: rng.gamma(3, rng.uniform(0.5, 1.5), (rng.integers(10, 100), 1)),
            lambda bag: float(np.log(bag.sum())),
            0.05,
        )
    ),
    "range": FloorTask(_of_bag(lambda rng: rng.gamma(2, 1, (100, 1)), np.ptp, 0.1)),
    "outliers among labels": FloorTask(_with_outliers),
    "four families": FloorTask(
        _classes(
            [
                lambda rng: rng.normal(size=(50, 1)),
                lambda rng: rng.uniform(-(3**0.5), 3**0.5, (50, 1)),
                lambda rng: rng.laplace(0, 0.5**0.5, (50, 1)),
                lambda rng: rng.normal(rng.choice([-0.8, 0.8], (50, 1)), 0.6),
            ],
            [0.25] * 4,
            lambda bag: [
                float(stats.norm.logpdf(bag).sum()),
                float(np.where(np.abs(bag) <= 3**0.5, -np.log(12**0.5), -1e3).sum()),
                float(stats.laplace.logpdf(bag, 0, 0.5**0.5).sum()),
                float(
                    np.log(
                        (stats.norm.pdf(bag, 0.8, 0.6) + stats.norm.pdf(bag, -0.8, 0.6)) / 2
                    ).sum()
                ),
            ],
        ),
        "classification",
    ),
    "rare class": FloorTask(
        _classes(
            [_normal(0, 1), _normal(0.3, 1.15)],
            [0.95, 0.05],
            lambda bag: [
                float(stats.norm.logpdf(bag).sum()),
                float(stats.norm.logpdf(bag, 0.3, 1.15).sum()),
            ],
        ),
        "classification",
    ),
    "share on a ring": FloorTask(_posterior(_ring, _log_ring, (0, 1)), judged_on=True),
    "shape of Weibull": FloorTask(
        _posterior(
            lambda rng, k: rng.weibull(k, (60, 1)),
            lambda x, k: np.log(k) + (k - 1) * np.log(x) - x**k,
            (0.6, 3),
        ),
        judged_on=True,
    ),
    "gap of neighbours": FloorTask(
        _of_bag(
            lambda rng: np.cumsum(rng.gamma(2, 1, (40, 1)), axis=0) / 40,
            lambda bag: float(np.log(np.diff(np.sort(bag[:, 0])).max())),
            0.1,
        ),
        judged_on=True,
    ),
}


JUDGED_ON, TUNED_ON = "judged on", "tuned on"
_MIN_PROBABILITY = 1e-6  # in the log loss of every method
MIN_LEAF = 2  # bags per leaf
_PENALTIES = np.logspace(-4, 4, 17)
_N_FOLDS = 3  # of the logistic regression


class TasksWithFloors(Experiment):
    """A point is one draw of a task with all methods."""

    name = "tasks-with-floors"
    title = "Tasks with known floors"
    pictures = (
        GroupedBars("ratios.png", "over floor.*", x="task", label="error / the least possible"),
    )

    def measures(self) -> list[Measure]:
        s = self.settings
        over: dict[str, Sequence[Any]] = {
            "task use": [(name, _use_of(FLOOR_TASKS[name])) for name in s.tasks or FLOOR_TASKS],
            "n_train": s.n_train,
            "repeat": range(s.n_repeats),
        }
        fixed = {"seed": self.seed, "n_test": s.n_test, "n_trees": s.n_trees}
        return [Measure("", self._errors, "{task} {n_train} {repeat}", over, fixed)]

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return root mean squared errors, or log losses, on new bags: absolute and over the floor.

        ``default / best`` compares with the better of forest and ridge.
        """
        task = FLOOR_TASKS[p["task"]]
        rng = self.rng(p["repeat"], p["n_train"], *p["task"].encode())
        train, test = task.draw(rng, p["n_train"]), task.draw(rng, p["n_test"])
        known, new = Bags.from_list(train.bags), Bags.from_list(test.bags)
        model = DoubleBasisRegressor() if _is_number(task) else DoubleBasisClassifier()
        model.fit(known, train.labels)
        predicted = _predictions(model, new)
        error = _error_of(task, test.truth)
        errors = {"default": error(predicted)}
        rows = MomentsAndExtremes(known.n_dims)
        for name, peer in _peers(task, p["n_trees"], p["seed"]).items():
            peer.fit(rows.of(known), train.labels)
            errors[name] = error(_predictions(peer, rows.of(new)))
        floor = error(test.best)
        return {
            "floor": floor,
            "error": errors,
            "over floor": {name: value / floor for name, value in errors.items()},
            "default / best": errors["default"] / min(errors["forest"], errors["ridge"]),
            "chosen": model.report_["choice"]["chosen"],
        }


def _use_of(task: FloorTask) -> str:
    return JUDGED_ON if task.judged_on else TUNED_ON


def _is_number(task: FloorTask) -> bool:
    return task.kind == "regression"


def _predictions(model: Any, X: Any) -> Floats:  # noqa: ANN401 - of scikit-learn or ours
    """Return probabilities of classes, numbers otherwise."""
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return np.asarray(predict(X))


def _error_of(task: FloorTask, truth: Floats) -> Any:  # noqa: ANN401 - a function of predictions
    def squared(predicted: Floats) -> float:
        return float(np.sqrt(np.mean((predicted - truth) ** 2)))

    def logarithmic(predicted: Floats) -> float:
        of_true = predicted[np.arange(len(truth)), truth.astype(int)]
        return float(-np.log(of_true.clip(_MIN_PROBABILITY, 1)).mean())

    return squared if _is_number(task) else logarithmic


def _peers(task: FloorTask, n_trees: int, seed: int) -> dict[str, Any]:
    """Return the other methods, not fitted: on means, covariances, extremes and log n of bags."""
    trees = {"min_samples_leaf": MIN_LEAF, "random_state": seed}
    if _is_number(task):
        return {
            "forest": RandomForestRegressor(n_trees, max_features=0.5, **trees),
            "extra trees": ExtraTreesRegressor(n_trees, **trees),
            "ridge": make_pipeline(StandardScaler(), RidgeCV(_PENALTIES)),
        }
    logistic = LogisticRegressionCV(Cs=8, cv=_N_FOLDS, max_iter=500)
    return {
        "forest": RandomForestClassifier(n_trees, **trees),
        "extra trees": ExtraTreesClassifier(n_trees, **trees),
        "ridge": make_pipeline(StandardScaler(), logistic),
    }
