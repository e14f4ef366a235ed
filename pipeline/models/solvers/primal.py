"""The exact solution from sums of products, and the same from rows of bags."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from ...execution.progress import Progress
from ...execution.tasks import worker_memory
from ..fitting.checkpoints import Checkpoints
from ..fitting.plan import FitPlan
from ..fitting.solver import SOLVERS, Solved, Solver, check_solvable
from ..fitting.solving import solve_fit
from ..ridge.ridge import solve_bytes
from .seconds import seconds_of_sums


@SOLVERS.register
@dataclass(frozen=True)
class PrimalSolver(Solver):
    """Cholesky factors of the sums of products of features, D × D."""

    name: ClassVar[str] = "primal"
    choice: ClassVar[str] = "cholesky"
    solves_sums: ClassVar[bool] = True

    @override
    def cost(self, plan: FitPlan, exact: bool) -> float | None:
        if plan.keeps_rows:
            return None
        d, is_path = plan.features.n_features, self.parameters.is_path
        if solve_bytes(d, is_path, None, plan.n_parts) > worker_memory(here=True):
            return math.inf
        return seconds_of_sums(plan.bags.n_bags, d, is_path)

    @override
    def solve(
        self, plan: FitPlan, progress: Progress | None, checkpoints: Checkpoints | None
    ) -> Solved:
        begun = time.perf_counter()
        check_solvable(plan, self.parameters)
        checkpoint_store = checkpoints.store_of(plan) if checkpoints else None
        n_bags_resumed = checkpoint_store.n_bags_kept(plan.ranges) if checkpoint_store else 0
        sums = plan.run(progress, checkpoint_store)
        summed = time.perf_counter() - begun
        solution = solve_fit(plan, sums, self.parameters)
        return Solved(plan, sums, solution, summed, n_bags_resumed=n_bags_resumed)
