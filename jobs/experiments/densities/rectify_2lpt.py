"""`Rectify2LPT`: from the particles of a 2LPT simulation to the density of an accurate one.

004, §3.5.4, Table 3.1 and Figure 3.21, on simulations of our own (`data.nbody`). The boxes that
are predicted come from other random fields than those that are fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from bagbasis import (
    Bags,
    BagStore,
    KernelSmoother,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    evaluate,
    load_model,
)
from bagbasis.data.storage.zarr_stores import exists
from bagbasis.datasets import generate
from bagbasis.densities import Densities

from ...pictures import BLUE, GREY, ORANGE, draw_densities
from ...terminal import Callback
from ..data.nbody.dataset import NBody
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table, digest
from ..kit.frame import column, select
from ..kit.plots import Curve, bars, lines
from ..kit.timing import timed_in_turn
from .rectify_2lpt_tables import (
    METHODS,
    PAPER_MSE,
    PAPER_PAIRS,
    PAPER_SECONDS,
    WAYS,
    determination,
    error_table,
    exponents,
    extrapolate,
    gain,
    mse_of_methods,
    time_rows,
    time_table,
)

STYLES = {"single": ("-", BLUE), "batch": ("--", ORANGE)}  # the colour is that of ratios
COORDINATES = [f"{axis} / 16 Mpc/h" for axis in "xyz"]
N_PICTURED = 3  # test cubes


class Sizes(Scale):
    """See ``configs/experiments/rectify-2lpt.yaml``."""

    train_boxes: int
    test_boxes: int
    train_views: int
    boxes: dict[str, Any]
    embedding: dict[str, Any]
    response_embedding: dict[str, Any]
    n_features: int
    scale_multipliers: list[float]
    alphas: list[float] | None
    timed: list[int]
    n_queries: int = 256
    n_rounds: int = 9


class Rectify2LPT(Experiment[Sizes]):
    """See the module; points are the data, a fit a kernel width, the errors, and times over N."""

    name = "rectify-2lpt"
    title = "Rectifying 2LPT simulations"
    source = "004, §3.5.4"
    kind: ClassVar[type[Sizes]] = Sizes

    @property
    def size(self) -> str:
        s, (train, test) = self.settings, (self._boxes("train"), self._boxes("test"))
        views = f", each cut {s.train_views} times," if s.train_views > 1 else ""
        return (
            f"{train.n_bags:,} training pairs of {train.n_boxes} boxes{views} and {test.n_bags:,} "
            f"test pairs of {test.n_boxes} other boxes, D = {s.n_features:,}; the paper has over "
            f"{PAPER_PAIRS:,}, 5,000 and 15,000."
        )

    def measures(self) -> list[Measure]:
        s, n_all = self.settings, self._boxes("train").n_bags
        data = {"train": self._boxes("train").params, "test": self._boxes("test").params}
        models = [self._model_params(multiplier) for multiplier in s.scale_multipliers]
        shared = {key: value for key, value in models[0].items() if key != "scale_multiplier"}
        tested = {"models": models, "test": data["test"]}
        times = {**tested, "n_queries": s.n_queries, "n_rounds": s.n_rounds}
        return [
            Measure("data", self._data, "data", {}, data),
            Measure("fit", self._fit, "3BE {scale_multiplier:g} median",
                    {"scale_multiplier": s.scale_multipliers}, shared),
            Measure("errors", self._errors, "errors", {}, tested),
            Measure("smoother", self._smoother_errors, "errors of LSE", {}, tested),
            Measure("time", self._times, "time {n_pairs} pairs",
                    {"n_pairs": [*(n for n in s.timed if n < n_all), n_all]}, times),
        ]  # fmt: skip

    # ------------------------------------------------------------------ stores and models

    def _boxes(self, split: str) -> NBody:
        """Return the dataset of a split; no two seeds share a box, nor do the splits."""
        s = self.settings
        train = split == "train"
        return NBody(
            **s.boxes,
            n_boxes=s.train_boxes if train else s.test_boxes,
            n_views=s.train_views if train else 1,
            seed=2 * self.seed + (not train),
        )

    def _model_params(self, multiplier: float) -> dict[str, Any]:
        s = self.settings
        return {
            "data": self._boxes("train").params,
            "embedding": s.embedding,
            "response_embedding": s.response_embedding,
            "n_features": s.n_features,
            "scale_multiplier": multiplier,
            "alphas": s.alphas,
        }

    def _store(self, split: str, progress: Callback | None = None) -> BagStore:
        """Return the boxes of a split, generated where they are not there."""
        boxes = self._boxes(split)
        url = self.out_dir / "data" / f"{split}-{digest(boxes.params)}.zarr"
        return generate(boxes, url, progress=progress)

    def _model(self, multiplier: float, progress: Callback | None = None) -> TripleBasisRegressor:
        """Return the 3BE of a kernel width, fitted where it is not there."""
        s, params = self.settings, self._model_params(multiplier)
        url = str(self.out_dir / "models" / f"{digest({**params, 'seed': self.seed})}.zarr")
        if exists(url):
            return cast(TripleBasisRegressor, load_model(url))
        model = TripleBasisRegressor(
            embedding=ProjectionEmbedding(**s.embedding),
            random_features=RandomFourierFeatures(
                n_features=s.n_features, scale_multiplier=multiplier, seed=self.seed
            ),
            response_embedding=ProjectionEmbedding(**s.response_embedding),
            alphas=s.alphas,
        ).fit(self._store("train"), progress=progress)
        model.save(url, overwrite=True)
        return model

    @cached_property
    def _best(self) -> tuple[float, TripleBasisRegressor]:
        """The kernel width of the least score, and its 3BE."""
        found = [(width, self._model(width)) for width in self.settings.scale_multipliers]
        return min(found, key=lambda pair: float(pair[1].alpha_scores_.min()))

    def _smoother(self, bandwidth: float | str) -> KernelSmoother:
        """Return an LSE on the coefficients that the best 3BE has, of bags and of responses."""
        _, model = self._best
        return KernelSmoother(
            ProjectionEmbedding(**model.features_.embedding.to_dict()),
            bandwidth=bandwidth,
            response_embedding=ProjectionEmbedding(**model.response_spec_.to_dict()),
        )

    # ------------------------------------------------------------------ what is measured

    def _data(self, p: Params, progress: Callback) -> dict[str, Any]:
        values: dict[str, int] = {}
        for split in ("train", "test"):
            store = self._store(split, progress)
            values |= {f"n_{split}": store.n_bags, f"n_{split}_labelled": n_labelled(store)}
        return values

    def _fit(self, p: Params, progress: Callback) -> dict[str, Any]:
        model = self._model(p["scale_multiplier"], progress)
        fitted: dict[str, Any] = model.report_
        return {
            "score": float(model.alpha_scores_.min()),
            "alpha_a_bag": model.alpha_ / fitted["n_bags_fitted"],
            "n_pairs": fitted["n_bags_fitted"],
            "n_inputs": model.features_.embedding.n_features,
            "n_outputs": model.response_spec_.n_features,
            "seconds": fitted["seconds"],
        }

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        multiplier, model = self._best
        errors = evaluate(model, self._store("test"), progress=progress).values()["densities"]
        return {**errors, "scale_multiplier": multiplier}

    def _smoother_errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure the error of the LSE on the test pairs of the 3BE."""
        train, test = self._store("train"), self._store("test")
        smoother = self._smoother("loo").fit(train, progress=progress)
        responses, spec = test.responses(0, test.n_bags), smoother.response_spec_
        truth = np.empty((len(responses.positions), spec.n_features))
        spec.embed(responses.present, truth)
        gaps = smoother.predict(test, progress)[responses.positions] - truth
        mse = float((gaps**2).sum(axis=1).mean())
        return {"n": len(truth), "mse": mse, "bandwidth": smoother.bandwidth_}

    def _times(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Time predictions from points to coefficients, everything in memory: medians per bag.

        The 3BE is that of all pairs: what it costs does not depend on their number. Nor does what
        the smoother costs depend on its bandwidth.
        """
        (_, model), train, n = self._best, self._store("train"), p["n_pairs"]
        second = model.features_.second
        assert second is not None
        smoother = self._smoother(second.scale)
        if n < train.n_bags:
            smoother.fit(train.read(0, n), responses=train.responses(0, n))
        else:
            smoother.set_params(in_memory=True).fit(train)
        test = self._store("test")
        batch = test.read(0, min(self.settings.n_queries, test.n_bags))
        calls = {
            "lse_batch": lambda: smoother.predict(batch),
            "3be_batch": lambda: model.predict(batch),
            "lse_single": lambda: smoother.predict(batch[:1]),
            "3be_single": lambda: model.predict(batch[:1]),
        }
        seconds = timed_in_turn(calls, self.settings.n_rounds)
        n_bags = {name: len(batch) if name.endswith("batch") else 1 for name in calls}
        return {
            "n_pairs": n_labelled(train, n),
            "n_queries": len(batch),
            **{name: seconds[name] / n_bags[name] for name in calls},
        }

    # ------------------------------------------------------------------ tables and pictures

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [error_table(results), time_table(time_rows(results))]

    def draw(self, results: Sequence[Result]) -> None:
        self._draw_errors(results)
        self._draw_slices()
        self._draw_times(time_rows(results))

    def _draw_errors(self, results: Sequence[Result]) -> None:
        """Draw the MSE over that of the average density, ours beside the paper's."""
        ours, [found] = mse_of_methods(results), select(results, measure="errors")
        heights = {
            f"{label}: R² of 3BE {determination(mse, '3BE'):.3f}, of 2LPT "
            f"{determination(mse, '2LPT'):.3f} ({gain(mse):+.0%})": [
                mse[method] / mse["AD"] for method in METHODS
            ]
            for label, mse in (("here", ours), ("004", PAPER_MSE))
        }
        n = found.values["n"]
        title = f"Error of predicted densities on {n:,} cubes of held-out boxes"
        with self.picture("errors.png", title, 1, 8.0, 4.6) as (_, [axis]):
            label = "noise of a Poisson sample of as many particles"
            noise = found.values["noise_mse"] / ours["AD"]
            axis.axhline(noise, color=ORANGE, linestyle=":", label=label)
            bars(axis, list(METHODS.values()), heights,
                 "MSE / MSE of the average density (1 − R²)", colors=(BLUE, GREY),
                 fmt="%.3f")  # fmt: skip
            axis.set_ylim(0, 1.45)

    def _draw_slices(self) -> None:
        """Draw slices of cubes as in 004, Figure 3.21."""
        (_, model), store = self._best, self._store("test")
        spec = model.response_spec_
        present = np.flatnonzero(np.diff(store.response_offsets(0, store.n_bags)) > 0)
        rows = present[np.linspace(0, len(present) - 1, N_PICTURED).astype(int)].tolist()
        bags = Bags.from_list([store.read(row, row + 1)[0] for row in rows])
        answers = Bags.from_list([store.responses(row, row + 1).points for row in rows])

        def densities(points: Bags) -> Densities:
            coefficients = np.empty((len(points), spec.n_features))
            spec.embed(points, coefficients)
            return Densities(coefficients, spec.indices, spec.basis, spec.box)

        columns = {
            "input: 2LPT": densities(bags),
            "output: particle mesh": densities(answers),
            "predicted: 3BE": model.densities(bags),
        }
        titles = [f"test cube {row}" for row in rows]
        path = draw_densities(self.out_dir / "slices.png", columns, titles, COORDINATES)
        self.pictures.append(path)

    def _draw_times(self, rows: pd.DataFrame) -> None:
        """Draw seconds per bag, and their ratio, over the number of training pairs."""
        seconds, ratios, n = [], [], column(rows, "n_pairs")
        reach = [n[-1], PAPER_PAIRS]
        for way, text in WAYS.items():
            style, color = STYLES[way]
            lse, three_be = rows[f"lse_{way}"], rows[f"3be_{way}"]
            of_lse, of_ratio = exponents(rows, way)
            far = [extrapolate(rows, way, pairs) for pairs in reach]
            label = f"LSE, {text} (∝ N^{of_lse:.2f})"
            seconds.append(Curve(n, lse, label, ORANGE, f"o{style}"))
            seconds.append(Curve(n, three_be, f"3BE, {text}", BLUE, f"s{style}"))
            seconds.append(Curve(reach, [at[0] for at in far], None, ORANGE, ":"))
            seconds.append(Curve(reach, [at[1] for at in far], None, BLUE, ":"))
            label = f"{text} (∝ N^{of_ratio:.2f})"
            ratios.append(Curve(n, rows[f"ratio_{way}"], label, color, f"o{style}"))
            beyond = [at[0] / at[1] for at in far]
            label = f"extrapolated, not measured: {beyond[1]:,.0f}×"
            ratios.append(Curve(reach, beyond, label, color, ":"))
        seconds.append(Curve([], [], "extrapolated, not measured", GREY, ":"))
        slow, fast = PAPER_SECONDS["LSE"], PAPER_SECONDS["3BE"]
        seconds.append(Curve([PAPER_PAIRS], [slow], "LSE in 004: 4.977 s", ORANGE, "*"))
        seconds.append(Curve([PAPER_PAIRS], [fast], "3BE in 004: 0.009 s", BLUE, "*"))
        label = f"004: {slow / fast:.0f}×, against its own smoother"
        ratios.append(Curve([PAPER_PAIRS], [slow / fast], label, GREY, "*"))
        title = "Prediction time, points in memory to coefficients of the density"
        with self.picture("times.png", title, 2, 12.5, 5.2) as (_, [left, right]):
            lines(left, seconds, "training pairs N", "seconds per bag", log="xy")
            lines(right, ratios, "training pairs N", "time of the LSE / time of the 3BE", log="xy")


def n_labelled(store: BagStore, stop: int | None = None) -> int:
    """Count the first bags, or all, that have a response."""
    stop = store.n_bags if stop is None else stop
    return int((np.diff(store.response_offsets(0, stop)) > 0).sum())
