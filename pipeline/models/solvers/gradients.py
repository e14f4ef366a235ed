"""Conjugate gradients: a pass over the bags for each step, and no sums of products."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from ...core.errors import ParameterError
from ...execution.progress import Progress
from ..fitting.checkpoints import Checkpoints
from ..fitting.plan import FitPlan
from ..fitting.solver import SOLVERS, SOLVES_SUMS, Solved, Solver
from .seconds import seconds_of_gradients

MIN_PENALTY = 1e-6  # per bag: smaller ones take many steps, and are solved exactly where possible
_VALIDATION = "validation"  # the only way to choose a penalty without degrees of freedom


@SOLVERS.register
@dataclass(frozen=True)
class GradientSolver(Solver):
    """Conjugate gradients, preconditioned by a sample of the bags."""

    name: ClassVar[str] = "cg"

    @override
    def check(self) -> None:
        alpha, grid = self.parameters.alpha, self.parameters.given_penalties()
        if self.parameters.of_sums:
            raise ParameterError(
                f"solver='cg' keeps no sums, which {self.parameters.of_sums} is made of: "
                f"{SOLVES_SUMS}"
            )
        is_named = isinstance(alpha, str)
        if (is_named and alpha in ("auto", "gcv")) or (not is_named and grid.size > 1):
            raise ParameterError(
                "solver='cg' does not have the degrees of freedom of generalised "
                "cross-validation: give alpha='validation', or a number"
            )
        if is_named and alpha != _VALIDATION:
            raise ParameterError(f"solver='cg' has no alpha={alpha!r}: give alpha='validation'")
        if grid.min() <= 0:
            raise ParameterError("solver='cg' needs alpha > 0; least squares are solver='cholesky'")

    @override
    def cost(self, plan: FitPlan, exact: bool) -> float | None:
        parameters, n = self.parameters, plan.bags.n_bags
        chosen = parameters.alpha if isinstance(parameters.alpha, str) else None
        if exact or parameters.of_sums or parameters.is_path != (chosen == _VALIDATION):
            return None
        if chosen is None and parameters.given_penalties().min() < MIN_PENALTY * n:
            return None
        d, k = plan.features.n_features, plan.outcome.n_targets
        return seconds_of_gradients(n, d, parameters.is_path, k)

    @override
    def solve(
        self, plan: FitPlan, progress: Progress | None, checkpoints: Checkpoints | None
    ) -> Solved:
        from ..fitting.matrix_free import (  # noqa: PLC0415 - its kernels, which few fits need
            MatrixFreeFit,
        )

        begun, parameters = time.perf_counter(), self.parameters
        plan = replace(plan, keeps_rows=False)
        penalties = {"alphas": parameters.given_penalties().tolist(), "rank": parameters.rank}
        steps = checkpoints.steps(plan, **penalties) if checkpoints else None
        fit = MatrixFreeFit(plan, parameters.penalties, parameters.rank, progress, steps)
        solution, sums = fit.run()
        return Solved(plan, sums, solution, time.perf_counter() - begun, fit.n_passes)
