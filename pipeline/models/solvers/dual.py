"""The exact solution from the rows of few bags."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from ...execution.tasks import worker_memory
from ..fitting.plan import FitPlan
from ..fitting.solver import SOLVERS
from ..ridge.ridge import solve_bytes
from .primal import PrimalSolver
from .seconds import seconds_of_rows


@SOLVERS.register
@dataclass(frozen=True)
class DualSolver(PrimalSolver):
    """Cholesky factors of the products between bags, N × N.

    With fewer bags than features this is faster and rounds less.
    """

    name: ClassVar[str] = "dual"
    choice: ClassVar[str] = "cholesky"

    @override
    def cost(self, plan: FitPlan, exact: bool) -> float | None:
        if not plan.keeps_rows:
            return None
        n, d, is_path = plan.bags.n_bags, plan.features.n_features, self.parameters.is_path
        if solve_bytes(d, is_path, n, plan.n_parts) > worker_memory(here=True):
            return math.inf
        return seconds_of_rows(n, d, is_path)
