"""`RectifyResiduals`: what a 2LPT simulation leaves of an accurate one, learnt in several ways.

004, §3.5.4, with sharper forces, copies of the input as baselines, and the symmetries of a cube.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from bagbasis import ProjectionEmbedding, RandomFourierFeatures, TripleBasisRegressor, evaluate

from ...terminal import Callback
from ..kit.experiment import Measure, Params
from ..kit.plots import GroupedBars
from .cube_symmetries import (
    PENALTY_EXPONENTS,
    SymmetricFeatures,
    paired_coefficients,
    residual_errors,
)
from .rectify_2lpt import Rectify2LPT, Sizes


class ResidualSizes(Sizes):
    """Sizes of rectify-2lpt, with the bandwidth and the number of frequencies of the residuals."""

    bandwidth: float
    n_frequencies: int
    timed: list[int] = Field(default_factory=list)


class RectifyResiduals(Rectify2LPT):
    """Points are the data, the 3BE, and errors of what is learnt otherwise."""

    name = "rectify-residuals"
    title = "What 2LPT leaves"
    source = "004, §3.5.4"
    kind = ResidualSizes
    pictures = (
        GroupedBars(file="r2.png", measure="residuals", y="*_mse", label="squared L2 distance"),
    )
    settings: ResidualSizes

    def measures(self) -> list[Measure]:
        s = self.settings
        data, fit, errors = super().measures()[:3]
        beside = {**errors.fixed, "bandwidth": s.bandwidth}
        more = {**beside, "n_frequencies": s.n_frequencies}
        return [
            data,
            fit,
            errors,
            Measure("residuals", self._residual_errors, "errors of residuals", {}, more),
            Measure("own", self._own_errors, "errors with own coefficients", {}, beside),
        ]

    def _own_errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure the 3BE of what a response is beyond its bag, of smoothed bags.

        The penalty is chosen on a whole box: the views of a box are not independent.
        """
        s, train = self.settings, self._store("train")
        model = TripleBasisRegressor(
            embedding=ProjectionEmbedding(**s.embedding, bandwidth=s.bandwidth),
            random_features=RandomFourierFeatures(
                n_features=s.n_features, scale_multiplier=s.scale_multipliers[0], seed=self.seed
            ),
            response_embedding=ProjectionEmbedding(**s.response_embedding),
            alpha="validation",
            alphas=train.n_bags * 10**PENALTY_EXPONENTS,
            validation_fraction=1 / s.train_boxes,
            baseline="own",
        ).fit(train, holdout={"fraction": 0, "groups": "box"}, progress=progress)
        errors = evaluate(model, self._store("test"), progress=progress).values()["densities"]
        return {"mse": errors["mse"], "alpha_a_bag": model.alpha_ / train.n_bags}

    def _residual_errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure copies of 2LPT, a linear ridge, and what all symmetries of the cube add."""
        spec, s = self._best[1].response_spec_, self.settings
        train, test = (paired_coefficients(self._store(x), spec) for x in ("train", "test"))
        n_last = len(train[0]) // s.train_boxes  # the last box chooses
        drawn = spec.indices, s.n_frequencies, s.embedding["max_norm"], s.bandwidth, self.seed
        return residual_errors(train, test, n_last, SymmetricFeatures.draw(train[0], *drawn))
