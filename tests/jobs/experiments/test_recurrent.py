"""`recurrent` at the smallest sizes, and the sequences of the paper's ground truth."""

from __future__ import annotations

import numpy as np

from bagbasis.jobs.experiments.data import recurrent


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
