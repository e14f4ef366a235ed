"""The penalties that are tried: all of a given grid, or as few as possible of the default grid.

The default penalties are n · 10^(i/2), where trace(ZᵀZ) = n for paired random features. The score
is smooth in log λ. The search begins where a part of the problem has its least score, and goes
downhill until both neighbours are worse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ...core.arrays import Floats, Integers
from ...core.errors import DataError, warn

HIGHEST = 2.0  # exponent of n: larger penalties leave nothing but the mean
# Least exponent of n. Smaller penalties are lost in the rounding of float32 sums, and solutions
# for them are so long that the rounding of float32 features shows in predictions.
LOWEST = {"float64": -12.0, "float32": -9.0, "float32 sums": -7.0}

# Fraction of the score: a smaller gain from one penalty to the next counts as none. With 1,000 bags
# the score itself is known to 5 %.
_MIN_RELATIVE_GAIN = 1e-2
# Or of the variance of the labels, which scores are in units of: where a model leaves nearly
# nothing unexplained, less is no matter to warn of.
MIN_GAIN = 5e-3


@dataclass(frozen=True)
class Penalties:
    """Penalties to try; the default penalties are in ascending order.

    Attributes
    ----------
    values : float64, shape (n,)
    searched : bool
        Whether a search may skip penalties.
    near : float, optional
        Penalty at which a search begins; None: the best penalty of a part of the problem.
    """

    values: Floats
    searched: bool = False
    near: float | None = None

    @classmethod
    def default(cls, n_rows: float, precision: str, is_summed: bool) -> Penalties:
        """Return two values per decade up to n · 10², from the least that the precision allows."""
        sums = " sums" if is_summed and precision == "float32" else ""
        exponents = np.arange(LOWEST[precision + sums], HIGHEST + 0.25, 0.5)
        return cls((n_rows or 1) * 10.0**exponents, searched=True)

    def __len__(self) -> int:
        """Count the penalties."""
        return len(self.values)

    def times(self, factor: float) -> Penalties:
        """Return each penalty times a factor."""
        return Penalties(self.values * factor, self.searched)


@dataclass(frozen=True)
class Path:
    """Penalties that were tried, ascending where they were searched, and their scores."""

    alphas: Floats
    scores: Floats

    @property
    def best(self) -> float:
        """The penalty with the least score; the largest penalty if all scores are infinite.

        Raises
        ------
        DataError
            If a score is not a number.
        """
        if np.isnan(self.scores).any():
            raise DataError(
                f"the score of the penalty {self.alphas[np.isnan(self.scores)][0]:g} is not a "
                "number: divide the targets by a constant, or give the penalty with alpha="
            )
        if np.isinf(self.scores).all():
            return float(self.alphas.max())
        return float(self.alphas[int(np.argmin(self.scores))])


def try_all(penalties: Penalties, score: Callable[[float], float]) -> Path:
    """Score every penalty."""
    scores = np.array([score(float(alpha)) for alpha in penalties.values])
    return Path(penalties.values, scores)


def search(penalties: Penalties, score: Callable[[float], float], start: int) -> Path:
    """Score penalties downhill from one of them; one that cannot be solved for is infinite."""
    scores: dict[int, float] = {}

    def at(i: int) -> float:
        if i not in scores:
            try:
                scores[i] = score(float(penalties.values[i]))
            except scipy.linalg.LinAlgError:  # below the rounding of the products
                scores[i] = np.inf
        return scores[i]

    best, last = start, len(penalties) - 1
    while np.isinf(at(best)) and best < last:
        best += 1
    step: int | None = 0
    while step is not None:
        best += step
        steps = (i for i in (1, -1) if 0 <= best + i <= last)
        step = next((i for i in steps if at(best + i) < at(best)), None)
    tried: Integers = np.array(sorted(scores))
    return Path(penalties.values[tried], np.array([scores[i] for i in tried]))


def warn_at_edge(path: Path, penalties: Penalties, precision: str, is_summed: bool) -> None:
    """Warn if the best penalty is the smallest or the largest of the grid.

    There is no warning if the score hardly changes there, relative to itself or to the variance of
    the labels, because penalties beyond the grid would hardly be better.
    """
    best, least, largest = path.best, penalties.values.min(), penalties.values.max()
    inner = path.scores[path.alphas != best]
    if least < best < largest or not len(inner):
        return
    beside = inner[np.abs(np.log(path.alphas[path.alphas != best] / best)).argmin()]
    if path.scores.min() >= min((1 - _MIN_RELATIVE_GAIN) * beside, beside - MIN_GAIN):
        return
    which, other = ("smallest", "smaller") if best == least else ("largest", "larger")
    remedy = f"try {other} ones with alphas="
    if best == least and is_summed and precision == "float32":
        remedy += ", below 1e-7 per bag with precision='float64'"
    warn(f"the best penalty, {best:g}, is the {which} of the grid; {remedy}")
