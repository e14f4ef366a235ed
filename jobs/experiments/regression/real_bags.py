"""`RealBags`: the default and what `tune` finds, beside forests and others, on real bags.

It is not in the papers. The sets come inside packages, each with a recipe in `data.real`. Two of
them are held back: nothing of the library was chosen by what was seen on them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from bagbasis import Bags, BagStore, DoubleBasisClassifier, DoubleBasisRegressor
from bagbasis.core.arrays import Floats
from bagbasis.core.errors import BagbasisError
from bagbasis.data.labelled.labelled import box_of_bags
from bagbasis.models import Search, tune
from bagbasis.models.base import DoubleBasis
from bagbasis.models.tuning.leads import Losses, difference

from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..data.real.recipe import LabelledSet
from ..data.real.registered import HELD_BACK, RECIPES
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.notes import remarks
from ..kit.plots import finish
from ..kit.verdicts import listing
from .real_bags_peers import PEERS, folds

CONSTANT, DEFAULT, TUNED = "constant", "default", "tune"
OURS = (DEFAULT, TUNED)
METHODS = (CONSTANT, *OURS, *PEERS)
WITHIN = (1.0, 2.0, 3.0)  # standard errors behind the best peer
DIGITS = 5  # of a loss that is kept


class Sizes(Scale):
    """See ``configs/experiments/real-bags.yaml``."""

    sets: list[str] = Field(default_factory=lambda: list(RECIPES))
    methods: list[str] = Field(default_factory=lambda: list(METHODS))
    most_bags: int
    n_folds: int
    n_repeats: int
    n_trees: int


class RealBags(Experiment[Sizes]):
    """See the module; a point is a set with a method, all folds once."""

    name = "real-bags"
    title = "Real bags: what the obvious call gives"
    source = "Not in the papers"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{len(s.sets)} sets of at most {s.most_bags:,} bags, {s.n_folds} folds, "
            f"{s.n_repeats} times."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        runs = [
            (name, method)
            for name in s.sets
            for method in s.methods
            if method not in PEERS or RECIPES[name].kind in PEERS[method].kinds
        ]
        over = {"repeat": range(s.n_repeats), "data method": runs}
        fixed = {"seed": self.seed, "most_bags": s.most_bags, "n_folds": s.n_folds}
        label = "{data} {method} {repeat}"
        return [Measure("", self._losses, label, over, {**fixed, "n_trees": s.n_trees})]

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
        found: dict[str, Any] = {"n_bags": len(data.bags), "n_dims": data.bags.n_dims}
        found |= {"n_points": data.bags.n_points}
        begun, chosen = time.process_time(), []
        for i, (train, test) in enumerate(splits):
            known = take(data, train)
            try:
                predicted[test], name = self._predict(p, known, data.bags[test], f"{seed}-{i}")
            except BagbasisError as error:
                return {**found, "refused": str(error)}
            chosen.append(name)
            progress(i + 1, len(splits))
        y = data.labels
        if kind == "classification":
            losses = (predicted != y).astype(float)
        else:
            losses = (predicted - y) ** 2 / y.var()
        groups = np.arange(len(y)) if data.groups is None else data.groups
        _, places, counts = np.unique(groups, return_inverse=True, return_counts=True)
        found |= {"seconds": time.process_time() - begun, "chosen": [c for c in chosen if c]}
        means = np.bincount(places, losses) / counts
        return {**found, "counts": counts.tolist(), "losses": means.round(DIGITS).tolist()}

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
                found = PEERS[method].predict(train, test, kind, p["n_trees"], p["seed"])
            return found, None
        model: DoubleBasis
        model = DoubleBasisClassifier() if kind == "classification" else DoubleBasisRegressor()
        if method == DEFAULT:
            model.fit(train.bags, train.labels, groups=train.groups)
            return np.ravel(model.predict(test)), _chosen(model)
        groups = np.arange(len(train.labels)) if train.groups is None else train.groups
        url = self.out_dir / "stores" / f"{p['data'].replace(' ', '-')}-{name}.zarr"
        box, columns = box_of_bags(train.bags), ["y", "group"]
        store = BagStore.create(url, train.bags.n_dims, columns, box, overwrite=True)
        store = store.append(train.bags, np.column_stack([train.labels, groups]))
        tuned = tune(
            model,
            store,
            search=Search.auto(train.bags.n_dims),
            target="y",
            groups=None if train.groups is None else "group",
        )
        return np.ravel(tuned.model.predict(test)), f"{_chosen(tuned.model)}; {_head(tuned.model)}"

    # ------------------------------------------------------------------ the report

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make the table of errors, losses first; how often ours is level; and the recipes."""
        found = verdicts(results)
        names = [name for name in METHODS if name in found]
        columns = {
            "set": [_named(name) for name in found["data"]],
            "bags": found["n_bags"],
            "points": found["n_points"],
            "d": found["n_dims"],
            **{name: found[name] for name in names},
            "best peer": found["best"],
            **{f"{name}: behind, s.e.": found[f"{name} behind"] for name in _ours(found)},
        }
        refused = [
            f"{r.params['method']} on {r.params['data']} ({r.values['refused']})"
            for r in results
            if "refused" in r.values
        ]
        given = {
            "lost": _lost(found, TUNED),
            "lost_default": _lost(found, DEFAULT),
            "refused": "; ".join(dict.fromkeys(refused)),
            "untuned": TUNED not in _ours(found),
        }
        rows = [[_plain(cell) for cell in row] for row in zip(*columns.values(), strict=True)]
        recipes = [
            [_named(name), RECIPES[name].task.removeprefix("bags: "), RECIPES[name].source,
             RECIPES[name].package, RECIPES[name].licence]
            for name in self.settings.sets
        ]  # fmt: skip
        what = ["set", "bags, points, label", "collected by", "package", "licence"]
        return [
            Table("Errors of bags in folds not seen", list(columns), rows,
                  remarks(self.name, "errors", **given)),
            Table("How often ours is level with the best peer of each set, or ahead",
                  ["method", "sets", *(f"within {n:g} s.e." for n in WITHIN), "ahead", "furthest "
                   "behind, s.e.", "mean rank", "CPU seconds per fit"],
                  _counts(found, results), remarks(self.name, "counts")),
            Table("Recipes", what, recipes, remarks(self.name, "recipes")),
        ]  # fmt: skip

    def draw(self, results: Sequence[Result]) -> None:
        """Draw the mean rank of each method, and how far ours is behind the best peer."""
        found = verdicts(results)
        title = f"{self.title}: ranks, and distance to the best peer"
        with self.picture("ranks.png", title, 2, 13.0, 0.25 * len(found) + 3.6) as (_, axes):
            ranks = mean_ranks(found)
            order = sorted(ranks, key=lambda name: -ranks[name])
            colors = [ORANGE if name in OURS else GREY for name in order]
            axes[0].barh(order, [ranks[name] for name in order], color=colors)
            finish(axes[0], "mean rank of all methods, 1 is best", "")
            at = np.arange(len(found))[::-1]
            for name, color in zip(_ours(found), (ORANGE, BLUE), strict=False):
                axes[1].plot(found[f"{name} behind"], at, "o", color=color, label=name)
            axes[1].axvline(0, color="black", linewidth=1)
            axes[1].axvline(WITHIN[0], color="black", linewidth=1, linestyle=":")
            axes[1].set_yticks(at, labels=[_named(name) for name in found["data"]])
            finish(axes[1], "standard errors behind the best peer", "")


@lru_cache(maxsize=1)
def read_set(name: str) -> LabelledSet:
    """Read a set; the methods of one follow each other."""
    return RECIPES[name].read()


def take(data: LabelledSet, places: Any) -> LabelledSet:  # noqa: ANN401 - what folds give
    """Return some bags of a set."""
    groups = None if data.groups is None else data.groups[places]
    return LabelledSet(data.bags[places], data.labels[places], groups)


def verdicts(results: Sequence[Result]) -> pd.DataFrame:
    """Return a row per set: errors by method, the best peer, and how far ours is behind it.

    Distances are in standard errors of the difference, over bags or groups; the sets that `tune`
    (the default, where it was not run) loses most on come first. A method that refused has none.
    """
    rows = []
    for name in dict.fromkeys(r.params["data"] for r in results):
        of_set = [r for r in results if r.params["data"] == name]
        losses = _mean_losses(of_set)
        errors = {
            m: float(np.average(one.values, weights=one.weights)) for m, one in losses.items()
        }
        best = min(PEERS, key=lambda m: errors.get(m, np.inf))
        row = {"data": name, **{k: of_set[0].values[k] for k in ("n_bags", "n_points", "n_dims")}}
        row |= {**errors, "best": best}
        run = {r.params["method"] for r in of_set}
        for ours in [name for name in OURS if name in run]:
            row[f"{ours} behind"] = np.nan
            if ours in losses:
                gap, error = difference(losses[best], losses[ours])
                row[f"{ours} behind"] = gap / error if error else 0.0
        rows.append(row)
    found = pd.DataFrame(rows)
    order = [f"{name} behind" for name in reversed(_ours(found))]
    return found.sort_values(order, ascending=False, na_position="first", ignore_index=True)


def mean_ranks(found: pd.DataFrame) -> dict[str, float]:
    """Return the mean rank of each method, over the sets that it was run on."""
    names = [name for name in METHODS if name in found]
    errors = found[names].to_numpy(dtype=float)
    ranks = np.array([rankdata(row, nan_policy="omit") for row in errors])
    return {name: float(np.nanmean(ranks[:, i])) for i, name in enumerate(names)}


def _mean_losses(results: Sequence[Result]) -> dict[str, Losses]:
    """Return the losses of each method, means of the repeats; none of one that refused."""
    found: dict[str, Losses] = {}
    for name in METHODS:
        of_method = [r.values for r in results if r.params["method"] == name]
        if of_method and not any("refused" in values for values in of_method):
            means = np.mean([values["losses"] for values in of_method], axis=0)
            counts = np.array(of_method[0]["counts"], dtype=float)
            found[name] = Losses(np.arange(len(means)), means, counts)
    return found


def _counts(found: pd.DataFrame, results: Sequence[Result]) -> list[list[Any]]:
    """Return the rows of the second table: ours on the sets, and on those held back."""
    rows: list[list[Any]] = []
    ranks = mean_ranks(found)
    is_held = found["data"].isin(HELD_BACK)
    for name in _ours(found):
        took = [
            r.values["seconds"] / r.params["n_folds"]
            for r in results
            if r.params["method"] == name and "seconds" in r.values
        ]
        for held, which in ((False, name), (True, f"{name}, held back")):
            behind = found.loc[is_held == held, f"{name} behind"].to_numpy(dtype=float)
            if not len(behind):
                continue
            least = [int((behind <= n).sum()) for n in WITHIN]
            worst = None if np.isnan(behind).all() else max(0.0, float(np.nanmax(behind)))
            more = (
                [None, None] if held else [ranks.get(name), float(np.mean(took)) if took else None]
            )
            rows.append([which, len(behind), *least, int((behind < 0).sum()), worst, *more])
    return rows


def _ours(found: pd.DataFrame) -> list[str]:
    """Return those of ours that were run."""
    return [name for name in OURS if f"{name} behind" in found]


def _lost(found: pd.DataFrame, name: str) -> str:
    """Return the sets on which a method is behind the best peer, and by how much."""
    if name not in _ours(found):
        return ""
    behind = found[f"{name} behind"]
    return listing(
        [
            f"{_named(data)} ({gap:.1f}, {best})"
            for data, gap, best in zip(found["data"], behind, found["best"], strict=True)
            if gap > WITHIN[0]
        ]
    )


def _named(name: str) -> str:
    return f"{name} (held back)" if name in HELD_BACK else name


def _plain(cell: object) -> object:
    if isinstance(cell, np.generic):
        cell = cell.item()
    return None if isinstance(cell, float) and np.isnan(cell) else cell


def _head(model: DoubleBasis) -> str:
    return str(model.report_.get("head", {}).get("head", "ridge"))


def _chosen(model: DoubleBasis) -> str | None:
    report: Mapping[str, Any] = model.report_
    choice = report.get("choice")
    return None if choice is None else str(choice["chosen"])
