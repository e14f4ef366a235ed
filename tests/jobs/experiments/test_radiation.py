"""`radiation` at small scale, its photons, and windows of energies."""

from __future__ import annotations

from itertools import product

import numpy as np

from bagbasis.jobs.experiments.regression.radiation import (
    FLOOR,
    choose_window,
    excess,
)


def test_window_and_excess_by_hand():
    """No other set of bins has a larger signal over the background's root; half of that is left."""
    rng = np.random.default_rng(5)
    template, mean = np.append(rng.random(6), 0), np.append(rng.random(6) + 0.1, 10)

    def ratio(chosen):
        return template[chosen].sum() / np.sqrt((mean[chosen] + FLOOR).sum())

    every = [np.array(of) for of in product([False, True], repeat=7) if any(of)]
    assert ratio(choose_window(template, mean)) == max(map(ratio, every))
    like_background = choose_window(np.ones(50), np.linspace(1.0, 1.1, 50))
    assert 20 <= like_background.sum() <= 26
    np.testing.assert_allclose(excess(np.array([9.0, 4.0]), np.array([4.0, 4.0])), [2.5, 0.0])
