"""`Solver`: base class of the solvers of a fit; `SOLVERS`: the solvers by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...core import ComponentRegistry
from ...core.errors import ParameterError
from ...execution.progress import Progress
from ..ridge.ridge import RidgeSolution
from .accumulate import FitStatistics
from .checkpoints import Checkpoints
from .fit_parameters import AUTO, FitParameters
from .plan import FitPlan

SOLVES_SUMS = "choose solver='auto' or 'cholesky'"


@dataclass(frozen=True)
class Solved:
    """Result of a solver.

    Attributes
    ----------
    plan : FitPlan
        The plan that was run.
    sums : FitStatistics
        Statistics and counts of its bags.
    solution : RidgeSolution
    pass_seconds : float
        Seconds of the passes over the bags.
    n_passes : int
        Number of passes over the bags.
    n_bags_resumed : int
        Bags whose sums came from checkpoints.
    """

    plan: FitPlan
    sums: FitStatistics
    solution: RidgeSolution
    pass_seconds: float
    n_passes: int = 1
    n_bags_resumed: int = 0


@dataclass(frozen=True)
class Solver(ABC):
    """Base of all solvers of a fit.

    Attributes
    ----------
    parameters : FitParameters
        Parameters of the estimator.
    name : str
        Name in `SOLVERS`.
    choice : str
        Value of the parameter ``solver`` that admits this solver; default: the name. Solvers with
        the same choice have the same solution up to rounding, and the fastest one is used.
    solves_sums : bool
        Whether the solver uses the sums of a plan. Retraining and cross-validation add and subtract
        sums, and refuse other solvers.
    """

    name: ClassVar[str]
    choice: ClassVar[str]
    solves_sums: ClassVar[bool] = False

    parameters: FitParameters

    def __init_subclass__(cls) -> None:
        """Let the choice be the name, where a solver does not declare one."""
        if "choice" not in vars(cls) and "name" in vars(cls):
            cls.choice = cls.name

    def check(self) -> None:  # noqa: B027 - most solve for any
        """Raise ParameterError for parameters that it cannot solve, before any bag is read."""

    @abstractmethod
    def cost(self, plan: FitPlan, exact: bool) -> float | None:
        """Return the seconds of a plan; None if this solver is not for it.

        Parameters
        ----------
        plan : FitPlan
        exact : bool
            Whether sums are needed, as for checkpoints.
        """

    @abstractmethod
    def solve(
        self, plan: FitPlan, progress: Progress | None, checkpoints: Checkpoints | None
    ) -> Solved:
        """Return the solution of a plan.

        Raises
        ------
        ParameterError
            If the solution does not fit in memory, or a parameter does not suit the number of bags.
        DataError
            If no bag has a label, or features are not finite.
        """


SOLVERS: ComponentRegistry[Solver] = ComponentRegistry(
    "solver", "bagbasis.solvers", "bagbasis.models.solvers"
)


def solvers_of(parameters: FitParameters) -> Sequence[Solver]:
    """Return the solvers that the parameters admit.

    For "auto", these are all solvers of bagbasis, so that no fit depends on other packages.
    """
    ours = SOLVERS.own.values()
    if parameters.solver == AUTO:
        return [kind(parameters) for kind in ours]
    chosen = [kind for kind in ours if kind.choice == parameters.solver]
    chosen = chosen or [kind for kind in SOLVERS.values() if kind.choice == parameters.solver]
    return [kind(parameters) for kind in chosen]


def check_solver(parameters: FitParameters) -> None:
    """Raise ParameterError if the solver that was chosen cannot solve for these parameters."""
    if parameters.solver != AUTO:
        for solver in solvers_of(parameters):
            solver.check()


def choose_solver(plan: FitPlan, parameters: FitParameters, exact: bool = False) -> Solver:
    """Return the fastest solver of a plan among the solvers that the parameters admit.

    If ``exact`` sums are needed, other solvers are used only if the parameters name one.
    """
    admitted = solvers_of(parameters)
    if len(admitted) == 1:
        return admitted[0]
    seconds = [solver.cost(plan, exact) for solver in admitted]
    costs = [(cost, i) for i, cost in enumerate(seconds) if cost is not None]
    return admitted[min(costs)[1]]


def check_summable(plan: FitPlan, parameters: FitParameters) -> None:
    """Raise ParameterError unless this process can solve from the sums, or rows, of a plan."""
    if not any(solver.solves_sums for solver in solvers_of(parameters)):
        raise ParameterError(f"solver={parameters.solver!r} keeps no sums: {SOLVES_SUMS}")
    check_solvable(plan, parameters)


def check_solvable(plan: FitPlan, parameters: FitParameters) -> None:
    """Raise ParameterError if the sums, or rows, of a plan need more memory than there is."""
    n_rows = plan.bags.n_bags if plan.keeps_rows else None
    parameters.check_memory(plan.features, n_rows, plan.outcome.n_targets, plan.n_parts)
