"""`RecurrentNetworks`: statistical units compared with gated ones, and what matters (004, ch. 7).

The paper's synthetic sequences with the same search for each unit: a grid of learning rates and
sizes for a few steps, and the best of it for many. Handwritten digits pixel by pixel with parts of
the unit taken away. MNIST, which the paper has, is not to be had without a download: the digits are
scikit-learn's, 64 pixels each.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bagbasis import Bags

from ...files import write_report
from ...terminal import Callback
from ..data.recurrent import pixel_sequences, sru_sequences
from ..kit.experiment import Experiment, Measure, Params, Scale, short_name
from ..kit.plots import Curves, GroupedBars

UNITS = ("sru", "gru", "lstm")
RAW, _SCALED = "as they are", "of variance 1"
VALUES = {RAW: False, _SCALED: True}  # whether the estimator standardises them
NEARLY_ALL = (0.99999,)  # one scale, at which all points weigh nearly the same
_SHORT = (0.0, 0.5, 0.9)
PARTS: dict[str, dict[str, Any]] = {
    "full": {},
    "iid": {"n_recurrent": 0, "scales": NEARLY_ALL},
    "recur": {"scales": NEARLY_ALL},
    "multi": {"n_recurrent": 0},
    "scales to .9": {"scales": _SHORT},
    "scales to .99": {"scales": (*_SHORT, 0.99)},
    "tanh": {"activation": "tanh"},
    "r_dims 5": {"n_recurrent": 5},
    "statistics 10": {"n_stats": 10},
    "units 10": {"n_units": 10},
}
_N_PICTURED = 25


class Sizes(Scale):
    """Numbers of sequences, the statistics and rates tried, and steps and units of the networks."""

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


class RecurrentNetworks(Experiment[Sizes]):
    """A point is a trial, a network carried on, or one variant on digits."""

    name = "recurrent"
    title = "Statistical recurrent units"
    source = "004, ch. 7"
    kind = Sizes
    pictures = (
        Curves(
            file="trials.png",
            measure="trial",
            x="rate",
            y="validation",
            by="unit",
            panels="values",
            log="xy",
        ),
        GroupedBars(file="digits.png", measure="digits", x="part", y="error", label="error rate"),
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
        trial_file = self.out_dir / "trials" / f"{short_name(key)}.json"
        if not trial_file.exists():
            model, parts = self._fitted(p, p["trial_steps"], progress)
            write_report(trial_file, {"validation": -model.score(parts[1])})
        return dict(json.loads(trial_file.read_text()))

    def _carried(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the errors of a unit's trial of that place with all steps, and some sequences."""
        shared = {k: p[k] for k in p if k not in ("measure", "place", "rates", "sizes", "n_steps")}
        trials = [{**shared, "rate": rate, "size": n} for rate in p["rates"] for n in p["sizes"]]
        trials.sort(key=lambda trial: float(self._trial(trial, progress)["validation"]))
        chosen = trials[p["place"] - 1]
        model, parts = self._fitted(chosen, p["n_steps"], progress)
        pictured = list(parts[2])[:_N_PICTURED] if p["place"] == 1 else []
        return {
            "validation": -model.score(parts[1]),
            "test": -model.score(parts[2]),
            "rate": chosen["rate"],
            "size": chosen["size"],
            "sequences": [sequence[:, 0].round(2).tolist() for sequence in pictured],
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
