"""`RectifyResiduals`: what a 2LPT simulation leaves of an accurate one, learnt in several ways.

004, §3.5.4, with sharper forces, copies of the input as baselines, and the symmetries of a cube.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from pydantic import Field

from bagbasis import ProjectionEmbedding, RandomFourierFeatures, TripleBasisRegressor, evaluate

from ...pictures import BLUE, GREY
from ...terminal import Callback
from ..kit.experiment import Measure, Params, Result, Table
from ..kit.frame import select, whole_table
from ..kit.notes import remarks
from ..kit.plots import bars
from .cube_symmetries import EXPONENTS, SymmetricFeatures, paired_coefficients, residual_errors
from .rectify_2lpt import Rectify2LPT, Sizes
from .rectify_2lpt_tables import PAPER_MSE, determination, gain

INPUT, AVERAGE = "2LPT", "average density"
ROWS = {  # what people see, by the measure and its value
    AVERAGE: ("errors", "average_mse"),
    INPUT: ("errors", "input_mse"),
    "2LPT times a number": ("residuals", "scaled_mse"),
    "2LPT, a number per coefficient": ("residuals", "copy_mse"),
    "linear ridge": ("residuals", "linear_mse"),
    "3BE": ("errors", "mse"),
    "3BE of residuals, smoothed bags": ("own", "mse"),
    "the same, 48 symmetries": ("residuals", "symmetric_mse"),
}


class ResidualSizes(Sizes):
    """See ``configs/experiments/rectify-residuals.yaml``."""

    bandwidth: float
    n_frequencies: int
    timed: list[int] = Field(default_factory=list)


class RectifyResiduals(Rectify2LPT):
    """See the module; points are the data, the 3BE, and errors of what is learnt otherwise."""

    name = "rectify-residuals"
    title = "What 2LPT leaves"
    source = "004, §3.5.4"
    kind = ResidualSizes
    settings: ResidualSizes

    @property
    def size(self) -> str:
        n = 16 * self.settings.n_frequencies
        return f"{super().size.removesuffix('.')}; D = {n:,} with symmetries."

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
            Measure("own", self._own_errors, "errors beside own coefficients", {}, beside),
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
            alphas=train.n_bags * 10**EXPONENTS,
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
        given = spec.indices, s.n_frequencies, s.embedding["max_norm"], s.bandwidth, self.seed
        return residual_errors(train, test, n_last, SymmetricFeatures.draw(train[0], *given))

    def tables(self, results: Sequence[Result]) -> list[Table]:
        mse = errors_by_row(results)
        rows = [
            {"": name, "MSE": mse[name], "R²": _r2(mse, name), "gain over 2LPT": _gain(mse, name)}
            for name in ROWS
        ]
        [errors], [found], [own] = (
            select(results, measure=m) for m in ("errors", "residuals", "own")
        )
        title = f"Squared L2 distance to the densities of {errors.values['n']:,} test cubes"
        paper = {name: determination(PAPER_MSE, name) for name in ("3BE", "2LPT")}
        more = remarks(
            "rectify-residuals", "errors", paper=paper, paper_gain=gain(PAPER_MSE),
            number=found.values["number"], best=_gain(mse, list(ROWS)[-1]),
            r2=_r2(mse, list(ROWS)[-1]), two=_r2(mse, INPUT), bandwidth=self.settings.bandwidth,
            lower=own.values["alpha_a_bag"],
        )  # fmt: skip
        return [whole_table(title, pd.DataFrame(rows), more)]

    def draw(self, results: Sequence[Result]) -> None:
        mse = errors_by_row(results)
        names = [name for name in ROWS if name != AVERAGE]
        title = "R² of densities of held-out boxes"
        with self.picture("r2.png", title, 1, 11.0, 4.8) as (_, [axis]):
            heights = {"R²": [_r2(mse, name) for name in names]}
            bars(axis, [n.replace(", ", ",\n") for n in names], heights, "R²", colors=(BLUE,),
                 fmt="%.3f")  # fmt: skip
            for name in ("3BE", "2LPT"):
                r2 = determination(PAPER_MSE, name)
                axis.axhline(r2, color=GREY, linestyle=":", label=f"004: {name} {r2:.3f}")
            axis.tick_params(axis="x", rotation=30)
            axis.legend()


def errors_by_row(results: Sequence[Result]) -> dict[str, float]:
    """Return the mean squared error of each of `ROWS`."""
    values = {r.params["measure"]: r.values for r in results}
    return {name: values[measure][key] for name, (measure, key) in ROWS.items()}


def _r2(mse: dict[str, float], name: str) -> float:
    return 1 - mse[name] / mse[AVERAGE]


def _gain(mse: dict[str, float], name: str) -> float:
    return _r2(mse, name) / _r2(mse, INPUT) - 1
