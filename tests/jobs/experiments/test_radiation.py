"""`radiation` at small scale, its photons, and windows of energies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.photons import (
    BOX,
    MEMORY,
    PEAK,
    RATES,
    WANDER,
    background,
    edge,
    energies,
    inject,
    wander,
)
from bagbasis.jobs.experiments.regression.radiation import (
    FLOOR,
    choose_window,
    excess,
    spectra,
)


def test_lines_are_counted_whole_or_in_part():
    """Caesium: 7 % full width at half height, and an edge at 477 keV."""
    found = energies({662: 1}, 100_000, 0.0, np.random.default_rng(0))
    whole = found > 570
    np.testing.assert_allclose(whole.mean(), PEAK * (100 / 662) ** 0.5, atol=0.01)
    np.testing.assert_allclose(found[whole].mean(), 662, rtol=1e-3)
    np.testing.assert_allclose(2.355 * found[whole].std(), 0.07 * 662, rtol=0.03)
    np.testing.assert_allclose(edge(np.array(662.0)), 477.7, rtol=1e-3)
    assert np.quantile(found[~whole], 0.99) < 500


@pytest.mark.long
def test_rates_wander():
    """Variance 1, and a correlation that falls by e within the memory; photons as many."""
    series = wander(60_000, 2, np.random.default_rng(1))
    lag = round(MEMORY)
    np.testing.assert_allclose(series.var(axis=0), 1, atol=0.12)
    np.testing.assert_allclose((series[lag:] * series[:-lag]).mean(axis=0), np.exp(-1), atol=0.1)
    bags = background(20_000, np.random.default_rng(2))
    expected = np.sum(np.array(RATES) * np.exp(np.array(WANDER) ** 2 / 2))
    assert 0.85 * expected < bags.sizes.mean() < expected  # some are below what is counted
    assert BOX[0] <= bags.points.min() <= bags.points.max() <= BOX[1]


def test_injected_photons_come_to_the_others():
    """As many as are said, at the energies of the source."""
    bags = background(300, np.random.default_rng(3))
    made, added = inject(bags, "Am-241", np.full(300, 30.0), np.random.default_rng(4))
    np.testing.assert_array_equal(made.sizes - bags.sizes, added)
    assert 20 < added.mean() < 31
    more = (spectra(made) - spectra(bags)).sum(axis=0)
    assert (more >= 0).all()
    centre = np.average(np.linspace(*BOX, len(more)), weights=more) ** 2
    assert 50 < centre < 62


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
