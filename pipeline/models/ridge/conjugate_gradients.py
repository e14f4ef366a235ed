"""Preconditioned conjugate gradients for (M + λI) ψ = b, several penalties and targets at once.

M = ZᵀZ of centred rows is known by its products with vectors alone. The preconditioner is M as m
sampled rows R show it, M̂ = (n/m) RᵀR, and a shift μ ≥ λ (FALKON, Rudi et al. 2017, has μ = λ):
(M̂ + μI)⁻¹ v = (v − R̂ᵀ (R̂R̂ᵀ + μI)⁻¹ R̂ v) / μ with R̂ = √(n/m) R, so memory is D m and m².
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...execution.checkpoint_stores import CheckpointedState
from ...execution.products import gram_matrix, multiply
from .cholesky import cholesky, inverse_squares, solve_by_factor

# Sampled rows per degree of freedom they show: with fewer, M̂ has large errors where M is small.
ROWS_PER_FREEDOM = 4
SHIFT_STEP = 4.0  # ratio of shifts that are tried
# Ratio of the shifts of different penalties: one up to it too large costs no step.
SHIFT_LEVEL = 64.0
TOLERANCE = 3e-4  # of the objective, over the last two steps: the error of predictions changes less
MAX_CG_STEPS = 200

Multiply = Callable[[Floats, Floats], tuple[Floats, Floats | None]]
"""From directions and coefficients (D, c) to M times the directions, and the score of each
column's coefficients on rows held out, shape (c,), if there are such rows."""


class Preconditioner:
    """(M̂ + μI)⁻¹, where each column has a μ of its own, not below its penalty.

    The least μ is that for which M̂ has no more than m / 4 degrees of freedom: more of them m rows
    do not show well enough, and a smaller μ makes more steps.

    Parameters
    ----------
    rows : float64, shape (m, D)
        Sampled rows, centred; overwritten.
    n : int
        Rows they stand for.
    alpha : float
        The least penalty.
    """

    def __init__(self, rows: Floats, n: float, alpha: float) -> None:
        rows *= np.sqrt(n / len(rows))
        self._rows = rows
        self._product = gram_matrix(rows)
        self._least = self._least_shift(self._product, alpha)
        self._factors: dict[float, Floats] = {}

    def __call__(self, residuals: Floats, alphas: Floats) -> Floats:
        """Return the preconditioned residuals, shape (D, c), of columns with these penalties."""
        levels = np.ceil(np.log(np.maximum(alphas / self._least, 1.0)) / np.log(SHIFT_LEVEL))
        shifts = self._least * SHIFT_LEVEL**levels
        inner = multiply(self._rows, residuals)
        for shift in sorted(set(shifts.tolist())):
            if shift not in self._factors:
                self._factors[shift] = _factor(self._product, shift)
            columns = shifts == shift
            inner[:, columns] = solve_by_factor(self._factors[shift], inner[:, columns])
        preconditioned: Floats = (residuals - multiply(self._rows.T, inner)) / shifts
        return preconditioned

    @staticmethod
    def _least_shift(product: Floats, alpha: float) -> float:
        most = len(product) / ROWS_PER_FREEDOM
        shift = max(float(np.trace(product)) / most, alpha)  # has no more freedom than that
        while shift / SHIFT_STEP > alpha:
            freedom = shift / SHIFT_STEP * inverse_squares(_factor(product, shift / SHIFT_STEP))
            if len(product) - freedom > most:
                break
            shift /= SHIFT_STEP
        return shift


def _factor(product: Floats, shift: float) -> Floats:
    shifted = product.copy(order="F")
    shifted[np.diag_indices(len(shifted))] += shift
    return cholesky(shifted)


@dataclass(frozen=True)
class Iterate(CheckpointedState):
    """Where conjugate gradients stand: enough to go on with the same bits.

    Attributes
    ----------
    psi, residual, direction : float64, shape (D, c)
    product : float64, shape (c,)
        Product of each residual with its preconditioned self.
    objective : float64, shape (c,)
        ‖y − Zψ‖² + λ‖ψ‖².
    falls : float64, shape (2, c)
        Decrease of the objective in the last two steps.
    scores : float64, shape (2, c)
        On rows held out: of the coefficients before the last step, and before the one before.
    step : int
    """

    psi: Floats
    residual: Floats
    direction: Floats
    product: Floats
    objective: Floats
    falls: Floats
    scores: Floats
    step: int

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether the objective hardly falls any more for each column, shape (c,)."""
        small = self.falls.sum(axis=0) <= TOLERANCE * np.maximum(self.objective, 0.0)
        converged: NDArray[np.bool_] = small | (self.product <= 0)
        return converged


@dataclass(frozen=True)
class ConjugateGradients:
    """Steps towards the solutions of (M + λI) ψ = b for each column.

    Attributes
    ----------
    multiply : `Multiply`
    precondition : callable
        From residuals (D, c) and penalties (c,); see `Preconditioner`.
    alphas : float64, shape (c,)
    right_side : float64, shape (D, c)
    yy : float64, shape (c,)
        Σ (y − ȳ)² of each column's target.
    """

    multiply: Multiply
    precondition: Callable[[Floats, Floats], Floats]
    alphas: Floats
    right_side: Floats
    yy: Floats
    tiny: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Find what is nothing compared with the right side: rounding."""
        object.__setattr__(self, "tiny", 1e-28 * (self.right_side**2).sum(axis=0))

    def begin(self, psi: Floats | None = None) -> Iterate:
        """Return the first iterate, from zero or from coefficients of a problem like this."""
        if psi is None:
            psi, residual = np.zeros_like(self.right_side), self.right_side.copy()
        else:
            products, _ = self.multiply(psi, psi)
            residual = self.right_side - products - self.alphas * psi
        direction = self.precondition(residual, self.alphas)
        large = (residual**2).sum(axis=0) > self.tiny
        product = np.where(large, np.sum(residual * direction, axis=0), 0.0)
        objective = self.yy - np.sum(psi * (self.right_side + residual), axis=0)
        unknown = np.full((2, len(self.alphas)), np.inf)
        return Iterate(psi, residual, direction, product, objective, unknown, unknown, 0)

    def step(self, now: Iterate, active: NDArray[np.bool_]) -> Iterate:
        """Return the next iterate, in which the columns that are not active are as they were."""
        direction, alphas = now.direction[:, active], self.alphas[active]
        before, psi = now.product[active], now.psi[:, active]
        products, scores = self.multiply(direction, psi)
        products += alphas * direction
        curvature = np.sum(direction * products, axis=0)
        moves = (before > 0) & (curvature > 0)
        length = np.divide(before, curvature, out=np.zeros_like(curvature), where=moves)
        residual = now.residual[:, active] - length * products
        preconditioned = self.precondition(residual, alphas)
        # as Polak and Ribière have it, which bears a preconditioner that rounding disturbs
        change = -length * np.sum(preconditioned * products, axis=0)
        turn = np.divide(change, before, out=np.zeros_like(change), where=moves)
        large = (residual**2).sum(axis=0) > self.tiny[active]
        fall = length * before
        changed = {
            "psi": psi + length * direction,
            "residual": residual,
            "direction": preconditioned + np.maximum(turn, 0.0) * direction,
            "product": np.where(large, np.sum(residual * preconditioned, axis=0), 0.0),
            "objective": now.objective[active] - fall,
            "falls": np.stack([fall, now.falls[0, active]]),
        }
        if scores is not None:
            changed["scores"] = np.stack([scores, now.scores[0, active]])
        for name, values in changed.items():
            whole = getattr(now, name).copy()
            whole[..., active] = values
            changed[name] = whole
        return replace(now, **changed, step=now.step + 1)
