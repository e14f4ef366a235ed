"""`Rectify2LPT`: from the particles of a 2LPT simulation to the density of an accurate one.

004, §3.5.4, Table 3.1 and Figure 3.21, on simulations of our own (`datasets.nbody`). The boxes
that are predicted come from other random fields than those that are fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from bagbasis import (
    BagStore,
    KernelSmoother,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    load_model,
)
from bagbasis.datasets import generate
from bagbasis.evaluation import evaluate
from bagbasis.regression.encoding import ResponseCoefficients
from bagbasis.storage.zarr_stores import exists

from ..terminal import Callback
from .data import NBody
from .experiment import Experiment, Point, Result, Table, digest
from .rectify_2lpt_pictures import draw_errors, draw_slices, draw_times
from .rectify_2lpt_settings import SETTINGS, Settings
from .rectify_2lpt_tables import error_table, time_table
from .timing import timed_in_turn

PAPER_PAIRS = 900_000
N_PICTURED = 3


class Rectify2LPT(Experiment[Settings]):
    """See the module; points are the data, a fit a kernel width, the errors, and times over N."""

    name = "rectify-2lpt"
    title = "Rectifying 2LPT simulations"
    source = "004, §3.5.4"
    scales = SETTINGS

    @property
    def size(self) -> str:
        s, (train, test) = self.settings, (self._boxes("train"), self._boxes("test"))
        views = f", each cut {s.train_views} times," if s.train_views > 1 else ""
        return (
            f"{train.n_bags:,} training pairs of {train.n_boxes} boxes{views} and {test.n_bags:,} "
            f"test pairs of {test.n_boxes} other boxes, D = {s.n_features:,}; the paper has over "
            f"{PAPER_PAIRS:,}, 5,000 and 15,000."
        )

    def points(self) -> list[Point]:
        s = self.settings
        n_all = self._boxes("train").n_bags
        data: dict[str, Any] = {
            "train": self._boxes("train").params,
            "test": self._boxes("test").params,
        }
        models = [self._model_params(multiplier) for multiplier in s.scale_multipliers]
        times = {"models": models, "test": data["test"], "n_queries": s.n_queries}
        times["n_rounds"] = s.n_rounds
        return [
            Point("data", {"measure": "data", **data}),
            *[
                Point(f"3BE {model['scale_multiplier']:g} median", {"measure": "fit", **model})
                for model in models
            ],
            Point("errors", {"measure": "errors", "models": models, "test": data["test"]}),
            Point("errors of LSE", {"measure": "smoother", "models": models, "test": data["test"]}),
            *[
                Point(f"time {n} pairs", {"measure": "time", "n_pairs": n, **times})
                for n in [*(n for n in s.timed if n < n_all), n_all]
            ],
        ]

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        kind = point.params["measure"]
        if kind == "data":
            return self._data(progress)
        if kind == "fit":
            return self._fit(point.params["scale_multiplier"], progress)
        if kind == "errors":
            return self._errors(progress)
        if kind == "smoother":
            return self._smoother_errors(progress)
        return self._times(point.params["n_pairs"])

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [error_table(results, PAPER_PAIRS), time_table(results, PAPER_PAIRS)]

    def draw(self, results: Sequence[Result]) -> list[Path]:
        model, test = self._best_model, self._store("test")
        return [
            draw_errors(self.out_dir / "errors.png", results),
            draw_slices(self.out_dir / "slices.png", model, test, N_PICTURED),
            draw_times(self.out_dir / "times.png", results, PAPER_PAIRS),
        ]

    # ------------------------------------------------------------------ stores and models

    def _boxes(self, split: str) -> NBody:
        """The dataset of a split; no two seeds share a box, nor do the splits."""
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
        """The boxes of a split, generated where they are not there."""
        boxes = self._boxes(split)
        url = self.out_dir / "data" / f"{split}-{digest(boxes.params)}.zarr"
        return generate(boxes, url, progress=progress)

    def _model(self, multiplier: float, progress: Callback | None = None) -> TripleBasisRegressor:
        """The 3BE of a kernel width, fitted where it is not there."""
        params = self._model_params(multiplier)
        url = str(self.out_dir / "models" / f"{digest({**params, 'seed': self.seed})}.zarr")
        if exists(url):
            return cast(TripleBasisRegressor, load_model(url))
        model = TripleBasisRegressor(
            embedding=ProjectionEmbedding(**params["embedding"]),
            random_features=RandomFourierFeatures(
                params["n_features"], scale_multiplier=multiplier, seed=self.seed
            ),
            response_embedding=ProjectionEmbedding(**params["response_embedding"]),
            alphas=params["alphas"],
        ).fit(self._store("train"), progress=progress)
        model.save(url, overwrite=True)
        return model

    @cached_property
    def _best(self) -> tuple[float, TripleBasisRegressor]:
        """The kernel width of the least score, and its 3BE."""
        found = [(width, self._model(width)) for width in self.settings.scale_multipliers]
        return min(found, key=lambda pair: float(pair[1].alpha_scores_.min()))

    @property
    def _best_model(self) -> TripleBasisRegressor:
        return self._best[1]

    def _smoother(self, model: TripleBasisRegressor, bandwidth: float | str) -> KernelSmoother:
        """An LSE on the coefficients that the model has, of bags and of responses."""
        return KernelSmoother(
            ProjectionEmbedding(**model.features_.embedding.to_dict()),
            bandwidth=bandwidth,
            response_embedding=ProjectionEmbedding(**model.response_spec_.to_dict()),
        )

    # ------------------------------------------------------------------ points

    def _data(self, progress: Callback) -> dict[str, Any]:
        values: dict[str, int] = {}
        for split in ("train", "test"):
            store = self._store(split, progress)
            values[f"n_{split}"] = store.n_bags
            labelled = int((np.diff(store.response_offsets(0, store.n_bags)) > 0).sum())
            values[f"n_{split}_labelled"] = labelled
        return values

    def _fit(self, multiplier: float, progress: Callback) -> dict[str, Any]:
        model = self._model(multiplier, progress)
        fitted: dict[str, Any] = model.report_
        return {
            "score": float(model.alpha_scores_.min()),
            "alpha_a_bag": model.alpha_ / fitted["n_bags_fitted"],
            "n_pairs": fitted["n_bags_fitted"],
            "n_inputs": model.features_.embedding.n_features,
            "n_outputs": model.response_spec_.n_features,
            "seconds": fitted["seconds"],
        }

    def _errors(self, progress: Callback) -> dict[str, Any]:
        multiplier, model = self._best
        errors = evaluate(model, self._store("test"), progress=progress).values()["densities"]
        return {**errors, "scale_multiplier": multiplier}

    def _smoother_errors(self, progress: Callback) -> dict[str, Any]:
        """Of the LSE, on the same test pairs as those of the 3BE."""
        train, test = self._store("train"), self._store("test")
        smoother = self._smoother(self._best_model, "loo").fit(train, progress=progress)
        responses = test.responses(0, test.n_bags)
        rows = responses.positions
        truth, _ = ResponseCoefficients(smoother.response_spec_).rows(responses, rows)
        gaps = smoother.predict(test, progress)[rows] - truth
        return {
            "n": len(rows),
            "mse": float((gaps**2).sum(axis=1).mean()),
            "bandwidth": smoother.bandwidth_,
        }

    def _times(self, n_pairs: int) -> dict[str, Any]:
        """Medians of seconds a bag, from points to coefficients, everything in memory.

        The 3BE is that of all pairs: what it costs does not depend on their number. Nor does what
        the smoother costs depend on its bandwidth.
        """
        model, train, test = self._best_model, self._store("train"), self._store("test")
        fourier = model.features_.fourier
        assert fourier is not None
        smoother = self._smoother(model, fourier.scale)
        if n_pairs < train.n_bags:
            smoother.fit(train.read(0, n_pairs), responses=train.responses(0, n_pairs))
        else:
            smoother.set_params(in_memory=True).fit(train)
        batch = test.read(0, min(self.settings.n_queries, test.n_bags))
        calls = {
            "lse_batch": lambda: smoother.coefficients(batch),
            "3be_batch": lambda: model.coefficients(batch),
            "lse_single": lambda: smoother.coefficients(batch[:1]),
            "3be_single": lambda: model.coefficients(batch[:1]),
        }
        seconds = timed_in_turn(calls, self.settings.n_rounds)
        bags = {name: len(batch) if name.endswith("batch") else 1 for name in calls}
        return {
            "n_pairs": smoother.training_.n_bags,
            "n_queries": len(batch),
            **{name: seconds[name] / bags[name] for name in calls},
        }
