"""`ComponentCounting`: the number of components of the mixture that a bag was drawn from.

001, §5.2 and Figure 3: Double-Basis regression under several geometries, the full kernel matrix
of an estimated divergence, EM with an information criterion, and a constant.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bagbasis import Bags, DoubleBasisRegressor
from bagbasis.datasets import GMMComponents

from ....core.arrays import Floats
from ...pictures import BLUE, ORANGE
from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import column, pivot, select
from ..kit.gram_peer import GramPeer
from ..kit.learning import Geometries, Learner, describe_all, draw_bags, errors
from ..kit.notes import remarks
from ..kit.plots import GREEN, RED, Curve, lines, plain_log
from ..kit.verdicts import listing
from .mixture_order import CRITERIA, orders_by_criteria

MOST_COMPONENTS = 10  # of EM fits, as of the mixtures
BOX = [(-10, 10)] * 2  # of the dataset
PAPER = {  # 001, Figure 3: RMSE with 200 and with 800 points per bag
    "AIC": {200: 2.7, 800: 2.3},
    "BIC": {200: 3.8, 800: 2.7},
    "constant": {200: 2.8, 800: 2.8},
}
ROUNDING = 0.05  # of these
HDD, OTHERS = ("JS", "Hellinger", "TV"), ("L2", "MMD", "Hist JS")
STYLES = {
    "JS": (BLUE, "o"),
    "Hellinger": ("#6fa8dc", "s"),
    "TV": ("#1b3a66", "^"),
    "L2": (ORANGE, "v"),
    "MMD": (RED, "D"),
    "Hist JS": (GREEN, "P"),
}

Labelled = tuple[Bags, Floats]


class Sizes(Scale):
    """See ``configs/experiments/gmm-components.yaml``."""

    n_points: list[int]
    n_train: list[int]
    n_test: int
    n_features: int
    n_choose: int
    choose_features: int
    multipliers: list[float]
    kl: dict[int, list[int]]
    n_em: dict[int, int]
    geometries: Geometries

    @property
    def methods(self) -> dict[str, list[Any]]:
        """The embeddings to choose from, by method."""
        return self.geometries.methods({"box": BOX}, {}, {"n_per_dim": 10, "grid": 40}, 512)


class ComponentCounting(Experiment[Sizes]):
    """See the module; a point is a method at a number of points per bag."""

    name = "gmm-components"
    title = "Counting the components of a mixture"
    source = "001, §5.2"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        sizes = ", ".join(f"{n:,}" for n in s.n_train)
        return (
            f"{sizes} training bags, {s.n_test:,} test bags, {listing(s.n_points)} points per bag, "
            f"D = {s.n_features:,}; the paper has 4,000, 8,000 and 16,000, 2,000, 200 and 800, "
            "and 5,000."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        data = {"n_test": s.n_test, "largest": s.n_train[-1]}
        shared = {
            "n_train": s.n_train,
            "n_choose": s.n_choose,
            "n_features": s.n_features,
            "choose_features": s.choose_features,
            "multipliers": s.multipliers,
        }
        n_points = {"n_points": s.n_points}
        methods = {"method candidates": list(describe_all(s.methods).items())}
        kl = {"n_points n_kl_train n_kl_test": [(n, *sizes) for n, sizes in s.kl.items()]}
        em = {"n_points n_em": list(s.n_em.items())}
        return [
            Measure("constant", self._constant, "constant, n {n_points}", n_points, data),
            Measure("2be", self._double_basis, "{method}, n {n_points}", {**n_points, **methods},
                    {**data, **shared}),
            Measure("kl", self._by_gram, "KL, n {n_points}", kl, data),
            Measure("em", self._by_em, "AIC and BIC, n {n_points}", em, data),
        ]  # fmt: skip

    # ------------------------------------------------------------------ what is measured

    def _data(self, p: Params) -> tuple[Labelled, Labelled]:
        """Training and test bags, which come first; their numbers of components."""
        n, n_test = p["n_points"], p["n_test"]
        seed = 2 * self.seed + (n != self.settings.n_points[0])
        bags, y = draw_bags(GMMComponents(n_points=n, seed=seed), n_test + p["largest"])
        return (bags[n_test:], y[n_test:]), (bags[:n_test], y[:n_test])

    def _constant(self, p: Params, progress: Callback) -> dict[str, Any]:
        train, test = self._data(p)
        return errors(np.full(len(test[1]), train[1].mean()), test[1])

    def _double_basis(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Embedding, σ and λ are chosen with the first training bags and fewer features."""
        s, (train, test) = self.settings, self._data(p)
        learner = Learner(DoubleBasisRegressor, self.seed)
        few = train[0][: s.n_choose], train[1][: s.n_choose]
        choice = learner.choose(s.methods[p["method"]], s.multipliers, few, s.choose_features)
        sizes = []
        for done, n in enumerate(s.n_train):
            begun = time.perf_counter()
            model = learner.fit_choice(choice, (train[0][:n], train[1][:n]), s.n_features)
            predicted = model.predict(test[0])
            seconds = time.perf_counter() - begun
            sizes.append({"n_train": n, "seconds": seconds, **errors(predicted, test[1])})
            progress(done + 1, len(s.n_train))
        return {"choice": choice.values, "sizes": sizes}

    def _by_gram(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Learn by KL, and by JS's embedding from as many bags."""
        s, (train, test), n_train = self.settings, self._data(p), p["n_kl_train"]
        few, queries = (train[0][:n_train], train[1][:n_train]), test[0][: p["n_kl_test"]]
        begun = time.perf_counter()
        predicted, choice = GramPeer().predict(few[0], few[1][:, None], queries)
        seconds = time.perf_counter() - begun
        learner = Learner(DoubleBasisRegressor, self.seed)
        js = learner.choose(s.methods["JS"], s.multipliers, few, s.choose_features)
        begun = time.perf_counter()
        beside = learner.fit_choice(js, few, s.n_features).predict(queries)
        js_seconds = time.perf_counter() - begun
        size, y = {"n_train": n_train, "n_test": len(queries)}, test[1][: len(queries)]
        return {
            "choice": choice,
            "sizes": [{**size, "seconds": seconds, **errors(predicted[:, 0], y)}],
            "js": {**size, "seconds": js_seconds, **errors(beside, y)},
        }

    def _by_em(self, p: Params, progress: Callback) -> dict[str, Any]:
        n, (_, test) = p["n_em"], self._data(p)
        begun, found = time.perf_counter(), []
        for i in range(n):
            found.append(orders_by_criteria(test[0][i], MOST_COMPONENTS, self.seed))
            progress(i + 1, n)
        seconds = time.perf_counter() - begun
        scores = {
            name: errors(np.array([each[name] for each in found], dtype=float), test[1][:n])
            for name in CRITERIA
        }
        return {**scores, "n": n, "seconds_a_bag": seconds / n}

    # ------------------------------------------------------------------ tables and the picture

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return a table per number of points."""
        sizes = list(dict.fromkeys(r.params["n_points"] for r in results))
        return [_table(select(results, n_points=n), n) for n in sizes]

    def draw(self, results: Sequence[Result]) -> None:
        """Draw 001, Figure 3: error over time, a line per method through its training sets."""
        sizes = list(dict.fromkeys(r.params["n_points"] for r in results))
        title = "Counting mixture components: each line goes through growing training sets"
        width = 6.6 * len(sizes)
        with self.picture("components.png", title, len(sizes), width, 6.2) as (_, axes):
            for axis, n_points in zip(axes, sizes, strict=True):
                _panel(axis, select(results, n_points=n_points), n_points)


def size_rows(results: Sequence[Result]) -> pd.DataFrame:
    """Return a row per regression and number of training bags: RMSE, its error, seconds."""
    return pd.DataFrame(
        [
            {"method": r.params.get("method", "KL"), **size}
            for r in results
            for size in r.values.get("sizes", ())
        ]
    )


def without_training(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """RMSE and its standard error of the constant, AIC and BIC, whose seconds are a bag's."""
    [constant], [em] = select(results, measure="constant"), select(results, measure="em")
    seconds = {"seconds": em.values["seconds_a_bag"], "n": em.values["n"]}
    found = {"constant": dict(constant.values)}
    return found | {name.upper(): {**em.values[name], **seconds} for name in CRITERIA}


def _table(results: Sequence[Result], n_points: int) -> Table:
    sizes, n_test = size_rows(results), results[0].params["n_test"]
    of_bases = sizes[sizes["method"] != "KL"]
    names, cells = pivot(of_bases, "method", "n_train", {"RMSE": "rmse", "s": "seconds"})
    width = len(names) // 2
    blank: list[Any] = [None] * (width - 1)
    last = of_bases.groupby("method", sort=False).last()
    rows: list[list[Any]] = [
        [method, *found[:width], float(last["se"][method]), *found[width:], None]
        for method, found in cells.items()
    ]
    for r in select(results, measure="kl"):
        for name, size in (("KL", r.values["sizes"][0]), ("JS", r.values["js"])):
            which = f"{name}, {size['n_train']:,} training and {size['n_test']:,} test bags"
            rows.append([which, *blank, size["rmse"], size["se"], *blank, size["seconds"], None])
    for method, values in without_training(results).items():
        label = f"{method}, {values['n']} test bags" if "n" in values else method
        total = values["seconds"] * n_test if "n" in values else None
        paper = PAPER[method].get(n_points)
        rows.append([label, *blank, values["rmse"], values["se"], *blank, total, paper])
    columns = ["", *names[:width], "± at the last", *names[width:], "RMSE, paper"]
    title = f"{n_points} points per bag: error and time over the number of training bags"
    return Table(title, columns, rows, _remarks(results, n_points, last))


def _remarks(results: Sequence[Result], n_points: int, last: pd.DataFrame) -> list[str]:
    rmse = last["rmse"]
    best = min(HDD, key=lambda method: rmse[method])
    ahead = [m for m in OTHERS if rmse[m] > max(rmse[h] for h in HDD)]
    behind = [m for m in OTHERS if m not in ahead]
    chosen = {r.params["method"]: r.values["choice"] for r in select(results, measure="2be")}
    verdict = f"All of JS, Hellinger and TV are better than {listing(ahead)}. " if ahead else ""
    if behind:
        theirs = ", ".join(f"{m} {rmse[m]:.3f}" for m in behind)
        hdds = listing([f"{h} {rmse[h]:.3f}" for h in HDD])
        verdict += f"{listing(behind)} beat one of them at least: {theirs}, against {hdds}. "
    return remarks(
        "gmm-components", "errors", best=best, verdict=verdict.strip(),
        em=without_training(results)["AIC"],
        beside_em=_beside_em(results, dict(last.loc[best])), n_test=results[0].params["n_test"],
        beside_paper=_beside_paper(results, n_points),
        chosen="; ".join(f"{method} {_choice(choice)}" for method, choice in chosen.items()),
    )  # fmt: skip


def _beside_em(results: Sequence[Result], ours: Mapping[str, Any]) -> str:
    """Return whether AIC and BIC are surely worse than the best regression."""
    em, parts = without_training(results), []
    for name in ("AIC", "BIC"):
        gap = em[name]["rmse"] - ours["rmse"]
        error = (em[name]["se"] ** 2 + ours["se"] ** 2) ** 0.5
        sure = "" if abs(gap) > 2 * error else f": level, by {abs(gap) / error:.1f} standard errors"
        parts.append(f"{name} {gap:+.2f} ± {error:.2f}{sure}")
    return "; ".join(parts)


def _beside_paper(results: Sequence[Result], n_points: int) -> str:
    """Return where the errors in the paper surely differ from ours."""
    parts = []
    for name, values in without_training(results).items():
        if n_points in PAPER[name]:
            gap = values["rmse"] - PAPER[name][n_points]
            within = "within error" if abs(gap) <= 2 * values["se"] + ROUNDING else "surely"
            parts.append(
                f"{name} {values['rmse']:.2f} ± {values['se']:.2f} ({PAPER[name][n_points]}; here "
                f"{'worse' if gap > 0 else 'better'}, {within})"
            )
    return ", ".join(parts)


def _choice(choice: Mapping[str, Any]) -> str:
    params = [f"{key}={value}" for key, value in choice["embedding"].items()
              if key in ("bandwidth", "n_per_dim", "n_bins")]  # fmt: skip
    shown = ", ".join(params) or "defaults"
    return f"{shown}, σ {choice['multiplier']:g} ({choice['seconds']:.0f} s)"


def _panel(axis: Axes, results: Sequence[Result], n_points: int) -> None:
    """Draw the methods with errors like those of the embeddings; the title names the others."""
    rows, curves = size_rows(results), []
    others = {method: values["rmse"] for method, values in without_training(results).items()}
    for method, found in rows.groupby("method", sort=False):
        if method == "KL":
            others["KL"] = float(found["rmse"].iloc[-1])
            continue
        color, marker = STYLES[str(method)]
        x, y = column(found, "seconds"), column(found, "rmse")
        curves.append(Curve(x, y, str(method), color, f"{marker}-"))
    most = max(float(curve.y.max()) for curve in curves)
    levels = {method: rmse for method, rmse in others.items() if rmse <= most}
    beyond = [f"{method} {rmse:.2f}" for method, rmse in others.items() if rmse > most]
    title = f"{n_points} points per bag" + (f"; beyond: {', '.join(beyond)}" if beyond else "")
    x_label, y_label = "seconds for fit and all predictions", "RMSE of the number of components"
    lines(axis, curves, x_label, y_label, log="x", levels=levels, title=title)
    plain_log(axis.xaxis)
