"""`TasksWithFloors`: the default on tasks whose best possible error is known, and other methods.

It is not in the papers. Some tasks are judged on alone: no default may be changed for what is seen
on them. Another seed draws other bags of every task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field
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
from ..data.floor_tasks import FLOOR_TASKS, FloorTask
from ..kit.experiment import Experiment, Measure, Params, Scale
from ..kit.plots import GroupedBars

JUDGED_ON, TUNED_ON = "judged on", "tuned on"
_MIN_PROBABILITY = 1e-6  # in the log loss of every method
MIN_LEAF = 2  # bags per leaf
_PENALTIES = np.logspace(-4, 4, 17)
_N_FOLDS = 3  # of the logistic regression


class Sizes(Scale):
    """The tasks, and the numbers of bags, repeats and trees."""

    tasks: list[str] = Field(default_factory=lambda: list(FLOOR_TASKS))
    n_train: list[int]
    n_test: int
    n_repeats: int
    n_trees: int


class TasksWithFloors(Experiment[Sizes]):
    """A point is one draw of a task with all methods."""

    name = "tasks-with-floors"
    title = "Tasks with known floors"
    source = "Not in the papers"
    kind = Sizes
    pictures = (
        GroupedBars(
            file="ratios.png", x="task", y="over floor.*", label="error / the least possible"
        ),
    )

    def measures(self) -> list[Measure]:
        s = self.settings
        over: dict[str, Sequence[Any]] = {
            "task use": [(name, _use_of(FLOOR_TASKS[name])) for name in s.tasks],
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
