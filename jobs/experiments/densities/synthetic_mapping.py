"""`SyntheticMapping`: a known function of densities, by 2BE and by the Kernel-Kernel estimator.

004, §3.5.1 and Figure 3.17: error and time per query over the number N of training bags, whose
number of points grows as N^(3/5).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pandas as pd

from bagbasis import BagStore, DoubleBasisRegressor, KernelSmoother, load_model
from bagbasis.data.storage.zarr_stores import exists
from bagbasis.datasets import SyntheticMapping as MappedBags, generate

from ....core.arrays import Floats
from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table, digest
from ..kit.frame import Column, column, frame, select, table, whole_table
from ..kit.kernel_kernel import (
    N_ROUNDS,
    Candidates,
    KernelDensityEmbedding,
    fit_double_basis,
    fit_kernel_kernel,
    measure_times,
    smooth,
)
from ..kit.learning import Training, mean_squares
from ..kit.notes import remarks
from ..kit.over_sizes import WAYS
from ..kit.plots import Curve, lines
from ..kit.verdicts import crossing, two_digits

LINES = {"batch": "--", "single": "-"}  # of `WAYS`, in pictures
EXPONENT = 3 / 5  # of N in the number of points
PAPER_RATIOS = {10_000: 12, 100_000: 67, 1_000_000: 139}


class Sizes(Scale):
    """See ``configs/experiments/synthetic-mapping.yaml``."""

    n_train: list[int]
    points_factor: float
    n_test: int
    most_pairs: int
    timed: list[int]
    candidates: Candidates
    n_queries: int = 256

    def n_points(self, n_train: int) -> int:
        """n, points in each bag."""
        return round(self.points_factor * n_train**EXPONENT)


class SyntheticMapping(Experiment[Sizes]):
    """See the module; points per N are the data, the 2BE, and KK with the times of both."""

    name = "synthetic-mapping"
    title = "A synthetic mapping of densities"
    source = "004, §3.5.1"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        bags = ", ".join(f"{n:,} training bags of {s.n_points(n):,} points" for n in s.n_train)
        return (
            f"{bags}; {s.n_test:,} test bags. The paper has 10,000, 100,000 and 1,000,000 bags, "
            "of a number of points ∝ N^(3/5) whose factor it does not say, and 100,000 test bags."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        sizes = {"n_train n_points": [(n, s.n_points(n)) for n in s.n_train]}
        first = dict(zip(("n_train", "n_points"), sizes["n_train n_points"][0], strict=True))
        data = {"n_test": s.n_test}
        learners = {**data, "candidates": s.candidates.model_dump(), "most_pairs": s.most_pairs}
        queries = {**learners, "n_queries": s.n_queries, "n_rounds": N_ROUNDS}
        return [
            Measure("data", self._data, "data, N {n_train}", sizes, data),
            Measure("2be", self._double_basis, "2BE, N {n_train}", sizes, learners),
            Measure("kk", self._kernel_kernel, "KK and times, N {n_train}", sizes, queries),
            Measure("time", self._times_of_few, "times, {n_timed} bags", {"n_timed": s.timed},
                    {**queries, **first}),
        ]  # fmt: skip

    # ------------------------------------------------------------------ data and models

    def _store(self, n_train: int, split: str, progress: Callback | None = None) -> BagStore:
        """Bags of a split, generated where they are not there."""
        train = split == "train"
        bags = MappedBags(
            n_points=self.settings.n_points(n_train),
            seed=2 * self.seed + (not train),
            mapping_seed=self.seed,
        )
        n_bags = n_train if train else self.settings.n_test
        name = f"{split}-{digest({**bags.params, 'n_bags': n_bags})}.zarr"
        return generate(bags, self.out_dir / "data" / name, n_bags, progress=progress)

    def _training(self, n_train: int) -> tuple[Training, Training]:
        """All training bags, stored, and the first ones, which choose the bases, in memory."""
        store = self._store(n_train, "train")
        n = min(self.settings.candidates.n_choose, store.n_bags)
        return (store, None), (store.read(0, n), store.targets(0, n)[:, 0])

    def _model_url(self, n_train: int) -> str:
        s = self.settings
        params = {"n_train": n_train, "n_points": s.n_points(n_train), "seed": self.seed}
        name = digest({**params, "candidates": s.candidates.model_dump()})
        return str(self.out_dir / "models" / f"{name}.zarr")

    def _model(self, n_train: int) -> DoubleBasisRegressor:
        """Return the 2BE, which the point before left, or made again."""
        url = self._model_url(n_train)
        if not exists(url):
            self._fit(n_train)
        return cast(DoubleBasisRegressor, load_model(url))

    def _fit(self, n_train: int) -> tuple[DoubleBasisRegressor, dict[str, Any]]:
        fitted = fit_double_basis(*self._training(n_train), self.settings.candidates, self.seed)
        fitted.model.save(self._model_url(n_train), overwrite=True)
        return fitted.model, fitted.choice

    def _test(self, n_train: int) -> tuple[Any, Floats]:
        return test_bags(self._store(n_train, "test").url, self.settings.n_test)

    def _n_smoothed(self, n_train: int) -> int:
        return min(self.settings.n_test, self.settings.most_pairs // n_train)

    # ------------------------------------------------------------------ what is measured

    def _data(self, p: Params, progress: Callback) -> dict[str, Any]:
        splits = ("train", "test")
        return {f"n_{s}": self._store(p["n_train"], s, progress).n_bags for s in splits}

    def _double_basis(self, p: Params, progress: Callback) -> dict[str, Any]:
        model, choice = self._fit(p["n_train"])
        bags, y = self._test(p["n_train"])
        predicted, first = model.predict(bags), slice(None, self._n_smoothed(p["n_train"]))
        return {
            **mean_squares(predicted, y),
            "first": mean_squares(predicted[first], y[first]),
            "variance": float(y.var()),
            "choice": choice,
        }

    def _kernel_kernel(self, p: Params, progress: Callback) -> dict[str, Any]:
        s, training = self.settings, self._training(p["n_train"])
        fitted = fit_kernel_kernel(*training, s.candidates)
        n, model = self._n_smoothed(p["n_train"]), self._model(p["n_train"])
        bags, y = self._test(p["n_train"])
        return {
            **mean_squares(smooth(fitted.model, bags[:n]), y[:n]),
            "n": n,
            "choice": fitted.choice,
            "seconds": measure_times(model, fitted.model, training[0], bags, s.n_queries),
        }

    def _times_of_few(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return what a smoother takes does not depend on its bandwidth."""
        train, n, s = self._store(p["n_train"], "train"), p["n_timed"], self.settings
        few = train.read(0, n), train.targets(0, n)[:, 0]
        embedding = KernelDensityEmbedding(s.candidates.bandwidths[-1])
        smoother = KernelSmoother(embedding, bandwidth=1.0).fit(*few)
        bags, _ = self._test(p["n_train"])
        model = self._model(p["n_train"])
        return {"seconds": measure_times(model, smoother, few, bags, s.n_queries)}

    # ------------------------------------------------------------------ tables and the picture

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [_error_table(results), _time_table(results)]

    def draw(self, results: Sequence[Result]) -> None:
        """Draw 004, Figure 3.17, and the ratio of the times."""
        errors, seconds, ratios = [], [], []
        for kind, name, color, marker in (("2be", "2BE", BLUE, "o"), ("kk", "KK", ORANGE, "s")):
            rows = frame(results, measure=kind)
            spread = column(rows, "se")
            errors.append(Curve(rows["n_train"], rows["mse"], name, color, f"{marker}-", spread))
        rows, timed = frame(results, measure="2be"), by_size(results)
        errors.append(Curve(rows["n_train"], rows["variance"], "best constant", GREY, ":"))
        n = timed["n"]
        for way, text in WAYS.items():
            for name, color, marker in (("2be", BLUE, "o"), ("kk", ORANGE, "s")):
                label, style = f"{name.upper()}, {text}", marker + LINES[way]
                seconds.append(Curve(n, timed[f"seconds.{name}_{way}"], label, color, style))
            ratios.append(Curve(n, timed[way], f"here, {text}", BLUE, f"o{LINES[way]}"))
        paper = list(PAPER_RATIOS), list(PAPER_RATIOS.values())
        ratios.append(Curve(*paper, "004: 12×, 67×, 139×", GREY, "*"))
        title = "A known function of densities: errors, and times of a prediction"
        x = "training bags N"
        with self.picture("mapping.png", title, 3, 15.0) as (_, [left, middle, right]):
            lines(left, errors, x, "mean squared error (units of f²)", log="xy")
            lines(middle, seconds, x, "seconds per query", log="xy")
            lines(right, ratios, x, "time of KK / time of the 2BE", log="xy",
                  levels={"the same time": 1})  # fmt: skip


@lru_cache(maxsize=1)
def test_bags(url: str, n_bags: int) -> tuple[Any, Floats]:
    """All bags of a store and its one target."""
    store = BagStore.open(url)
    return store.read(0, n_bags), store.targets(0, n_bags)[:, 0].astype(np.float64)


def by_size(results: Sequence[Result]) -> pd.DataFrame:
    """Return what was timed, in ascending order of KK's training bags ``n``.

    Per way to predict there is the ratio of KK's time and the 2BE's.
    """
    few, many = frame(results, measure="time"), frame(results, measure="kk")
    rows = pd.concat([many.assign(n=many["n_train"]), few.assign(n=few.get("n_timed"))])
    for way in WAYS:
        rows[way] = rows[f"seconds.kk_{way}"] / rows[f"seconds.2be_{way}"]
    return rows.astype({"n": int}).sort_values("n", ignore_index=True)


def _error_table(results: Sequence[Result]) -> Table:
    double, kernel = frame(results, measure="2be"), frame(results, measure="kk")
    rows = double.merge(kernel, on="n_train", suffixes=("", " of kk")).sort_values("n_train")
    rows["gap"] = rows["first.mse"] / rows["mse of kk"]
    columns: dict[str, Column] = {"training bags": "n_train", "points per bag": "n_points"}
    columns |= {"2BE": "mse", "± of 2BE": "se", "2BE, KK's bags": "first.mse"}
    columns |= {"KK": "mse of kk", "± of KK": "se of kk", "KK's test bags": "n"}
    columns |= {"2BE / KK": "gap", "variance of f": "variance"}
    lost = [f"N = {n:,}" for n in rows["n_train"][rows["gap"] >= 1]]
    n_choose = rows["candidates.n_choose"][0]
    chosen = "; ".join(
        f"N = {row['n_train']:,}: {row['choice.n_per_dim']} functions, σ "
        f"{row['choice.multiplier']:g} medians, λ/N {row['choice.alpha_a_bag']:.0e}, KDE bandwidth "
        f"{row['choice.density_bandwidth']:g} ({row['choice.n_coefficients']} coefficients); "
        f"chosen and fitted in {row['choice.seconds']:.0f} s (2BE) and "
        f"{row['choice.seconds of kk']:.0f} s (KK)"
        for _, row in rows.iterrows()
    )
    verdict = f"not better at {', '.join(lost)}" if lost else "better at each N"
    notes = remarks(
        "synthetic-mapping", "errors", verdict=verdict, chosen=chosen, n_choose=n_choose
    )
    return table("Mean squared error", rows, columns, notes)


def _time_table(results: Sequence[Result]) -> Table:
    rows = by_size(results)
    shown = pd.DataFrame({"training bags": rows["n"]})
    for way, text in WAYS.items():
        for name in ("2be", "kk"):
            shown[f"{name.upper()}, {text}, ms"] = 1e3 * rows[f"seconds.{name}_{way}"]
        shown[f"ratio, {text}"] = rows[way]
    shown["ratio, paper"] = rows["n"].map(PAPER_RATIOS).astype(object)
    n_queries = rows["seconds.n_queries"][0]
    notes = remarks("synthetic-mapping", "times", n_queries=n_queries)
    notes += [_crossings(rows, way) for way in WAYS]
    if select(results, measure="time"):
        least = min(r.params["n_train"] for r in select(results, measure="kk"))
        notes += remarks("synthetic-mapping", "few", least=least)
    return whole_table("Time per query", shown, notes)


def _crossings(rows: pd.DataFrame, way: str) -> str:
    n, found = column(rows, "n"), column(rows, way)
    parts = []
    for level in (1, PAPER_RATIOS[1_000_000]):
        at = crossing(n, found, level)
        if at is not None:
            parts.append(f"{level}× at about {two_digits(at):,} training bags")
        else:
            side = "above" if found[0] >= level else "below"
            parts.append(f"{side} {level}× at all numbers measured")
    return f"KK's time over the 2BE's, {WAYS[way]}: {'; '.join(parts)}."
