"""Chooses the solver of a fit: sums and Cholesky factors, or conjugate gradients."""

from __future__ import annotations

from ...core.arrays import Floats
from ...core.errors import ParameterError
from ...execution.tasks import lane_memory
from .ridge import rows_serve, solve_bytes

SOLVERS = ("auto", "cholesky", "cg")

# Seconds of two cores in float32, per unit of work. Both solvers need the features once; that is
# left out. Measured on 50,000 bags, conjugate gradients / exact: with a penalty that is given .6 to
# 1.3 at D = 1,024, .6 at 2,048, .34 at 4,096, .14 at 8,192; with validation .66 at 4,096.
PER_PRODUCT = 5.5e-12  # of N D², the sums, and of N² D, those of rows
PER_FACTOR = 7e-12  # of D³, a Cholesky factor in double
PER_ENTRY = 5e-10  # of N D in a step, where features are kept
PER_MADE = 4e-9  # of N D in a step, where they are made again
KEPT_BYTES = 2**32  # of features that are supposed to be kept
STEPS, PATH_STEPS = 10, 30
FACTORS, PATH_FACTORS = 1, 8
PASS_SECONDS = 0.05  # seconds that every step takes, whatever its size
LEAST_SECONDS = 1.0  # an exact fit that takes less time than this is not worth iterating
LEAST_PENALTY = 1e-6  # per bag: smaller ones take many steps, and are solved exactly where possible


def gradients_pay(n_bags: int, n_features: int, is_path: bool, n_targets: int = 1) -> bool:
    """Return whether conjugate gradients are faster than an exact solution.

    The answer depends on sizes alone, so that it is the same on any machine.
    """
    n, d = float(n_bags), float(n_features)
    n_factors = PATH_FACTORS if is_path else FACTORS
    exact = PER_PRODUCT * n * d**2 + PER_FACTOR * n_factors * d**3
    if rows_serve(n_bags, n_features, is_path):
        exact = PER_PRODUCT * 2 * n**2 * d + PER_FACTOR * n_factors * n**3
    entry = PER_ENTRY if 4 * n * d <= KEPT_BYTES else PER_MADE
    columns = n_targets * (20 if is_path else 1)
    step = n * d * (entry + 4 * PER_PRODUCT * columns) + PASS_SECONDS
    return exact > LEAST_SECONDS and (PATH_STEPS if is_path else STEPS) * step < exact


def fits_exactly(n_bags: int, n_features: int, is_path: bool) -> bool:
    """Return whether this process has the memory of an exact solution."""
    n_rows = n_bags if rows_serve(n_bags, n_features, is_path) else None
    return solve_bytes(n_features, is_path, n_rows) <= lane_memory(here=True)


def check_solver(solver: str, alpha: object, grid: Floats, of_sums: str) -> None:
    """Raise ParameterError if conjugate gradients cannot solve this problem.

    ``of_sums`` is the parameter, with its value, that needs sums; "" if there is none.
    """
    if solver != "cg":
        return
    if of_sums:
        raise ParameterError(
            f"solver='cg' keeps no sums, which {of_sums} is made of: choose solver='auto' or "
            "'cholesky'"
        )
    is_named = isinstance(alpha, str)
    if (is_named and alpha in ("auto", "gcv")) or (not is_named and grid.size > 1):
        raise ParameterError(
            "solver='cg' does not have the degrees of freedom of generalised cross-validation: "
            "give alpha='validation', or a number"
        )
    if is_named and alpha != "validation":
        raise ParameterError(f"solver='cg' has no alpha={alpha!r}: give alpha='validation'")
    if grid.min() <= 0:
        raise ParameterError("solver='cg' needs alpha > 0; least squares are solver='cholesky'")
