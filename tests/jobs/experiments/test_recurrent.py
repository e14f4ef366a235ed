"""`recurrent` at the smallest sizes, and the sequences of the paper's ground truth."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bagbasis.jobs.experiments.data import recurrent
from bagbasis.jobs.experiments.kit.frame import select
from bagbasis.jobs.experiments.kit.runner import read_report
from bagbasis.jobs.experiments.networks.recurrent import PARTS, RAW, UNITS, VALUES
from bagbasis.jobs.experiments.results import RESULTS
from tests.jobs.experiments.contract import Contract


class TestRecurrent(Contract):
    name = "recurrent"
    sizes: ClassVar = {
        "n_train": 16, "n_validation": 4, "n_test": 4, "units": [4, 8], "trial_steps": 2,
        "n_steps": 4, "n_digits": 60, "n_digits_tested": 20, "digit_steps": 4, "digit_units": 6,
    }  # fmt: skip

    def test_units_and_parts(self, report, results):
        """Each unit and each variant has an error."""
        assert {r.params.get("unit") for r in results} == {*UNITS, None}
        errors = [r.values["error"] for r in results if r.params["measure"] == "digits"]
        assert all(0 <= error <= 1 for error in errors)
        rows = report["tables"][0]["rows"]
        assert [row[0] for row in rows] == ["SRU", "GRU", "LSTM"] * len(VALUES)
        assert [row[1] for row in rows[::3]] == list(VALUES)

    def test_best_trial_is_carried_on(self, results):
        """The size with the least validation error after the few steps, for each unit alike."""
        for unit in UNITS:
            for values in VALUES:
                of = {"unit": unit, "values": values}
                trials = select(results, measure="trial", **of)
                assert [r.params["size"] for r in trials] == [4, 8]
                best = min(trials, key=lambda r: r.values["validation"])
                [carried] = select(results, measure="carried", **of)
                assert carried.values["size"] == best.params["size"]
                assert carried.values["validation"] != best.values["validation"]


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


def test_kept_search_is_the_papers_order():
    """SRU below the printed error, and a fifth of the GRU's of the same search at most."""
    rows = read_report(RESULTS / "recurrent")[0]["tables"][0]["rows"]
    test = {row[0]: row[2] for row in rows if row[1] == RAW}
    assert test["SRU"] <= 0.62
    assert test["SRU"] <= test["GRU"] / 5
    assert set(PARTS) >= {"full", "multi", "iid"}
