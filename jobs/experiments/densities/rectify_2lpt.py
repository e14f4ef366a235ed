"""`Rectify2LPT`: from the particles of a 2LPT simulation to the density of an accurate one.

004, §3.5.4, Table 3.1 and Figure 3.21, on simulations of our own (`data.nbody`). The boxes that
are predicted come from other random fields than those that are fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from bagbasis import (
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

from ...terminal import Callback
from ..data.nbody.dataset import NBody
from ..kit.experiment import Experiment, Measure, Params, Scale, short_name
from ..kit.plots import Curves, GroupedBars, Picture
from ..kit.timing import timed_in_turn


class Sizes(Scale):
    """Numbers of simulated boxes and of functions, and the penalties and widths that are tried."""

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
    """Points are the data, a fit a kernel width, the errors, and times over N."""

    name = "rectify-2lpt"
    title = "Rectifying 2LPT simulations"
    source = "004, §3.5.4"
    pictures: ClassVar[Sequence[Picture]] = (
        GroupedBars(file="errors.png", measure="errors", y="*mse", label="squared L2 distance"),
        Curves(
            file="times.png", measure="time", x="n_pairs", y="*_single", log="xy", label="seconds"
        ),
    )
    kind: ClassVar[type[Sizes]] = Sizes

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
        url = self.out_dir / "data" / f"{split}-{short_name(boxes.params)}.zarr"
        return generate(boxes, url, progress=progress)

    def _model(self, multiplier: float, progress: Callback | None = None) -> TripleBasisRegressor:
        """Return the 3BE of a kernel width, fitted where it is not there."""
        s, params = self.settings, self._model_params(multiplier)
        url = str(self.out_dir / "models" / f"{short_name({**params, 'seed': self.seed})}.zarr")
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
        models = [(width, self._model(width)) for width in self.settings.scale_multipliers]
        return min(models, key=lambda pair: float(pair[1].alpha_scores_.min()))

    def _smoother(self, bandwidth: float | str) -> KernelSmoother:
        """Return an LSE on the coefficients that the best 3BE has, of bags and of responses."""
        _, model = self._best
        return KernelSmoother(
            ProjectionEmbedding(**model.features_.embedding.to_dict()),
            bandwidth=bandwidth,
            response_embedding=ProjectionEmbedding(**model.response_spec_.to_dict()),
        )

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
        predicted = smoother.predict(test.read(), progress=progress)
        gaps = predicted[responses.positions] - truth
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


def n_labelled(store: BagStore, stop: int | None = None) -> int:
    """Count the first bags, or all, that have a response."""
    stop = store.n_bags if stop is None else stop
    return int((np.diff(store.response_offsets(0, stop)) > 0).sum())
