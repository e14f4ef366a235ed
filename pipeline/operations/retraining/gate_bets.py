"""The state of a gate that bets: its capital, its kernels, and the bags that it has used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...core.arrays import Floats
from ...core.saved import Saved
from ...data.store.sampling import spread_rows
from ...hypotheses.kernels.scales import Scales
from ...hypotheses.two_samples.fused import CHOICE_ROWS
from .betting import Betting, pair_rows

N_FREQUENCIES = 16  # for each of the twenty kernels: 640 numbers per memory in the state
EFFECT_MEMORY = 0.75  # weight of the earlier rounds in the effect of this one
_KERNELS = ("gaussian", "laplacian")


@dataclass(frozen=True)
class RowsMade:
    """How the rows of a gate were made.

    Attributes
    ----------
    key : str
        Names the models that made them; of other ones nothing is learnt yet.
    are_features : bool
        Whether means of rows are compared; else rows by kernels.
    units_differ : bool
        Whether each column has a unit of its own.
    """

    key: str
    are_features: bool = False
    units_differ: bool = False


@dataclass(frozen=True, eq=False)
class GateBets(Saved):
    """State from which a gate continues in the next round.

    Attributes
    ----------
    first : int
        The first bag that came after the reference.
    used : int
        Bags before this one are in the reference no more.
    key : str
        Features from which rows are made; nothing is learnt yet from rows of other features.
    betting : Betting
    highest : float
        The largest logarithm of the capital so far.
    scales : Scales or None
        Kernels of the rows; None of rows that are features themselves.
    unit : tuple of float
        Divisor of each column of the rows.
    size : int or None
        Points that bags are thinned to.
    effect : (float, float)
        For the last rounds, the difference and the spread within.
    """

    first: int
    used: int
    key: str = ""
    betting: Betting | None = None
    highest: float = 0.0
    scales: Scales | None = None
    unit: tuple[float, ...] = ()
    size: int | None = None
    effect: tuple[float, float] = (0.0, 0.0)
    PARTS: ClassVar = {"betting": Betting, "scales": Scales}

    def play(self, new: Floats, reference: Floats, made: RowsMade) -> GateBets:
        """Return the gate after a round, from rows that no bet has seen."""
        key = made.key
        bets = self if key == self.key else replace(self, key=key, scales=None, unit=())
        if not made.are_features and bets.scales is None:
            both = np.concatenate([reference, new])
            unit = _units(both, made.units_differ)
            rows = spread_rows(both / np.array(unit), CHOICE_ROWS)
            if (rows == rows[0]).all():
                return self
            scales = Scales.choose(_KERNELS, rows, N_FREQUENCIES, 0)
            bets = replace(bets, unit=unit, scales=scales)
        x, y = (bets.features(rows) for rows in (new, reference))
        betting = bets.betting or Betting.begin(x.shape[1])
        if key != self.key:
            betting = betting.forget(x.shape[1])
        betting = betting.play(*pair_rows(x, y))
        gap, within = _difference(x, y)
        effect = (EFFECT_MEMORY * bets.effect[0] + gap, EFFECT_MEMORY * bets.effect[1] + within)
        highest = max(bets.highest, float(betting.log_wealth))
        return replace(bets, betting=betting, highest=highest, effect=effect)

    def features(self, rows: Floats) -> Floats:
        """Return features whose products are the mean of all kernels, each over its norm."""
        if self.scales is None:
            return rows
        sums = self.scales(rows / np.array(self.unit))
        norms = np.repeat(np.array(self.scales.norms), sums.shape[1] // len(self.scales.norms))
        features: Floats = sums / np.sqrt(norms * len(self.scales.norms))
        return features


def _units(rows: Floats, differ: bool) -> tuple[float, ...]:
    """Return the root mean square of each column around its mean, or of all of them."""
    squares = np.square(rows - rows.mean(axis=0))
    spread = squares.mean(axis=0 if differ else None) ** 0.5 * np.ones(rows.shape[1])
    return tuple(np.where(spread > 0, spread, 1.0).tolist())


def _difference(x: Floats, y: Floats) -> tuple[float, float]:
    """Return MMD_u² of two sets of features, and the spread within them."""
    n, m = len(x), len(y)
    sums, squares = (x.sum(axis=0), y.sum(axis=0)), (np.square(x).sum(), np.square(y).sum())
    own = (float(sums[0] @ sums[0]) - squares[0]) / (n * (n - 1))
    other = (float(sums[1] @ sums[1]) - squares[1]) / (m * (m - 1))
    gap = own + other - 2 * float(sums[0] @ sums[1]) / (n * m)
    within = (squares[0] + squares[1]) / (n + m) - (n * own + m * other) / (n + m)
    return float(gap), float(within)
