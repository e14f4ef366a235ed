"""Bets that new rows differ from a reference: capital that seldom grows by chance, over all rounds.

Testing by betting (Shekhar and Ramdas 2024): of each pair of a new row x and a reference row y that
no bet has seen, a player gets λ (g(x) − g(y)) per unit of capital, with g between −½ and ½ as he
learnt it from the pairs before. Without a difference that is 0 on average, whatever g and λ are. So
capital is a martingale that begins with 1 and is never below 0, and it reaches 1 / α with a chance
of at most α, in all rounds together (Ville).

A difference may begin at any time. So the capital of 1 is paid out over the rounds: a fraction
1 / log2(t + 1) − 1 / log2(t + 2) of it begins to play in round t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ...core.arrays import Floats
from ...core.saved import Saved

MEMORIES = np.array([4.0, 32.0, 256.0])  # rounds over which a bettor's estimates are averaged
# Λ: large stakes win where differences are large, small ones over many rounds.
STAKES = np.array([0.8, 0.4, 0.2, 0.1, 0.05])
PAYOFF_RANGE = 2.0  # standard deviations at which the payoff g is clipped
MAX_BLOCKS, _MIN_PAIRS = 4, 8  # of a round: players learn after each block


@dataclass(frozen=True, eq=False)
class Betting(Saved):
    """The capital of all players, and what they have learnt; leading axes are separate games.

    Attributes
    ----------
    n_rounds : int
    learnt : shape (..., M, p)
        Σ features of new rows less those of the reference, of each memory.
    centre, spread : shape (..., M)
        Centre and spread of the products of features with ``learnt``.
    log_capital : shape (..., M, L)
        Logarithm of the capital of the players of each memory and stake.
    """

    n_rounds: int
    learnt: Floats
    centre: Floats
    spread: Floats
    log_capital: Floats
    ARRAYS = ("learnt", "centre", "spread", "log_capital")

    @classmethod
    def begin(cls, n_features: int, games: tuple[int, ...] = ()) -> Betting:
        """Return the capital before the first round."""
        shape = (*games, len(MEMORIES))
        nothing = np.full((*shape, len(STAKES)), -np.inf)
        zeros = np.zeros(shape)
        return cls(0, np.zeros((*shape, n_features)), zeros, zeros, nothing)

    @property
    def log_wealth(self) -> Floats:
        """The logarithm of all capital, that which does not play yet among it, shape (...)."""
        waiting = -np.log(np.log2(self.n_rounds + 2))
        log_total: Floats = np.logaddexp(waiting, logsumexp(self.log_capital, axis=(-2, -1)))
        return log_total

    def forget(self, n_features: int) -> Betting:
        """Return the same capital for features of another kind, of which nothing is learnt."""
        new = Betting.begin(n_features, self.learnt.shape[:-2])
        return Betting(self.n_rounds, new.learnt, new.centre, new.spread, self.log_capital)

    def play(self, new: Floats, reference: Floats) -> Betting:
        """Return what is left after a round.

        Parameters
        ----------
        new : shape (..., n_pairs, a, p)
            Features of rows that no bet has seen; a pair is the means over a new rows and over b
            rows of the reference.
        reference : shape (..., n_pairs, b, p)
        """
        t = self.n_rounds + 1
        begins = 1 / np.log2(t + 1) - 1 / np.log2(t + 2)
        capital = np.logaddexp(self.log_capital, np.log(begins / (len(MEMORIES) * len(STAKES))))
        retained = 1 - 1 / MEMORIES
        learnt, centre, spread = (
            self.learnt * retained[:, None],
            self.centre * retained,
            self.spread * retained,
        )
        n_pairs, a, b = new.shape[-3], new.shape[-2], reference.shape[-2]
        n_blocks = min(MAX_BLOCKS, max(1, n_pairs // _MIN_PAIRS))
        for block in np.array_split(np.arange(n_pairs), n_blocks):
            at = slice(int(block[0]), int(block[-1]) + 1)
            x, y = new[..., at, :, :], reference[..., at, :, :]
            values = [_products(rows, learnt) for rows in (x, y)]
            gains = _bounded(values[0], centre, spread) - _bounded(values[1], centre, spread)
            capital = capital + np.log1p(gains[..., None] * STAKES).sum(axis=-3)
            gap = x.mean(axis=-2).sum(axis=-2) - y.mean(axis=-2).sum(axis=-2)
            learnt = learnt + a * b / (a + b) * gap[..., None, :]
            both = np.concatenate([_flat(_products(rows, learnt)) for rows in (x, y)], axis=-2)
            centre, spread = both.mean(axis=-2), PAYOFF_RANGE * both.std(axis=-2)
        return Betting(t, learnt, centre, spread, capital)


def pair_rows(new: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Return as many pairs as there can be, each of as many rows, shapes (n, a, p) and (n, b, p).

    Rows that are left over are in no pair.
    """
    n = min(len(new), len(reference))
    paired = [rows[: len(rows) // n * n].reshape(n, -1, rows.shape[1]) for rows in (new, reference)]
    return paired[0], paired[1]


def _products(rows: Floats, learnt: Floats) -> Floats:
    """Return the products of the features of rows with what is learnt, (..., n_pairs, a, M)."""
    flat = _flat(rows)
    products = flat @ np.swapaxes(learnt, -1, -2)
    return products.reshape(*rows.shape[:-1], learnt.shape[-2])


def _flat(values: Floats) -> Floats:
    """Join the axes of pairs and of rows of a pair."""
    return values.reshape(*values.shape[:-3], -1, values.shape[-1])


def _bounded(values: Floats, centre: Floats, spread: Floats) -> Floats:
    """Return the means of g over the rows of each pair, shape (..., n_pairs, M); 0 of no spread."""
    known = np.where(spread > 0, spread, np.inf)[..., None, None, :]
    g = np.clip((values - centre[..., None, None, :]) / known, -1, 1) / 2
    means: Floats = g.mean(axis=-2)
    return means
