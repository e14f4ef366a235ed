"""What `real-bags` compares with: scikit-learn's models on summaries of bags, and MILES.

Each chooses what its users would choose, by folds within the training bags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import ensemble
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from bagbasis import Bags
from bagbasis.core.arrays import Floats, Integers
from bagbasis.models.bag_summaries import MomentsAndExtremes
from bagbasis.models.evaluation.forest import FEATURE_FRACTION

from ..data.real.recipe import Kind, LabelledSet

Splits = list[tuple[Integers, Integers]]

INNER_FOLDS = 3
_BOOSTING = {"max_iter": 100, "learning_rate": 0.1, "min_samples_leaf": 5}  # sets are small
MAX_CONCEPTS = 400  # training points that MILES compares bags with
CONCEPT_WIDTHS = (0.1, 0.3, 1.0)  # over the median distance of points


@dataclass(frozen=True)
class Peer:
    """A method that is not ours: predictions from a set, bags, a kind, trees and a seed."""

    predict: Callable[[LabelledSet, Bags, Kind, int, int], Floats]
    kinds: Sequence[Kind] = ("classification", "regression")


def folds(labelled: LabelledSet, kind: Kind, n_folds: int, seed: int) -> Splits:
    """Return training and test bags of folds, no more than groups: whole groups, equal classes."""
    n = len(labelled.bags)
    if labelled.groups is not None:
        n_folds = min(n_folds, len(np.unique(labelled.groups)))
        whole = GroupKFold(n_folds, shuffle=True, random_state=seed)
        return list(whole.split(np.zeros(n), None, labelled.groups))
    split = StratifiedKFold if kind == "classification" else KFold
    return list(split(n_folds, shuffle=True, random_state=seed).split(np.zeros(n), labelled.labels))


def _search(model: Any, grid: Mapping[str, Any], splits: Splits) -> GridSearchCV:  # noqa: ANN401
    scaled = make_pipeline(StandardScaler(), model)
    return GridSearchCV(scaled, {f"{scaled.steps[-1][0]}__{k}": v for k, v in grid.items()},
                        cv=splits)  # fmt: skip


def _trees(
    name: str, train: LabelledSet, test: Bags, kind: Kind, n_trees: int, seed: int
) -> Floats:
    """Forests, extremely randomised ones, or boosted trees, on summaries of bags."""
    is_class = kind == "classification"
    params: dict[str, Any] = {"n_estimators": n_trees}
    if not is_class:
        params["max_features"] = FEATURE_FRACTION
    if name == "boosted trees":
        params = _BOOSTING
    made = getattr(ensemble, TREES[name] + ("Classifier" if is_class else "Regressor"))
    rows, model = MomentsAndExtremes(test.n_dims), made(**params, random_state=seed)
    return model.fit(rows.of(train.bags), train.labels).predict(rows.of(test))


def _linear(
    of_means: bool, train: LabelledSet, test: Bags, kind: Kind, n_trees: int, seed: int
) -> Floats:
    """Ridge or logistic regression on the means of bags, or on what trees see."""
    splits = folds(train, kind, INNER_FOLDS, seed)
    if kind == "classification":
        model, grid = LogisticRegression(max_iter=1000), {"C": np.logspace(-4, 2, 7)}
    else:
        model, grid = Ridge(), {"alpha": np.logspace(-2, 4, 13)}
    rows = MomentsAndExtremes(test.n_dims)
    known, new = (bags.means if of_means else rows.of(bags) for bags in (train.bags, test))
    return _search(model, grid, splits).fit(known, train.labels).predict(new)


def _miles(train: LabelledSet, test: Bags, kind: Kind, n_trees: int, seed: int) -> Floats:
    """MILES (Chen, Bi and Wang 2006): bags by their nearest points to training points, L1 SVM."""
    scaler = StandardScaler().fit(train.bags.points)
    points = scaler.transform(train.bags.points)
    rng = np.random.default_rng(seed)
    concepts = points[np.sort(rng.permutation(len(points))[:MAX_CONCEPTS])]
    nearest = [_nearest(scaler, bags, concepts) for bags in (train.bags, test)]
    median = np.median(euclidean_distances(concepts, squared=True)) or 1.0
    splits = folds(train, kind, INNER_FOLDS, seed)
    searches = []
    for width in np.array(CONCEPT_WIDTHS) * median:
        machine = LinearSVC(penalty="l1", dual=False, max_iter=2000, random_state=seed)
        search = GridSearchCV(machine, {"C": [1, 10]}, cv=splits)
        searches.append((search.fit(np.exp(-nearest[0] / width), train.labels), width))
    best, width = max(searches, key=lambda pair: pair[0].best_score_)
    return best.predict(np.exp(-nearest[1] / width))


def _nearest(scaler: StandardScaler, bags: Bags, concepts: Floats) -> Floats:
    """Return the least squared distance of a bag's points to each concept, (n_bags, n_concepts)."""
    each = (euclidean_distances(scaler.transform(bag), concepts, squared=True) for bag in bags)
    return np.array([distances.min(axis=0) for distances in each])


TREES = {"forest": "RandomForest", "extra trees": "ExtraTrees",
         "boosted trees": "HistGradientBoosting"}  # fmt: skip
PEERS: Mapping[str, Peer] = {
    **{name: Peer(partial(_trees, name)) for name in TREES},
    "mean pooling": Peer(partial(_linear, True)),
    "ridge on aggregates": Peer(partial(_linear, False)),
    "MILES": Peer(_miles, ("classification",)),
}
BEST_OF = [name for name in PEERS if name != "MILES"]  # the peers that verdicts are against
