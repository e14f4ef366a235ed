"""Stores that grow, and the models that follow them, of each task.

Boxes, index sets and the kernel's width are given, so that a fit from scratch has the features of
the sequence.
"""

from __future__ import annotations

from typing import Any

import fsspec
import numpy as np

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    load_model,
)
from bagbasis.embeddings import ProjectionSpec
from bagbasis.operations import DriftGate, Registry, Retraining, retrain
from tests.oracles.labelled import labelled_bags

HOLDOUT = 0.2
TASKS = ("regression", "classification", "densities")
ESTIMATORS = {"regression": DoubleBasisRegressor, "classification": DoubleBasisClassifier}


def estimator(task: str = "regression", **params: Any) -> Any:
    """Not fitted, in double precision."""
    bases = (
        ProjectionEmbedding(n_per_dim=3),
        RandomFourierFeatures(n_features=16, scale=0.7, seed=3),
    )
    params = {"alpha": 0.1, "precision": "float64", **params}
    if task == "densities":
        return TripleBasisRegressor(
            *bases, response_embedding=ProjectionEmbedding(n_per_dim=3), **params
        )
    return ESTIMATORS[task](*bases, **params)


def create(url: Any, task: str = "regression") -> BagStore:
    """An empty store of bags in the unit square."""
    dims = 2 if task == "densities" else None
    names = () if task == "densities" else ("y",)
    return BagStore.create(url, 2, target_names=names, response_dims=dims, dtype=np.float64)


def grow(store: BagStore, n: int, task: str = "regression", **changes: Any) -> BagStore:
    """Append n bags; the same store grows the same way."""
    bags, y = labelled_bags(n, seed=store.n_bags, most=12)
    if task == "densities":
        return store.append(bags, responses=[1 - bag for bag in bags])
    if task == "classification":
        y = np.digitize(y, [-0.3, 0.4]).astype(float)
    return store.append(bags, changes.get("targets", lambda values: values)(y))


def spec(folder: Any, task: str = "regression", **changes: Any) -> Retraining:
    """A retraining in the folder (or the URL) whose rounds are cheap."""
    values = {
        "data_url": f"{folder}/bags.zarr",
        "registry_url": f"{folder}/registry",
        "estimator": estimator(task),
        "holdout": HOLDOUT,
        "evaluate_bags": 40,
        "tolerance": 10.0,  # the gate is not what most tests are about
        "drift": DriftGate(n_bags=30, n_permutations=19),
    }
    return Retraining(**{**values, **changes})


def from_scratch(store: BagStore, task: str = "regression", **params: Any) -> Any:
    """A full fit to all bags."""
    labels = {} if task == "densities" else {"target": "y"}
    return estimator(task, **params).fit(store, holdout=HOLDOUT, **labels)


def difference(model: Any, other: Any) -> float:
    """The largest difference of coefficients and intercepts, relative to the largest one."""
    solutions = model.model_.solution, other.model_.solution
    ours, theirs = (
        np.hstack([solution.coef, solution.intercept[:, None]]) for solution in solutions
    )
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def model_of(settings: Retraining, report: dict[str, Any]) -> Any:
    """The model of a round."""
    return load_model(Registry(settings.registry_url).model_url(report["model"]))


def files_of(url: Any) -> dict[str, bytes]:
    """Every file under a URL, but the lock."""
    fs, root = fsspec.core.url_to_fs(str(url))
    return {path: fs.cat_file(path) for path in fs.find(root) if not path.endswith(".lock")}


def retrain_grown(made: Retraining, store: BagStore, n: int = 60) -> dict[str, Any]:
    """The report of a round with n new bags."""
    grow(store, n)
    return retrain(made).report


def count_embedded(monkeypatch):
    """Return a list that gets the number of bags of each call that embeds some from now on."""
    counted, embed = [], ProjectionSpec.embed

    def counting(self, bags, out, *more):
        counted.append(len(bags))
        return embed(self, bags, out, *more)

    monkeypatch.setattr(ProjectionSpec, "embed", counting)
    return counted
