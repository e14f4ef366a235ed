"""`Recurrent`: statistical recurrent units beside gated ones, and what matters (004, ch. 7).

The paper's synthetic sequences with the same random search for each unit, and handwritten digits
pixel by pixel with parts of the unit taken away. MNIST, which the paper has, is not to be had
without a download: the digits are scikit-learn's, 64 pixels each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bagbasis import Bags

from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..data.recurrent import LENGTH, pixel_sequences, sru_sequences
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import select
from ..kit.notes import remarks
from ..kit.plots import GREEN, Curve, bars, lines

UNITS = ("sru", "gru", "lstm")
PRINTED = {"sru": 0.62, "gru": 21.72, "lstm": 161.62}  # table 7.2
NEARLY_ALL = (0.99999,)  # one scale, at which all points weigh nearly the same
SHORT = (0.0, 0.5, 0.9)
PARTS: dict[str, dict[str, Any]] = {
    "full": {},
    "iid": {"n_recurrent": 0, "scales": NEARLY_ALL},
    "recur": {"scales": NEARLY_ALL},
    "multi": {"n_recurrent": 0},
    "scales to .9": {"scales": SHORT},
    "scales to .99": {"scales": (*SHORT, 0.99)},
    "tanh": {"activation": "tanh"},
    "r_dims 5": {"n_recurrent": 5},
    "statistics 10": {"n_stats": 10},
    "units 10": {"n_units": 10},
}
PRINTED_ERRORS = {  # tables 7.4 to 7.7 and 7.3, of MNIST
    "full": 0.11, "iid": 0.88, "recur": 0.88, "multi": 0.63, "scales to .9": 0.79,
    "scales to .99": 0.21, "tanh": 0.18, "r_dims 5": 0.25, "statistics 10": 0.88, "units 10": 0.15,
}  # fmt: skip
N_PICTURED = 25


class Sizes(Scale):
    """See ``configs/experiments/recurrent.yaml``."""

    n_train: int
    n_validation: int
    n_test: int
    n_trials: int
    n_steps: int
    most_units: int
    standardize: bool
    n_digits: int
    n_digits_tested: int
    digit_steps: int
    digit_units: int
    parts: list[str]


class Recurrent(Experiment[Sizes]):
    """See the module; a point is one trial of the search, or one variant on digits."""

    name = "recurrent"
    title = "Statistical recurrent units"
    source = "004, ch. 7"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_train:,} + {s.n_validation:,} + {s.n_test:,} sequences of {LENGTH} points and "
            f"{s.n_trials} trials of {s.n_steps:,} steps per unit, for 3,200 + 400 + 400 and 100 "
            f"trials; {s.n_digits:,} digits of 64 pixels, {s.digit_steps:,} steps, for 60,000 of "
            "784 and 10,000 steps."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        sizes = {"n_train": s.n_train, "n_validation": s.n_validation, "n_test": s.n_test}
        more = {"n_steps": s.n_steps, "most_units": s.most_units, "seed": self.seed,
                "standardize": s.standardize}  # fmt: skip
        digits = {"n": s.n_digits, "n_test": s.n_digits_tested, "n_steps": s.digit_steps,
                  "n_units": s.digit_units, "seed": self.seed}  # fmt: skip
        return [
            Measure("trial", self._trial, "{unit} {trial}",
                    {"unit": UNITS, "trial": range(s.n_trials)}, {**sizes, **more}),
            Measure("digits", self._digits, "digits {part}", {"part": s.parts}, digits),
        ]  # fmt: skip

    def _trial(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the errors of a network with parameters that are drawn, and the last sequences."""
        from bagbasis.neural import NextPointRegressor

        rng = np.random.default_rng([self.seed, 1])
        cuts = np.cumsum([p["n_train"], p["n_validation"], p["n_test"]])
        x = sru_sequences(int(cuts[-1]), rng)
        parts = [Bags.from_list(list(part[:, :, None])) for part in np.split(x, cuts[:-1])]
        given = {**drawn(p, self.seed), "n_steps": p["n_steps"], "seed": self.seed % 2**32}
        model = NextPointRegressor(p["unit"], **given, standardize=p["standardize"])
        model.fit(parts[0], progress=progress)
        first = x[cuts[1] : cuts[1] + N_PICTURED].round(2).tolist() if not p["trial"] else []
        return {
            "validation": -model.score(parts[1]),
            "test": -model.score(parts[2]),
            "given": {key: getattr(model, key) for key in ("learning_rate", "n_units")},
            "sequences": first,
        }

    def _digits(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the error rate of a variant."""
        from bagbasis.neural import SequenceClassifier

        data = pixel_sequences(p["n"], p["n_test"], self.seed)
        base = {"n_units": p["n_units"], "n_stats": p["n_units"], "n_recurrent": p["n_units"] // 3}
        model = SequenceClassifier(
            **{**base, **PARTS[p["part"]]},
            n_steps=p["n_steps"],
            learning_rate=0.005,
            seed=self.seed,
        )
        train, test = (list(data[name][:, :, None]) for name in ("x", "x_test"))
        model.fit(train, data["y"], progress=progress)
        return {"error": 1 - model.score(test, data["y_test"]), "steps": model.n_steps_}

    def tables(self, results: Sequence[Result]) -> list[Table]:
        best = {
            unit: min(select(results, measure="trial", unit=unit), key=_validation)
            for unit in UNITS
        }
        rows = [
            [unit.upper(), best[unit].values["test"], PRINTED[unit],
             best[unit].values["validation"], best[unit].values["given"]["n_units"],
             sum(r.seconds for r in select(results, measure="trial", unit=unit))]
            for unit in UNITS
        ]  # fmt: skip
        columns = [
            "unit",
            "test MSE",
            "printed",
            "validation MSE",
            "units",
            "seconds of the search",
        ]
        ratio = best["sru"].values["test"] / best["gru"].values["test"]
        text = remarks(self.name, "synthetic", ratio=ratio, n=self.settings.n_trials)
        first = Table("The next point of sequences of an SRU", columns, rows, text)
        found = {r.params["part"]: r.values["error"] for r in select(results, measure="digits")}
        digits = [[part, error, PRINTED_ERRORS[part]] for part, error in found.items()]
        order = found["full"] < found["multi"] < found["iid"]
        text = remarks(self.name, "digits", holds=order, fails=not order)
        second = Table("Digits pixel by pixel: error rates", ["variant", "here", "printed, MNIST"],
                       digits, text)  # fmt: skip
        return [first, second]

    def draw(self, results: Sequence[Result]) -> None:
        [first, *_] = [r for r in results if r.values.get("sequences")]
        with self.picture("sequences.png", "Sequences of the ground truth", 1, 7.0) as (_, [axis]):
            t = np.arange(LENGTH)
            curves = [
                Curve(t, x, None, GREY, "-", more={"alpha": 0.7}) for x in first.values["sequences"]
            ]
            lines(axis, curves, "t", "x")
        with self.picture("trials.png", "Trials of the search", 1, 7.0) as (_, [axis]):
            curves = []
            for unit, color in zip(UNITS, (BLUE, ORANGE, GREEN), strict=True):
                errors = sorted(_validation(r) for r in select(results, measure="trial", unit=unit))
                curves.append(Curve(np.arange(1, len(errors) + 1), errors, unit.upper(), color))
            lines(axis, curves, "trials, the best first", "validation MSE", log="y", legend={})
        with self.picture("digits.png", "Digits pixel by pixel", 1, 9.0) as (_, [axis]):
            found = {r.params["part"]: r.values["error"] for r in select(results, measure="digits")}
            series = {
                "here": list(found.values()),
                "printed, MNIST": [PRINTED_ERRORS[k] for k in found],
            }
            bars(axis, list(found), series, "error rate", colors=(BLUE, GREY))


def drawn(p: Params, seed: int) -> dict[str, Any]:
    """Return parameters drawn as in §7.3; the first trial has the same middle ones for all units.

    Of the same law for each unit, and the same draws where units share a parameter.
    """
    rng = np.random.default_rng([seed, 2, p["trial"]])
    most = p["most_units"]
    given: dict[str, Any] = {
        "learning_rate": float(np.exp(rng.uniform(np.log(3e-3), np.log(3e-1)))),
        "decay": float(rng.uniform(0.5, 0.999)),
        "n_units": int(rng.integers(8, most + 1)),
        "n_stats": int(rng.integers(8, most + 1)),
        "n_recurrent": int(rng.integers(2, most // 4 + 2)),
    }
    if p["trial"] == 0:
        given.update(learning_rate=0.03, decay=0.7, n_units=most, n_stats=most,
                     n_recurrent=most // 4)  # fmt: skip
    steps = p["n_steps"]
    looks = {"decay_steps": max(1, steps // 8), "validate_every": max(1, steps // 20)}
    return {**given, **looks, "patience": 20, "clip": 1.0}


def _validation(result: Result) -> float:
    return float(result.values["validation"])
