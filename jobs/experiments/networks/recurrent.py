"""`Recurrent`: statistical recurrent units beside gated ones, and what matters (004, ch. 7).

The paper's synthetic sequences with the same search for each unit: a grid of learning rates and
sizes for a few steps, and the best of it for many. Handwritten digits pixel by pixel with parts of
the unit taken away. MNIST, which the paper has, is not to be had without a download: the digits are
scikit-learn's, 64 pixels each.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from bagbasis import Bags

from ...files import write_report
from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..data.recurrent import LENGTH, pixel_sequences, sru_sequences
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table, digest
from ..kit.frame import select
from ..kit.notes import remarks
from ..kit.plots import GREEN, Curve, bars, lines
from ..kit.verdicts import listing

UNITS = ("sru", "gru", "lstm")
RAW, SCALED = "as they are", "of variance 1"
VALUES = {RAW: False, SCALED: True}  # whether the estimator standardises them
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
    values: list[str]
    rates: list[float]
    units: list[int]
    trial_steps: int
    n_carried: int
    n_steps: int
    n_digits: int
    n_digits_tested: int
    digit_steps: int
    digit_units: int
    parts: list[str]


class Recurrent(Experiment[Sizes]):
    """See the module; a point is a trial, a network carried on, or one variant on digits."""

    name = "recurrent"
    title = "Statistical recurrent units"
    source = "004, ch. 7"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_train:,} + {s.n_validation:,} + {s.n_test:,} sequences of {LENGTH} points, "
            f"{len(s.rates) * len(s.units)} trials of {s.trial_steps:,} steps per unit, the best "
            f"{s.n_carried} again with {s.n_steps:,}, for 3,200 + 400 + 400 and 100 trials; "
            f"{s.n_digits:,} digits of 64 pixels, {s.digit_steps:,} steps, for 60,000 of 784 and "
            "10,000 steps."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        shared = {"n_train": s.n_train, "n_validation": s.n_validation, "n_test": s.n_test,
                  "trial_steps": s.trial_steps, "seed": self.seed}  # fmt: skip
        grid = {"rates": s.rates, "sizes": s.units, "n_steps": s.n_steps}
        digits = {"n": s.n_digits, "n_test": s.n_digits_tested, "n_steps": s.digit_steps,
                  "n_units": s.digit_units, "seed": self.seed}  # fmt: skip
        of = {"values": s.values, "unit": UNITS}
        return [
            Measure("trial", self._trial, "{unit} {values} {rate} {size}",
                    {**of, "rate": s.rates, "size": s.units}, shared),
            Measure("carried", self._carried, "{unit} {values} carried {place}",
                    {**of, "place": range(1, s.n_carried + 1)}, {**shared, **grid}),
            Measure("digits", self._digits, "digits {part}", {"part": s.parts}, digits),
        ]  # fmt: skip

    def _trial(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the validation error of one learning rate and size, and keep it for `_carried`."""
        key = {name: value for name, value in p.items() if name != "measure"}
        kept = self.out_dir / "trials" / f"{digest(key)}.json"
        if not kept.exists():
            model, parts = self._fitted(p, p["trial_steps"], progress)
            write_report(kept, {"validation": -model.score(parts[1])})
        return dict(json.loads(kept.read_text()))

    def _carried(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the errors of a unit's trial of that place with all steps, and some sequences."""
        shared = {k: p[k] for k in p if k not in ("measure", "place", "rates", "sizes", "n_steps")}
        trials = [{**shared, "rate": rate, "size": n} for rate in p["rates"] for n in p["sizes"]]
        trials.sort(key=lambda one: float(self._trial(one, progress)["validation"]))
        chosen = trials[p["place"] - 1]
        model, parts = self._fitted(chosen, p["n_steps"], progress)
        pictured = list(parts[2])[:N_PICTURED] if p["place"] == 1 else []
        return {
            "validation": -model.score(parts[1]),
            "test": -model.score(parts[2]),
            "rate": chosen["rate"],
            "size": chosen["size"],
            "sequences": [one[:, 0].round(2).tolist() for one in pictured],
        }

    def _fitted(self, p: Params, n_steps: int, progress: Callback) -> tuple[Any, list[Bags]]:
        """Return a network of a trial's rate and size, and training, validation and test bags."""
        from bagbasis.neural import NextPointRegressor

        rng = np.random.default_rng([self.seed, 1])
        cuts = np.cumsum([p["n_train"], p["n_validation"], p["n_test"]])
        x = sru_sequences(int(cuts[-1]), rng)
        parts = [Bags.from_list(list(part[:, :, None])) for part in np.split(x, cuts[:-1])]
        model = NextPointRegressor(
            unit=p["unit"], n_units=p["size"], n_stats=p["size"], n_recurrent=p["size"] // 4,
            learning_rate=p["rate"], decay=0.7, decay_steps=max(1, n_steps // 8), n_steps=n_steps,
            validate_every=max(1, n_steps // 20), patience=20, standardize=VALUES[p["values"]],
            seed=self.seed % 2**32,
        )  # fmt: skip
        return model.fit(parts[0], progress=progress), parts

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
        s = self.settings
        best = {(unit, v): _best(results, unit, v) for v in s.values for unit in UNITS}
        rows = [
            [unit.upper(), values, _test(one), PRINTED[unit] if values == RAW else None,
             _validation(one), one.values["rate"], one.values["size"],
             _seconds(results, unit, values)]
            for (unit, values), one in best.items()
        ]  # fmt: skip
        columns = ["unit", "values", "test MSE", "printed", "validation MSE", "learning rate",
                   "units", "seconds of the search"]  # fmt: skip
        ratio = {v: _test(best["sru", v]) / _test(best["gru", v]) for v in s.values}
        ahead = [
            unit.upper()
            for unit in UNITS[1:]
            if SCALED in s.values and _test(best[unit, SCALED]) < _test(best["sru", SCALED])
        ]
        text = remarks(
            self.name, "synthetic", ratio=ratio[RAW], scaled=ratio.get(SCALED),
            ahead=listing(ahead), n=len(s.rates) * len(s.units), carried=s.n_carried,
            few=s.trial_steps, many=s.n_steps, rates=listing([f"{rate:g}" for rate in s.rates]),
            sizes=listing(s.units),
        )  # fmt: skip
        first = Table("The next point of sequences of an SRU", columns, rows, text)
        found = {r.params["part"]: r.values["error"] for r in select(results, measure="digits")}
        digits = [[part, error, PRINTED_ERRORS[part]] for part, error in found.items()]
        order = found["full"] < found["multi"] < found["iid"]
        text = remarks(self.name, "digits", holds=order, fails=not order)
        second = Table("Digits pixel by pixel: error rates", ["variant", "here", "printed, MNIST"],
                       digits, text)  # fmt: skip
        return [first, second]

    def draw(self, results: Sequence[Result]) -> None:
        first = next(r for r in results if r.values.get("sequences"))
        with self.picture("sequences.png", "Sequences of the ground truth", 1, 7.0) as (_, [axis]):
            t = np.arange(LENGTH)
            curves = [
                Curve(t, x, None, GREY, "-", more={"alpha": 0.7}) for x in first.values["sequences"]
            ]
            lines(axis, curves, "t", "x")
        with self.picture("trials.png", "Trials of the search", 1, 7.0) as (_, [axis]):
            curves = []
            for unit, color in zip(UNITS, (BLUE, ORANGE, GREEN), strict=True):
                for values, line in zip(self.settings.values, ("o-", "o--"), strict=False):
                    found = select(results, measure="trial", unit=unit, values=values)
                    errors = sorted(map(_validation, found))
                    label = f"{unit.upper()}, {values}"
                    curves.append(Curve(np.arange(1, len(errors) + 1), errors, label, color, line))
            lines(axis, curves, "trials, the best first", "validation MSE", log="y", legend={})
        with self.picture("digits.png", "Digits pixel by pixel", 1, 9.0) as (_, [axis]):
            errors_of = {
                r.params["part"]: r.values["error"] for r in select(results, measure="digits")
            }
            series = {
                "here": list(errors_of.values()),
                "printed, MNIST": [PRINTED_ERRORS[k] for k in errors_of],
            }
            bars(axis, list(errors_of), series, "error rate", colors=(BLUE, GREY))


def _best(results: Sequence[Result], unit: str, values: str) -> Result:
    """Return the network of a unit that was carried on and has the least validation error."""
    return min(select(results, measure="carried", unit=unit, values=values), key=_validation)


def _seconds(results: Sequence[Result], unit: str, values: str) -> float:
    return sum(r.seconds for r in select(results, unit=unit, values=values))


def _test(result: Result) -> float:
    return float(result.values["test"])


def _validation(result: Result) -> float:
    return float(result.values["validation"])
