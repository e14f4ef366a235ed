"""`RealBags`: the default and what `tune` finds, compared with forests and others, on real bags.

It is not in the papers. The sets come inside packages, each with a recipe in `data.real`. Three of
them are judged on alone: nothing of the library was chosen by what was seen on them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import Field
from sklearn.exceptions import ConvergenceWarning

from bagbasis import Bags, BagStore, DoubleBasisClassifier, DoubleBasisRegressor
from bagbasis.core.arrays import Floats
from bagbasis.core.errors import BagbasisError
from bagbasis.data.labelled.labelled import box_of_bags
from bagbasis.models import Search, tune
from bagbasis.models.base import DoubleBasis

from ...terminal import Callback
from ..data.real.recipe import LabelledSet
from ..data.real.registered import HELD_BACK, RECIPES
from ..kit.experiment import Experiment, Measure, Params, Result, ResultTable, Scale
from ..kit.plots import GroupedBars
from .real_bags_peers import PEERS, folds
from .real_bags_verdicts import COMPARED, CONSTANT, DEFAULT, TUNED, verdicts
from .tasks_with_floors import JUDGED_ON, TUNED_ON

_DIGITS = 5  # of a loss that is kept


class Sizes(Scale):
    """The sets and methods, and the numbers of bags, folds and repeats."""

    sets: list[str] = Field(default_factory=lambda: list(RECIPES))
    methods: list[str] = Field(default_factory=lambda: list(COMPARED))
    most_bags: int
    n_folds: int
    n_repeats: int
    n_tuned_repeats: int
    n_trees: int


class RealBags(Experiment[Sizes]):
    """A point is a set with a method, all folds once."""

    name = "real-bags"
    title = "Real bags: what the obvious call gives"
    source = "Not in the papers"
    kind = Sizes
    pictures = (
        GroupedBars(file="losses.png", x="data", y="losses", by="method", where={"use": JUDGED_ON},
             label="mean loss"),
    )  # fmt: skip

    def measures(self) -> list[Measure]:
        s = self.settings
        runs = [
            (repeat, name, method, JUDGED_ON if name in HELD_BACK else TUNED_ON)
            for repeat in range(s.n_repeats)
            for name in s.sets
            for method in s.methods
            if method not in PEERS or RECIPES[name].kind in PEERS[method].kinds
            if method != TUNED or repeat < s.n_tuned_repeats
        ]
        runs.sort(key=lambda run: run[2] == TUNED)  # the slowest are last
        fixed = {"seed": self.seed, "most_bags": s.most_bags, "n_folds": s.n_folds}
        over = {"repeat data method use": runs}
        label = "{data} {method} {repeat}"
        return [Measure("", self._losses, label, over, {**fixed, "n_trees": s.n_trees})]

    def tables(self, results: Sequence[Result]) -> list[ResultTable]:
        return verdicts(results)

    def _losses(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the losses of all bags, each by a model that has not seen its fold.

        They are wrong classes, or squared errors over the variance of the labels; bags of a group
        are taken together. A refusal of ours is kept as its text.
        """
        data = read_set(p["data"]).sample(p["most_bags"], self.rng(0))
        kind = RECIPES[p["data"]].kind
        seed = p["seed"] + p["repeat"]
        predicted = np.empty(len(data.bags))
        splits = folds(data, kind, p["n_folds"], seed)
        row: dict[str, Any] = {"n_bags": len(data.bags), "n_dims": data.bags.n_dims}
        row |= {"n_points": data.bags.n_points}
        begun, chosen = time.process_time(), []
        for i, (train, test) in enumerate(splits):
            known = take(data, train)
            try:
                predicted[test], name = self._predict(p, known, data.bags[test], f"{seed}-{i}")
            except BagbasisError as error:
                return {**row, "refused": str(error)}
            chosen.append(name)
            progress(i + 1, len(splits))
        y = data.labels
        if kind == "classification":
            losses = (predicted != y).astype(float)
        else:
            losses = (predicted - y) ** 2 / y.var()
        groups = np.arange(len(y)) if data.groups is None else data.groups
        _, places, counts = np.unique(groups, return_inverse=True, return_counts=True)
        row |= {"seconds": time.process_time() - begun, "chosen": [c for c in chosen if c]}
        means = np.bincount(places, losses) / counts
        return {**row, "counts": counts.tolist(), "losses": means.round(_DIGITS).tolist()}

    def _predict(
        self, p: Params, train: LabelledSet, test: Bags, name: str
    ) -> tuple[Floats, str | None]:
        """Return predictions of one fold, and which embedding was chosen, if any."""
        kind, method = RECIPES[p["data"]].kind, p["method"]
        if method == CONSTANT:
            values, counts = np.unique(train.labels, return_counts=True)
            constant = values[counts.argmax()] if kind == "classification" else train.labels.mean()
            return np.full(len(test), constant), None
        if method in PEERS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # penalties that lose
                predicted = PEERS[method].predict(train, test, kind, p["n_trees"], p["seed"])
            return predicted, None
        model: DoubleBasis
        model = DoubleBasisClassifier() if kind == "classification" else DoubleBasisRegressor()
        if method == DEFAULT:
            model.fit(train.bags, train.labels, groups=train.groups)
            return np.ravel(model.predict(test)), _chosen(model)
        groups = np.arange(len(train.labels)) if train.groups is None else train.groups
        url = self.out_dir / "stores" / f"{p['data'].replace(' ', '-')}-{name}.zarr"
        box, columns = box_of_bags(train.bags), ["y", "group"]
        store = BagStore.create(
            url, train.bags.n_dims, target_names=columns, box=box, overwrite=True
        )
        store = store.append(train.bags, np.column_stack([train.labels, groups]))
        tuned = tune(
            model,
            store,
            search=Search.auto(train.bags.n_dims),
            target="y",
            groups=None if train.groups is None else "group",
        )
        return np.ravel(tuned.model.predict(test)), f"{_chosen(tuned.model)}; {_head(tuned.model)}"


@lru_cache(maxsize=1)
def read_set(name: str) -> LabelledSet:
    """Read a set; the methods of one follow each other."""
    return RECIPES[name].read()


def take(data: LabelledSet, places: Any) -> LabelledSet:  # noqa: ANN401 - what folds give
    """Return some bags of a set."""
    groups = None if data.groups is None else data.groups[places]
    return LabelledSet(data.bags[places], data.labels[places], groups)


def _head(model: DoubleBasis) -> str:
    return str(model.report_.get("head", {}).get("head", "ridge"))


def _chosen(model: DoubleBasis) -> str | None:
    report: Mapping[str, Any] = model.report_
    choice = report.get("choice")
    return None if choice is None else str(choice["chosen"])
