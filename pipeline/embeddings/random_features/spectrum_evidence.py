"""The evidence of frequencies, and Metropolis-Hastings on it from one pass (Oliva 2018, §6.3).

y = intercept + zᵀβ + ε with β ~ N(0, σ²/λ), a flat intercept, ε ~ N(0, σ²), 1/σ² ~ Γ(a₀, b₀), for
each target by itself. What β and σ² are integrated out of is a multivariate t, of logarithm

Q/2 (D log λ − log|G + λI|) − a_n Σ_q log(b₀ + ½(y_qᵀy_q − c_qᵀ(G + λI)⁻¹c_q)) + constant

for the centred G = ZᵀZ, c = ZᵀY and a_n = a₀ + (N − 1)/2 (Oliva 2018, eq. 6.13, whose prior of β
has to scale with σ²; λ = 1/σ_β²).

A sweep asks, of each frequency in turn, whether another takes its place. Proposals do not depend on
what was decided before them. So one pass sums the products of all features, old and new, and the
sweep goes on in them: the same decisions as a pass for each, with O(D²) work each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular

from ...core.arrays import Floats, Integers
from .kernels.exchange_kernels import drop_first, solve_columns

_SHAPE, _RATE = 1e-3, 1e-3  # a₀ and b₀, of targets with variance 1: hardly any prior of the noise
ROW_PENALTIES = np.geomspace(1e-8, 1.0, 49)  # values of λ per row: sums allow no smaller ones


@dataclass(frozen=True, eq=False)
class SpectrumSums:
    """Centred sums of the features of m frequencies: sines of all, then cosines of all.

    Attributes
    ----------
    gram : float64, shape (2m, 2m)
        ZᵀZ, of features √(1/m') [sin, cos] of m' = m frequencies, or of m'= m/2 in a sweep.
    cross : float64, shape (2m, q)
        ZᵀY, of targets with variance 1.
    n : int
        Rows.
    share : float
        Fraction of the targets that say something of their own: the evidence is counted so often.
    """

    gram: Floats
    cross: Floats
    n: int
    share: float = 1.0

    @classmethod
    def of(
        cls, gram: Floats, cross: Floats, squares: Floats, n: int, share: float = 1.0
    ) -> SpectrumSums:
        """Bring targets to variance 1; those that are constant go."""
        varies = squares > 0
        scale = np.sqrt(squares[varies] / n)
        return cls(gram, cross[:, varies] / scale, n, share)

    def of_frequencies(self, chosen: Integers) -> SpectrumSums:
        """Return the sums of some of the frequencies, in the order given."""
        columns = self.columns(chosen)
        return replace(self, gram=self.gram[np.ix_(columns, columns)], cross=self.cross[columns])

    def columns(self, chosen: Integers) -> Integers:
        """Return where the sines, then the cosines, of frequencies are."""
        return np.concatenate([chosen, chosen + len(self.gram) // 2])

    def scaled(self, factor: float) -> SpectrumSums:
        """Return the sums of features times √factor."""
        return replace(self, gram=self.gram * factor, cross=self.cross * np.sqrt(factor))


def log_evidence(sums: SpectrumSums, penalties: Floats) -> Floats:
    """Return the log evidence of each λ, up to a constant of the data; shape (n_penalties,)."""
    values, axes = eigh(sums.gram, check_finite=False, driver="evd")
    shifted = np.maximum(values, 0.0) + penalties[:, None]
    explained = (1 / shifted) @ (axes.T @ sums.cross) ** 2
    log_det = np.log(shifted).sum(axis=1) - len(values) * np.log(penalties)
    return _evidence(log_det, explained, sums)


def _evidence(log_det: Floats | float, explained: Floats, sums: SpectrumSums) -> Floats:
    """Return the log evidence by log|G/λ + I| and cᵀ(G + λI)⁻¹c, shape (…, q)."""
    rates = _RATE + 0.5 * np.maximum(sums.n - explained, 0.0)
    complexity: Floats = -0.5 * explained.shape[-1] * np.asarray(log_det)
    logs: Floats = np.log(rates).sum(axis=-1)
    return sums.share * (complexity - (_SHAPE + (sums.n - 1) / 2) * logs)


def draw_penalty(sums: SpectrumSums, generator: np.random.Generator) -> tuple[float, float]:
    """Draw λ from its posterior on a grid, all as likely before; return it and its evidence."""
    penalties = ROW_PENALTIES * sums.n
    evidences = log_evidence(sums, penalties)
    chances = np.exp(evidences - evidences.max())
    i = generator.choice(len(penalties), p=chances / chances.sum())
    return float(penalties[i]), float(evidences[i])


def accept_in_turn(sums: SpectrumSums, penalty: float, log_chances: Floats) -> NDArray[np.bool_]:
    """Decide, of each frequency in turn, whether the proposed one takes its place.

    Parameters
    ----------
    sums : SpectrumSums
        Sums of the m current frequencies and the m proposed, in this order.
    log_chances : float64, shape (m,)
        Logarithms of uniform numbers: one below the gain of log evidence accepts.

    Returns
    -------
    bool, shape (m,)
    """
    state = _Exchange(sums, penalty)
    return np.array([state.exchange(j, float(chance)) for j, chance in enumerate(log_chances)])


class _Pair(NamedTuple):
    """Columns that a frequency adds to the Cholesky factor of those that stay."""

    columns: Integers
    above: Floats  # (2, n)
    corner: Floats  # (2, 2)
    tail: Floats  # (2, q), of R⁻ᵀc

    @property
    def log_det(self) -> float:
        return 2 * float(np.log(self.corner.diagonal()).sum())


class _Exchange:
    """The Cholesky factor R of G + λI, of the features that are in: first in, first out.

    Its window moves two columns along for each frequency, so nothing is ever shifted. An inverse
    would be less work, and its rounding grow with each exchange.
    """

    def __init__(self, sums: SpectrumSums, penalty: float) -> None:
        self._sums, self._penalty = sums, penalty
        size, q = sums.cross.shape
        self._n = n = size // 2
        pairs = [sums.columns(np.array([j])) for j in range(n // 2)]
        self._in = np.concatenate([*pairs, np.zeros(n, np.int64)])
        self._factor, self._tail = np.zeros((size, size)), np.zeros((size, q))
        gram = sums.gram[np.ix_(self._in[:n], self._in[:n])]
        gram[np.diag_indices(n)] += penalty
        self._factor[:n, :n] = factor = cholesky(gram, check_finite=False)
        self._tail[:n] = solve_triangular(factor, sums.cross[self._in[:n]], trans=1)
        self._scratch = np.empty(size), np.empty(q)

    def exchange(self, j: int, log_chance: float) -> bool:
        """Take the proposed frequency for the j-th if the evidence allows it."""
        start, stop = 2 * j, 2 * j + self._n
        old, now = self._in[start : start + 2].copy(), self._explained(start, stop)
        for first in (start, start + 1):
            drop_first(self._factor, self._tail, first, stop, *self._scratch)
        unchanged = self._explained(start + 2, stop)
        pair = self._pair(start + 2, stop, old)
        new = self._pair(start + 2, stop, self._sums.columns(np.array([j + self._n // 2])))
        after = _evidence(
            new.log_det - pair.log_det, unchanged + (new.tail**2).sum(axis=0), self._sums
        )
        accepted = bool(log_chance < after - _evidence(0.0, now, self._sums))
        self._append(stop, new if accepted else pair)
        return accepted

    def _explained(self, start: int, stop: int) -> Floats:
        explained: Floats = (self._tail[start:stop] ** 2).sum(axis=0)
        return explained

    def _pair(self, start: int, stop: int, columns: Integers) -> _Pair:
        above = self._sums.gram[np.ix_(columns, self._in[start:stop])]
        solve_columns(self._factor, start, stop, above)
        corner = self._sums.gram[np.ix_(columns, columns)] + self._penalty * np.eye(2)
        root = cholesky(corner - above @ above.T)
        rest = self._sums.cross[columns] - above @ self._tail[start:stop]
        return _Pair(columns, above, root, solve_triangular(root, rest, trans=1))

    def _append(self, stop: int, pair: _Pair) -> None:
        places = slice(stop, stop + 2)
        self._in[places] = pair.columns
        self._factor[stop - pair.above.shape[1] : stop, places] = pair.above.T
        self._factor[places, places] = pair.corner
        self._tail[places] = pair.tail
