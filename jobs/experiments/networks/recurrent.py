"""`RecurrentNetworks`: statistical units compared with gated ones, and what matters (004, ch. 7).

The paper's synthetic sequences, with a search over learning rates and sizes in a few steps for each
unit; and scikit-learn's digits pixel by pixel, with parts of the unit taken away.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from bagbasis import Bags
from bagbasis.core.arrays import Floats

from ...files import write_report
from ..kit import Callback, Curves, Experiment, GroupedBars, Measure, Params, short_name

_SCALES = np.array([0.0, 0.5, 0.9, 0.99, 0.999])
LENGTH = 176
N_VIEWS = 13
TRUTH_SEED = 2071
"""Seed for drawing v and w, which the paper drew once and does not print.

Of 3,000 seeds one of three with which negative values go towards 0, and positive ones rise, fall to
0 and slope downward, as the paper says.
"""


def sru_sequences(n: int, rng: np.random.Generator, length: int = LENGTH) -> Floats:
    """Return sequences (n, length) of the ground truth of 004, §7.3.1, x_1 from N(0, 100²)."""
    fixed = np.random.default_rng(TRUTH_SEED)
    v = fixed.normal(0, 0.01, (N_VIEWS, 3 * len(_SCALES)))
    w = fixed.normal(0, 1, N_VIEWS)
    mu = np.zeros((3, len(_SCALES), n))  # of x₊, of x₋, of z; scales; sequences
    z, x = np.zeros(n), rng.normal(0, 100, n)
    out = np.empty((length, n))
    for t in range(length):
        out[t] = x
        far, farther = mu[:, 3], mu[:, 4]
        z = (
            _positive(z)
            + _positive(far[0] - farther[0] - 0.01)
            - _positive(farther[1] - far[1] - 0.01)
            - _positive(farther[0] - far[0] - 0.05)
            + _positive(far[1] - farther[1] - 0.05)
        )
        statistics = np.stack([_positive(x), _positive(-x), z])
        mu = _SCALES[None, :, None] * mu + (1 - _SCALES)[None, :, None] * statistics[:, None]
        x = x + w @ (v @ mu.reshape(-1, n))
    return out.T


def _positive(values: Floats) -> Floats:
    return np.maximum(values, 0)


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


class RecurrentNetworks(Experiment):
    name = "recurrent"
    title = "Statistical recurrent units"
    source = "004, ch. 7"
    pictures = (
        Curves("trials.png", "validation", measure="trial", x="rate", by="unit", panels="values",
               log="xy"),
        GroupedBars("digits.png", "error", measure="digits", x="part", label="error rate"),
    )  # fmt: skip

    def measures(self) -> list[Measure]:
        s = self.settings
        sizes = self.picked("n_train n_validation n_test trial_steps")
        shared = {**sizes, "seed": self.seed}
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
        from bagbasis.neural import SequenceClassifier

        images, classes = load_digits(return_X_y=True)
        order = np.random.default_rng(self.seed).permutation(len(images))[: p["n"] + p["n_test"]]
        x, y, n = list(images[order][:, :, None] / 16), classes[order], p["n"]  # 64 pixels of 0 … 1
        options = {"n_units": p["n_units"], "n_stats": p["n_units"],
                   "n_recurrent": p["n_units"] // 3, **PARTS[p["part"]]}  # fmt: skip
        model = SequenceClassifier(
            **options, n_steps=p["n_steps"], learning_rate=0.005, seed=self.seed
        )
        model.fit(x[:n], y[:n], progress=progress)
        return {"error": 1 - model.score(x[n:], y[n:]), "steps": model.n_steps_}
