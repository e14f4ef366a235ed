"""`RealBags`: the default and what `tune` finds, compared with forests and others, on real bags.

It is not in the papers. The sets come inside packages (`data.real`). Three of them are judged on
alone: nothing of the library was chosen by what was seen on them. `verdicts` compares the default
and `tune` with the best of five peers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from bagbasis import Bags, BagStore, DoubleBasisClassifier, DoubleBasisRegressor
from bagbasis.core.arrays import Floats
from bagbasis.core.errors import BagbasisError
from bagbasis.data.labelled.labelled import box_of_bags
from bagbasis.models import Search, tune
from bagbasis.models.base import DoubleBasis
from bagbasis.models.tuning.leads import Losses, difference

from ..data.real.recipe import LabelledSet
from ..data.real.sets import HELD_BACK, RECIPES
from ..kit import Callback, Experiment, GroupedBars, Measure, Params, Result, ResultTable, counted
from ..kit.frame import as_table, frame
from ..kit.learning import constant_of
from .real_bags_peers import BEST_OF, PEERS, folds
from .tasks_with_floors import JUDGED_ON, TUNED_ON

_DIGITS = 5  # of a loss that is kept
CONSTANT, DEFAULT, TUNED = "constant", "default", "tune"
_OURS = (DEFAULT, TUNED)
COMPARED = (CONSTANT, *_OURS, *PEERS)
_BEHIND = "{}: behind, s.e."
_DISTANCE_DIGITS = 9
WITHIN = (1, 2, 3)  # standard errors behind the best peer


class RealBags(Experiment):
    name = "real-bags"
    title = "Real bags: what the obvious call gives"
    pictures = (
        GroupedBars("losses.png", "losses", x="data", by="method", where={"use": JUDGED_ON},
                    label="mean loss"),
    )  # fmt: skip

    def measures(self) -> list[Measure]:
        s = self.settings
        runs = [
            (repeat, name, method, JUDGED_ON if name in HELD_BACK else TUNED_ON)
            for repeat in range(s.n_repeats)
            for name in s.sets or RECIPES
            for method in COMPARED
            if method not in PEERS or RECIPES[name].kind in PEERS[method].kinds
            if method != TUNED or repeat < s.n_tuned_repeats
        ]
        runs.sort(key=lambda run: run[2] == TUNED)  # the slowest are last
        fixed = {"seed": self.seed, **self.picked("most_bags n_folds n_trees")}
        over = {"repeat data method use": runs}
        return [Measure("", self._losses, "{data} {method} {repeat}", over, fixed)]

    def tables(self, results: Sequence[Result]) -> list[ResultTable]:
        return verdicts(results)

    def _losses(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return wrong classes, or squared errors over the variance, of bags in folds not seen.

        Bags of a group are taken together. A refusal of ours is kept as its text.
        """
        data = read_set(p["data"]).sample(p["most_bags"], self.rng(0))
        kind = RECIPES[p["data"]].kind
        seed = p["seed"] + p["repeat"]
        predicted = np.empty(len(data.bags))
        splits = folds(data, kind, p["n_folds"], seed)
        row: dict[str, Any] = {"n_bags": len(data.bags), "n_dims": data.bags.n_dims,
                               "n_points": data.bags.n_points}  # fmt: skip
        begun, chosen = time.process_time(), []
        for i, (train, test) in enumerate(counted(splits, progress)):
            url = self.out_dir / "stores" / f"{p['data'].replace(' ', '-')}-{seed}-{i}.zarr"
            try:
                predicted[test], name = _predict(p, data[train], data.bags[test], url)
            except BagbasisError as error:
                return {**row, "refused": str(error)}
            chosen.append(name)
        y = data.labels
        if kind == "classification":
            losses = (predicted != y).astype(float)
        else:
            losses = (predicted - y) ** 2 / y.var()
        _, places, counts = np.unique(data.units, return_inverse=True, return_counts=True)
        row |= {"seconds": time.process_time() - begun, "chosen": [c for c in chosen if c]}
        means = np.bincount(places, losses) / counts
        return {**row, "counts": counts.tolist(), "losses": means.round(_DIGITS).tolist()}


def _predict(p: Params, train: LabelledSet, test: Bags, url: Path) -> tuple[Floats, str | None]:
    """Return predictions of one fold, and which embedding was chosen, if any."""
    kind, method = RECIPES[p["data"]].kind, p["method"]
    is_class = kind == "classification"
    if method == CONSTANT:
        return np.full(len(test), constant_of(train.labels, is_class)), None
    if method in PEERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # penalties that lose
            return PEERS[method].predict(train, test, kind, p["n_trees"], p["seed"]), None
    model: DoubleBasis
    model = DoubleBasisClassifier() if is_class else DoubleBasisRegressor()
    if method == DEFAULT:
        model.fit(train.bags, train.labels, groups=train.groups)
        return np.ravel(model.predict(test)), _chosen(model)
    box, columns = box_of_bags(train.bags), ["y", "group"]
    store = BagStore.create(url, train.bags.n_dims, target_names=columns, box=box, overwrite=True)
    store = store.append(train.bags, np.column_stack([train.labels, train.units]))
    groups, search = None if train.groups is None else "group", Search.auto(train.bags.n_dims)
    tuned = tune(model, store, search=search, target="y", groups=groups).model
    head = tuned.report_.get("head", {}).get("head", "ridge")
    return np.ravel(tuned.predict(test)), f"{_chosen(tuned)}; {head}"


def _chosen(model: DoubleBasis) -> str | None:
    choice: Mapping[str, Any] | None = model.report_.get("choice")
    return None if choice is None else str(choice["chosen"])


@lru_cache(maxsize=1)
def read_set(name: str) -> LabelledSet:
    return RECIPES[name].read()


def verdicts(results: Sequence[Result]) -> list[ResultTable]:
    """Return errors by set and method, and a count of the sets by distance to the best peer."""
    rows = frame(results)
    sets = pd.DataFrame([_of_set(part) for _, part in rows.groupby("data", sort=False)])
    sets = sets.sort_values(_BEHIND.format(DEFAULT), ascending=False)
    ranks = sets[[name for name in (*_OURS, *BEST_OF) if name in sets]].rank(axis=1).mean()
    seconds = (rows["seconds"] / rows["n_folds"]).groupby(rows["method"]).mean()
    counts = []
    for name in [name for name in _OURS if name in sets]:
        for use, part in sets.groupby("use"):
            behind = part[_BEHIND.format(name)]
            counts.append(
                {"method": name, "use": use, "sets": len(part), "ahead": (behind < 0).sum()}
                | {f"within {k} s.e.": (behind <= k).sum() for k in WITHIN}
                | {"furthest behind, s.e.": behind.max(), "mean rank": ranks[name]}
                | {"CPU seconds per fit": seconds[name]}
            )
    return [
        as_table("Errors of bags in folds not seen", sets),
        as_table("Sets by distance to the best peer", pd.DataFrame(counts)),
    ]


def _of_set(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the row of a set. Distances are over the standard error of the paired difference."""
    first = rows.iloc[0]
    names = {"set": "data", "use": "use", "bags": "n_bags", "points": "n_points", "d": "n_dims"}
    losses = {}
    for method in COMPARED:
        part = rows[rows["method"] == method].dropna(subset=["losses"])
        if len(part):
            means, counts = np.mean([*part["losses"]], axis=0), np.array(part["counts"].iloc[0])
            losses[method] = Losses(np.arange(len(means)), means, counts)
    errors = {name: np.average(of.values, weights=of.weights) for name, of in losses.items()}
    best = min((name for name in BEST_OF if name in errors), key=errors.__getitem__)
    behind = {}
    for ours in [name for name in _OURS if name in losses]:
        gap, error = difference(losses[best], losses[ours])
        # rounded: equal means of equal losses in another order differ in their last digits
        behind[_BEHIND.format(ours)] = round(gap / error, _DISTANCE_DIGITS) + 0.0 if error else 0.0
    return {**{k: first[v] for k, v in names.items()}, **errors, "best peer": best, **behind}
