"""`recurrent` at the smallest sizes, and the sequences of the paper's ground truth."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bagbasis.jobs.experiments.data import recurrent
from bagbasis.jobs.experiments.networks.recurrent import PARTS, UNITS, drawn
from tests.jobs.experiments.contract import Contract


class TestRecurrent(Contract):
    name = "recurrent"
    sizes: ClassVar = {
        "n_train": 16, "n_validation": 4, "n_test": 4, "n_trials": 1, "n_steps": 4,
        "most_units": 8, "n_digits": 60, "n_digits_tested": 20, "digit_steps": 4, "digit_units": 6,
    }  # fmt: skip

    def test_units_and_parts(self, report, results):
        """Each unit and each variant has an error."""
        assert {r.params.get("unit") for r in results} == {*UNITS, None}
        errors = [r.values["error"] for r in results if r.params["measure"] == "digits"]
        assert all(0 <= error <= 1 for error in errors)
        assert [row[0] for row in report["tables"][0]["rows"]] == ["SRU", "GRU", "LSTM"]


def test_ground_truth_by_its_equations():
    """One sequence, point by point, with averages as lists; negative values go towards 0."""
    x = recurrent.sru_sequences(3, np.random.default_rng(0), length=40)
    fixed = np.random.default_rng(recurrent.TRUTH_SEED)
    v, w = fixed.normal(0, 0.01, (13, 15)), fixed.normal(0, 1, 13)
    alphas = recurrent.SCALES
    for row in x:
        mu = {name: [0.0] * 5 for name in ("plus", "minus", "z")}
        z, value = 0.0, row[0]
        for t in range(40):
            assert abs(row[t] - value) < 1e-8 * max(1, abs(value))
            plus, minus = mu["plus"], mu["minus"]
            z = (
                max(z, 0)
                + max(plus[3] - plus[4] - 0.01, 0)
                - max(-minus[3] + minus[4] - 0.01, 0)
                - max(-plus[3] + plus[4] - 0.05, 0)
                + max(minus[3] - minus[4] - 0.05, 0)
            )
            seen = {"plus": max(value, 0), "minus": max(-value, 0), "z": z}
            for name, statistic in seen.items():
                mu[name] = [
                    a * m + (1 - a) * statistic for a, m in zip(alphas, mu[name], strict=True)
                ]
            value = value + w @ (v @ np.concatenate([mu[n] for n in ("plus", "minus", "z")]))
    many = recurrent.sru_sequences(200, np.random.default_rng(1))
    low = many[many[:, 0] < -50]
    assert np.median(np.abs(low[:, 25] / low[:, 0])) < 0.3


def test_trials_are_the_same_for_all_units():
    """What units share is drawn alike; the first trial is the middle."""
    p = {"trial": 3, "most_units": 32, "n_steps": 100}
    assert drawn({**p, "unit": "sru"}, 0) == drawn({**p, "unit": "gru"}, 0)
    assert drawn(p, 0) != drawn({**p, "trial": 4}, 0)
    assert set(PARTS) >= {"full", "multi", "iid"}
