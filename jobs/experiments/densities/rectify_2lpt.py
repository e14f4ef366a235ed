"""`Rectify2LPT`: from the particles of a 2LPT simulation to the density of an accurate one.

004, §3.5.4, Table 3.1 and Figure 3.21, on simulations of our own (`data.nbody`). Boxes that are
predicted come from other fields. `RectifyResiduals`: what 2LPT leaves of the accurate one, with
sharper forces, copies of the input as baselines, and the symmetries of a cube.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

from ..data.nbody.dataset import NBody
from ..kit import Callback, Curves, Experiment, GroupedBars, Measure, Params, Picture, short_name
from ..kit.kernel_kernel import N_QUERIES
from ..timing import timed_in_turn
from . import cube_symmetries as cube


class Rectify2LPT(Experiment):
    name = "rectify-2lpt"
    title = "Rectifying 2LPT simulations"
    source = "004, §3.5.4"
    pictures: ClassVar[Sequence[Picture]] = (
        GroupedBars("errors.png", "*mse", measure="errors", label="squared L2 distance"),
        Curves("times.png", "*_single", measure="time", x="n_pairs", log="xy", label="seconds"),
    )

    def measures(self) -> list[Measure]:
        s, n_all = self.settings, self._boxes("train").n_bags
        tested = self._tested()
        times = {**tested, "n_queries": N_QUERIES, "n_rounds": s.n_rounds}
        return [
            *self._fits_and_errors(),
            Measure("smoother", self._smoother_errors, "errors of LSE", {}, tested),
            Measure("time", self._times, "time {n_pairs} pairs",
                    {"n_pairs": [*(n for n in s.timed if n < n_all), n_all]}, times),
        ]  # fmt: skip

    def _fits_and_errors(self) -> list[Measure]:
        over = {"scale_multiplier": self.settings.scale_multipliers}
        boxes = {split: self._boxes(split).params for split in ("train", "test")}
        shared, label = self._model_params(), "3BE {scale_multiplier:g} median"
        return [
            Measure("data", self._data, "data", {}, boxes),
            Measure("fit", self._fit, label, over, shared),
            Measure("errors", self._errors, "errors", {}, self._tested()),
        ]

    def _tested(self) -> dict[str, Any]:
        """Return the parameters that decide errors: those of all models, and the test boxes."""
        widths = self.settings.scale_multipliers
        models = [{**self._model_params(), "scale_multiplier": width} for width in widths]
        return {"models": models, "test": self._boxes("test").params}

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

    def _model_params(self) -> dict[str, Any]:
        """Return what decides a model, apart from the kernel width."""
        chosen = self.picked("embedding response_embedding n_features alphas")
        return {"data": self._boxes("train").params, **chosen}

    def _store(self, split: str, progress: Callback | None = None) -> BagStore:
        boxes = self._boxes(split)
        url = self.out_dir / "data" / f"{split}-{short_name(boxes.params)}.zarr"
        return generate(boxes, url, progress=progress)

    def _model(self, multiplier: float, progress: Callback | None = None) -> TripleBasisRegressor:
        """Return the 3BE of a kernel width, fitted where it is not there."""
        key = {**self._model_params(), "scale_multiplier": multiplier, "seed": self.seed}
        url = str(self.out_dir / "models" / f"{short_name(key)}.zarr")
        if exists(url):
            return cast(TripleBasisRegressor, load_model(url))
        model = self._unfitted(multiplier, self.picked("alphas"))
        model.fit(self._store("train"), progress=progress)
        model.save(url, overwrite=True)
        return model

    def _unfitted(
        self, multiplier: float, options: Mapping[str, Any], bandwidth: float | None = None
    ) -> TripleBasisRegressor:
        s = self.settings
        second = {"n_features": s.n_features, "scale_multiplier": multiplier, "seed": self.seed}
        return TripleBasisRegressor(
            ProjectionEmbedding(**s.embedding, bandwidth=bandwidth),
            RandomFourierFeatures(**second),
            response_embedding=ProjectionEmbedding(**s.response_embedding),
            **options,
        )

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
        """Time predictions from points to coefficients, in memory: medians per bag.

        The 3BE is that of all pairs: its time does not depend on their number.
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
        batch = test.read(0, min(N_QUERIES, test.n_bags))
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


class RectifyResiduals(Rectify2LPT):
    name = "rectify-residuals"
    title = "What 2LPT leaves"
    source = "004, §3.5.4"
    pictures = (GroupedBars("r2.png", "*_mse", measure="residuals", label="squared L2 distance"),)

    def measures(self) -> list[Measure]:
        beside = {**self._tested(), **self.picked("bandwidth")}
        more = {**beside, **self.picked("n_frequencies")}
        return [
            *self._fits_and_errors(),
            Measure("residuals", self._residual_errors, "errors of residuals", {}, more),
            Measure("own", self._own_errors, "errors with own coefficients", {}, beside),
        ]

    def _own_errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure the 3BE of what a response is beyond its bag, of smoothed bags.

        The penalty is chosen on a whole box: the views of a box are not independent.
        """
        s, train = self.settings, self._store("train")
        options = {
            "alpha": "validation",
            "alphas": train.n_bags * 10**cube.PENALTY_EXPONENTS,
            "validation_fraction": 1 / s.train_boxes,
            "baseline": "own",
        }
        model = self._unfitted(s.scale_multipliers[0], options, s.bandwidth)
        model.fit(train, holdout={"fraction": 0, "groups": "box"}, progress=progress)
        errors = evaluate(model, self._store("test"), progress=progress).values()["densities"]
        return {"mse": errors["mse"], "alpha_a_bag": model.alpha_ / train.n_bags}

    def _residual_errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure copies of 2LPT, a linear ridge, and what all symmetries of the cube add."""
        spec, s = self._best[1].response_spec_, self.settings
        train, test = (cube.paired_coefficients(self._store(x), spec) for x in ("train", "test"))
        n_last = len(train[0]) // s.train_boxes  # the last box chooses
        drawn = spec.indices, s.n_frequencies, s.embedding["max_norm"], s.bandwidth, self.seed
        features = cube.SymmetricFeatures.draw(train[0], *drawn)
        return cube.residual_errors(train, test, n_last, features)


def n_labelled(store: BagStore, stop: int | None = None) -> int:
    """Count the first bags, or all, that have a response."""
    stop = store.n_bags if stop is None else stop
    return int((np.diff(store.response_offsets(0, stop)) > 0).sum())
