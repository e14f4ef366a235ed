"""What the Double-Basis estimators share: parameters, and fitting from one pass."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..bags.holdout import Holdout, HoldoutLike
from ..bags.inputs import with_targets
from ..bags.labelled import LabelledBags
from ..bags.plan import Range
from ..bags.splits import Membership
from ..embeddings import Embedding, ProjectionEmbedding
from ..embeddings.base import fresh
from ..errors import DataError, ModelError, ParameterError, shown
from ..execution import Progress, lane
from ..execution.passes import FEWER_FEATURES, check_memory
from ..params import as_array, check_choice, check_flag, check_integer, check_share
from ..random_features import RandomFeatures, RandomFourierFeatures
from .accumulate import FitPass, FitStatistics
from .checkpoints import Checkpoints, CheckpointsLike, checkpoints_of
from .feature_map import FeatureMap, resolve_features, warn_of_scale
from .linear_model import LinearModel
from .matrix_free import MatrixFreeFit
from .penalties import Penalties, warn_at_edge
from .posterior import Posterior
from .problem import Labels, Problem, Target, TrainingBags
from .ridge import (
    RidgeSolution,
    rows_serve,
    solve,
    solve_bytes,
    solve_gcv,
    solve_validation,
)
from .rows import RidgeRows
from .solver_choice import (
    LEAST_PENALTY,
    SOLVERS,
    check_solver,
    fits_exactly,
    gradients_pay,
)
from .summary import Summary
from .weights import SampleWeight, Weights

MOST_ALPHA = 1e100  # squares of penalties, times sums of squares, are doubles still

TOO_LARGE = "its values are too large: divide them by a constant, as 1e100, and fit again"

PenaltiesLike = Sequence[float] | NDArray[np.float64]


class DoubleBasis(LinearModel):
    """What the Double-Basis regressor and classifier share: parameters and the fit.

    A subclass says which `Outcome` its labels have. A fit is the steps `check_parameters`,
    `problem`, `resolve`, `task` and `learn`, which retraining and tuning take one by one.
    """

    # values of ``alpha`` that choose the penalty by its error on held-out bags
    _on_held_out: tuple[str, ...] = ("validation",)

    def __init__(
        self,
        embedding: Embedding | None = None,
        random_features: RandomFeatures | Literal[False] | None = None,
        alpha: str | float | PenaltiesLike = "gcv",
        alphas: PenaltiesLike | None = None,
        validation_fraction: float = 0.1,
        precision: str = "float32",
        solver: str = "auto",
        rank: int | None = None,
        uncertainty: bool = False,
    ) -> None:
        self.embedding = embedding
        self.random_features = random_features
        self.alpha = alpha
        self.alphas = alphas
        self.validation_fraction = validation_fraction
        self.precision = precision
        self.solver = solver
        self.rank = rank
        self.uncertainty = uncertainty

    # ------------------------------------------------------------------ fitting

    def labelled(self, X: TrainingBags, labels: Labels, target: Target) -> LabelledBags:
        """Return the labelled bags that `fit` is given.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        labels : array, list or None
            Of bags in memory: targets, or responses.
        target : str, list of str or None
            Of a store.

        Raises
        ------
        DataError
            No bags or no labels, or labels that do not fit the bags.
        ParameterError
            Labels beside a store, or a target beside bags in memory.
        """
        return with_targets(X, labels, target)[0]

    @abstractmethod
    def problem(
        self, X: TrainingBags, labels: Labels, target: Target, bags: Range | None = None
    ) -> Problem:
        """Return what `fit` is given, see `labelled`, and what its labels are.

        ``bags`` is a range of a store's bags; None means all of them.
        """

    def weighed(
        self, problem: Problem, sample_weight: SampleWeight, holdout: HoldoutLike = 0.0
    ) -> Problem:
        """Return the problem with the weights of its bags, see `fit`; ``holdout`` as there."""
        return replace(problem, weights=Weights.of_bags(problem.source.data, sample_weight))

    def fit_problem(
        self,
        problem: Problem,
        holdout: HoldoutLike,
        progress: Progress | None,
        checkpoints: CheckpointsLike = None,
    ) -> None:
        """Fit to these bags.

        Checkpoints that are given by their URL are removed when the fit has ended.
        """
        with checkpoints_of(checkpoints) as kept:
            self.check_parameters(holdout)
            holdout = Holdout.of(holdout).resolve(problem.source)
            clock = time.perf_counter()
            features = self.resolve(problem.source)
            resolved = time.perf_counter()
            solution, n_bags_resumed, n_passes = None, 0, 1
            if self.is_matrix_free(problem, features, kept is not None or self.uncertainty):
                fit = self._matrix_free(problem, features, holdout, progress, kept)
                solution, statistics = fit.run()
                n_passes = fit.n_passes
            else:
                task = self.task(problem, features, holdout, keeps_rows=True)
                keeper = kept.keeper(task) if kept else None
                n_bags_resumed = keeper.n_bags_kept(task.ranges) if keeper else 0
                statistics = task.run(progress, keeper)
            accumulated = time.perf_counter()
            self.learn(problem, features, holdout, statistics, solution)
        self.report_["n_passes"] = n_passes
        self.report_["n_bags_resumed"] = n_bags_resumed
        self.report_["seconds"] = {
            "choose": resolved - clock,
            "accumulate": accumulated - resolved,
            "solve": time.perf_counter() - accumulated,
        }

    def task(
        self, problem: Problem, features: FeatureMap, holdout: HoldoutLike, keeps_rows: bool = False
    ) -> FitPass:
        """Return the pass over the problem's bags, not yet started.

        ``keeps_rows`` where bags are no more than features: these are solved faster, and with
        less rounding, from their rows. What is added to later has to be summed.
        """
        if self.solver == "cg":
            raise ParameterError("solver='cg' keeps no sums: choose solver='auto' or 'cholesky'")
        source, validation = self.parts(problem.source, holdout)
        keeps_rows = keeps_rows and self.keeps_rows(source.n_bags, features)
        self.check_memory(features, source.n_bags if keeps_rows else None)
        given = (problem.outcome, validation, self.precision, keeps_rows, problem.weights)
        return FitPass(source, features, *given)

    def is_matrix_free(self, problem: Problem, features: FeatureMap, exact: bool = False) -> bool:
        """Return whether `fit` goes by conjugate gradients.

        Where ``exact`` sums are needed it does only when it is told to.
        """
        if self.solver != "auto":
            return self.solver == "cg"
        n, d = problem.source.n_bags, features.n_features
        chosen = self.alpha if isinstance(self.alpha, str) else None
        if exact or self._is_path != (chosen == "validation"):
            return False
        if chosen is None and self.given_penalties().min() < LEAST_PENALTY * n:
            return False
        pays = gradients_pay(n, d, self._is_path, problem.outcome.n_targets)
        return pays or not fits_exactly(n, d, self._is_path)

    def _matrix_free(
        self,
        problem: Problem,
        features: FeatureMap,
        holdout: HoldoutLike,
        progress: Progress | None,
        checkpoints: Checkpoints | None,
    ) -> MatrixFreeFit:
        source, validation = self.parts(problem.source, holdout)
        given = (problem.outcome, validation, self.precision, False, problem.weights)
        fit = FitPass(source, features, *given)
        settings = {"alphas": self.given_penalties().tolist(), "rank": self.rank}
        keeper = checkpoints.steps(fit, **settings) if checkpoints else None
        return MatrixFreeFit(fit, self.penalties, self.rank, progress, keeper)

    def keeps_rows(self, n_bags: int, features: FeatureMap) -> bool:
        """Return whether a fit of so many bags keeps their rows instead of their sums."""
        return rows_serve(n_bags, features.n_features, self._is_path)

    @property
    def _is_path(self) -> bool:
        return isinstance(self.alpha, str) or np.size(self.alpha) > 1

    def check_memory(self, features: FeatureMap, n_rows: int | None = None) -> None:
        """Raise ParameterError where this process can not solve for so many features.

        ``n_rows`` is the number of bags whose rows are kept, instead of their sums.
        """
        what = f"solving for {features.n_features:,} features"
        d = features.n_features
        needed = solve_bytes(d, self._is_path or self.uncertainty, n_rows)
        if self.uncertainty:
            needed += 8 * d * (d if n_rows is None else n_rows)
        check_memory(what, needed, FEWER_FEATURES)

    def parts(
        self, source: LabelledBags, holdout: HoldoutLike
    ) -> tuple[LabelledBags, Membership | None]:
        """Return the bags without those held out, and those that the penalty is chosen on."""
        out = Holdout.of(holdout)
        chosen = isinstance(self.alpha, str) and self.alpha in self._on_held_out
        validation = out.validation(self.validation_fraction, source) if chosen else None
        return replace(source, left_out=out.split(source)), validation

    def learn(
        self,
        problem: Problem,
        features: FeatureMap,
        holdout: HoldoutLike,
        statistics: FitStatistics,
        solution: RidgeSolution | None = None,
    ) -> None:
        """Solve, unless that is done, and set every fitted attribute.

        ``statistics`` are those of the problem's bags.
        """
        solver = "cholesky" if solution is None else "cg"
        if solution is None:
            with lane():
                solution = self._solve(problem, features, holdout, statistics)
        train = statistics.train
        if len(set(solution.scores.tolist())) > 1:  # else no penalty is better than another
            given = (self.penalties(train), self.precision, _is_summed(train))
            warn_at_edge(solution.alpha, *given)
        warn_of_scale(features, train.sum_z / train.weight, train.n)
        solved = np.column_stack([solution.coef, solution.intercept]).T
        problem.outcome.check_finite(solved, "the solution", TOO_LARGE)
        self.features_ = features
        self.coef_ = solution.coef
        self.intercept_ = solution.intercept
        self.alpha_ = solution.alpha
        self.alphas_ = solution.alphas
        self.alpha_scores_ = solution.scores
        self.holdout_ = Holdout.of(holdout).saved
        self.outcome_ = problem.outcome
        self.weights_ = problem.weights.to_dict() if problem.weights else None
        self.posterior_ = self._posterior(statistics, solution) if self.uncertainty else None
        self.calibration_ = None
        self.report_: dict[str, Any] = {
            "data_url": problem.source.url,
            "solver": solver,
            "n_bags": problem.source.n_bags,
            "n_points": problem.source.n_points,
            "n_bags_fitted": statistics.train.n
            + (statistics.validation.n if statistics.validation else 0),
            "n_bags_unlabelled": statistics.n_unlabelled,
            "n_bags_held_out": statistics.n_held_out,
            "n_points_seen": statistics.n_points,
            "n_points_outside_box": statistics.n_outside,
        }
        if problem.weights is not None:
            self.report_["weight_fitted"] = statistics.weight
        if problem.source.snapshot is not None:
            self.report_["data_snapshot"] = problem.source.snapshot

    def _posterior(self, statistics: FitStatistics, solution: RidgeSolution) -> Posterior:
        fitted, held = statistics.train, statistics.validation
        with lane():
            whole = fitted if held is None else fitted + held
            return Posterior.of(whole, solution, self.rounding)

    def resolve(self, source: LabelledBags) -> FeatureMap:
        """Return both bases, decided from samples of the bags.

        The embedding and the random features are cloned: a second fit does not use what the first
        one has decided.
        """
        embedding = fresh("embedding", self.embedding, Embedding, ProjectionEmbedding)
        given, random_features = self.random_features, None
        if given is not False:
            given_or_default = (given, RandomFeatures, RandomFourierFeatures)
            random_features = fresh("random_features", *given_or_default)
        with lane():
            return resolve_features(source, embedding, random_features)

    def _solve(
        self,
        problem: Problem,
        features: FeatureMap,
        holdout: HoldoutLike,
        statistics: FitStatistics,
    ) -> RidgeSolution:
        train, units = statistics.train, problem.outcome.units()
        penalties = self.penalties(train)
        chosen = self.alpha if isinstance(self.alpha, str) else ""
        if chosen == "validation":
            if statistics.validation is None:
                raise ModelError("no validation statistics")
            given = (penalties, self.rounding, units)
            return solve_validation(train, statistics.validation, *given)
        if len(penalties) > 1 or chosen == "gcv":
            return solve_gcv(train, penalties, units)
        return solve(train, float(penalties.values[0]), self.rounding)

    def penalties(self, train: Summary) -> Penalties:
        """Return the penalties that may be tried for these rows."""
        if isinstance(self.alpha, str) and self.alphas is None:
            return Penalties.default(train.weight, self.precision, _is_summed(train))
        return Penalties(self.given_penalties())

    def given_penalties(self) -> NDArray[np.float64]:
        """Return the penalties among the parameters, shape (n,); of none those for one row."""
        values: float | PenaltiesLike
        if isinstance(self.alpha, str):
            if self.alphas is None:
                return Penalties.default(1, "float64", is_summed=False).values
            values = self.alphas
        else:
            values = self.alpha
        try:
            return as_array("alpha", values, np.float64).reshape(-1)
        except DataError:
            raise ParameterError(f"penalties are {shown(values)}; expected numbers ≥ 0") from None

    @property
    def rounding(self) -> float:
        """Eigenvalues of ZᵀZ below this share of its trace come from rounding of the products."""
        return 1e-7 if self.precision == "float32" else 1e-14

    def check_parameters(self, holdout: HoldoutLike) -> None:
        """Raise ParameterError for a parameter that no fit accepts, before any bag is read."""
        named = ("gcv", *self._on_held_out)
        names = " or ".join(f"'{name}'" for name in named)
        if isinstance(self.alpha, str) and self.alpha not in named:
            raise ParameterError(
                f"alpha is {shown(self.alpha)}; expected a number ≥ 0, a list, {names}"
            )
        if self.alphas is not None and not isinstance(self.alpha, str):
            raise ParameterError(f"alphas is the grid of alpha={names}")
        grid = self.given_penalties()
        if grid.size == 0 or not ((grid >= 0) & (grid <= MOST_ALPHA)).all():
            given = self.alpha if self.alphas is None else self.alphas
            most = f"finite numbers ≥ 0, at most {MOST_ALPHA:g}"
            raise ParameterError(f"penalties are {shown(given)}; expected {most}")
        if grid.size > 1 and (grid == 0).any():
            raise ParameterError("a grid of alphas has only numbers > 0; alpha=0 alone is OLS")
        check_choice("solver", self.solver, SOLVERS)
        check_solver(self.solver, self.alpha, grid, check_flag("uncertainty", self.uncertainty))
        if self.rank is not None:
            check_integer("rank", self.rank)
        check_choice("precision", self.precision, ("float32", "float64"))
        check_share("validation_fraction", self.validation_fraction)
        Holdout.of(holdout)


def _is_summed(summary: Summary) -> bool:
    """Whether it holds products, which are in the working precision, and not rows."""
    return not isinstance(summary, RidgeRows)
