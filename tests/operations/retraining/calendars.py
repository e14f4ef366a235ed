"""Years of daily gates on a stream without drift: how many have a false alarm.

``python -m tests.operations.retraining.calendars 2000`` measures what the changelog says.
"""

from __future__ import annotations

import sys

import numpy as np

from bagbasis.hypotheses.nulls.mean_difference import staged_p_values
from bagbasis.operations import DriftGate
from bagbasis.operations.retraining.settings import Spending

BAGS_PER_DAY = 12
N_DAYS = 365


def share_with_alarms(n_calendars: int, level: float, seed: int) -> float:
    """The share of calendars in which any gate of any day has p at most its level.

    Each day is compared with the day before, so neighbouring rounds share bags; the three gates
    see features of the bags, of their labels, and of both.
    """
    rng = np.random.default_rng(seed)
    return float(np.mean([_has_alarm(rng, level, seed + i) for i in range(n_calendars)]))


def _has_alarm(rng: np.random.Generator, level: float, seed: int) -> bool:
    gate, spending, levels = DriftGate(level=level, horizon=N_DAYS), Spending(), []
    for _ in range(N_DAYS):
        level, spending = spending.spend(gate)
        levels.append(level / 3)
    x, noise = rng.standard_normal((2, BAGS_PER_DAY, N_DAYS + 1))
    z = np.stack([np.sin(x), np.cos(x)], axis=2)
    label = np.sin(x) + noise
    gates = z, np.stack([np.sin(label), np.cos(label)], axis=2), noise[:, :, None] * z
    rows = np.concatenate([np.concatenate([item[:, :-1], item[:, 1:]]) for item in gates], axis=1)
    is_first = np.arange(2 * BAGS_PER_DAY) < BAGS_PER_DAY
    p = staged_p_values(rows, is_first, 99, seed, min(levels))[1]
    return bool((p.reshape(3, N_DAYS) <= levels).any())


if __name__ == "__main__":
    n = int(sys.argv[1])
    for level in (0.05, 0.2):
        share = share_with_alarms(n, level, seed=1)
        print(f"level {level}: {share:.4f} ± {(share * (1 - share) / n) ** 0.5:.4f} of {n} years")
