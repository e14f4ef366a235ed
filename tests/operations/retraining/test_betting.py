"""The betting rule: alone, against a loop; in all rounds of 1,000 games; and how soon it finds."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.core.saved import read_saved
from bagbasis.operations.retraining.betting import MEMORIES, STAKES, Betting, pair_rows

ALPHA = 0.05
FREQUENCIES = np.array([0.5, 1.0, 2.0, 4.0])
SHIFT = 0.54  # of normal numbers of variance 1
N_NEW = 20  # per round; three quarters of them are bet on
YEAR = 365


def features(values):
    """Sines and cosines, shape (..., 8)."""
    turns = values[..., None] * FREQUENCIES
    return np.concatenate([np.sin(turns), np.cos(turns)], axis=-1) / len(FREQUENCIES) ** 0.5


def wealth_by_loop(rounds):
    """The logarithm of the wealth after rounds of single pairs, one player after the other."""
    total = 1 / np.log2(len(rounds) + 2)
    for memory in MEMORIES:
        for stake in STAKES:
            capital, learnt, centre, spread = 0.0, np.zeros(8), 0.0, 0.0
            for t, (new, reference) in enumerate(rounds, 1):
                part = (1 / np.log2(t + 1) - 1 / np.log2(t + 2)) / (len(MEMORIES) * len(STAKES))
                capital += part
                selected = 1 - 1 / memory
                learnt, centre, spread = selected * learnt, selected * centre, selected * spread
                for x, y in zip(new, reference, strict=True):
                    if spread:
                        g = [np.clip((z @ learnt - centre) / spread, -1, 1) / 2 for z in (x, y)]
                        capital *= 1 + stake * (g[0].mean() - g[1].mean())
                weight = new.shape[1] * reference.shape[1]
                weight /= new.shape[1] + reference.shape[1]
                for x, y in zip(new, reference, strict=True):
                    learnt = learnt + weight * (x.mean(axis=0) - y.mean(axis=0))
                values = np.concatenate([new.reshape(-1, 8), reference.reshape(-1, 8)]) @ learnt
                centre, spread = values.mean(), 2 * values.std()
            total += capital
    return np.log(total)


def test_wealth_by_loops():
    """Players, payments and memory, of rounds of several sizes; games next to each other are played
    as each alone; a state of JSON goes on."""
    rng = np.random.default_rng(0)
    sizes = [(4, 1, 2), (7, 3, 1), (5, 1, 1), (2, 1, 2)]
    rounds = [
        (features(rng.standard_normal((2, n, a)) + 1), features(rng.standard_normal((2, n, b))))
        for n, a, b in sizes
    ]
    both, single = Betting.begin(8, (2,)), Betting.begin(8)
    for new, reference in rounds:
        both = both.play(new, reference)
        single = read_saved(Betting, single.play(new[0], reference[0]).to_dict())
    expected = [wealth_by_loop([(x[i], y[i]) for x, y in rounds]) for i in range(2)]
    assert both.log_wealth == pytest.approx(expected, rel=1e-12)
    assert float(single.log_wealth) == pytest.approx(expected[0], rel=1e-12)
    assert abs(expected[0]) > 0.05


def test_blocks_learn_within_a_round():
    """A large round finds by itself what its first block has learnt; one block cannot."""
    rng = np.random.default_rng(1)
    new, reference = features(rng.standard_normal((40, 1)) + 2), features(rng.normal(size=(40, 1)))
    assert Betting.begin(8).play(new, reference).log_wealth > 1
    few = Betting.begin(8).play(new[:8], reference[:8])
    assert few.log_wealth == pytest.approx(0, abs=1e-12)


def test_pairs():
    """Left-over rows are in no pair; all others are in one."""
    rows = np.arange(14.0).reshape(7, 2)
    new, reference = pair_rows(rows, rows[:3])
    assert new.shape == (3, 2, 2)
    assert reference.shape == (3, 1, 2)
    assert (new.reshape(-1, 2) == rows[:6]).all()


def first_alarms(n_games, n_rounds, shift_at, seed):
    """The round of the first alarm in each game, of 15 new rows and 30 of the reference a round."""
    rng = np.random.default_rng(seed)
    betting, result = Betting.begin(8, (n_games,)), np.full(n_games, n_rounds + 1)
    n = N_NEW * 3 // 4
    for t in range(1, n_rounds + 1):
        new = rng.standard_normal((n_games, n, 1)) + (SHIFT if t >= shift_at else 0)
        betting = betting.play(features(new), features(rng.standard_normal((n_games, n, 2))))
        result[(result > n_rounds) & (betting.log_wealth >= -np.log(ALPHA))] = t
    return result


@pytest.mark.long
def test_a_thousand_rounds_without_drift():
    """400 games of 1,000 rounds: at most 5 % of them ever have an alarm. New rows come as threes
    next to one of the reference."""
    rng = np.random.default_rng(0)
    betting, alarmed = Betting.begin(8, (400,)), np.zeros(400, bool)
    for _ in range(1000):
        rows = features(rng.standard_normal((400, 2, 4)))
        betting = betting.play(rows[:, :, :3], rows[:, :, 3:])
        alarmed |= betting.log_wealth >= -np.log(ALPHA)
    assert alarmed.mean() <= ALPHA
    assert betting.n_rounds == 1000


@pytest.fixture(scope="module")
def delay_of_union():
    """The rounds in which tests of each round at level .05 / 365 find half of the shifts; they know
    the reference's distribution."""
    rng = np.random.default_rng(5)
    mean = features(rng.standard_normal(200_000)).mean(axis=0)

    def distances(shift, n_times):
        rows = features(rng.standard_normal((n_times, 2000, N_NEW)) + shift).mean(axis=2)
        return ((rows - mean) ** 2).sum(axis=2).ravel()

    threshold = np.quantile(distances(0.0, 150), 1 - ALPHA / YEAR)
    power = (distances(SHIFT, 20) > threshold).mean()
    return np.log(0.5) / np.log1p(-power)


@pytest.mark.long
@pytest.mark.parametrize("shift_at", [1, 100])
def test_delay_beside_the_union_bound(shift_at, delay_of_union):
    """At a shift that tests of each round find in about 30 rounds, bets on three quarters of the
    new rows need no more, whether it begins at once or after 100 rounds."""
    assert 25 < delay_of_union < 40
    result = first_alarms(150, shift_at + 60, shift_at, 7)
    delays = result[result >= shift_at] - shift_at + 1
    assert np.median(delays) < delay_of_union
